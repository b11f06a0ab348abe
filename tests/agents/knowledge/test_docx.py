"""Word documents, made here from the parts that such a file has."""

import zipfile
from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.agents.knowledge import docx
from headway.agents.knowledge.docx import OLD_WORD, read_docx
from headway.agents.knowledge.text import Block, Content
from headway.core.errors import BadInputError

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Type="{kind}/{name}" Target="{target}"/></Relationships>'
)
STYLES = (
    f"<w:styles {W}>"
    + "".join(
        f'<w:style w:type="paragraph" w:styleId="H{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in (1, 2)
    )
    + "</w:styles>"
)


def paragraph(text: str, style: str = "") -> str:
    look = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{look}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def packed(body: str) -> bytes:
    parts = {
        "[Content_Types].xml": TYPES,
        "_rels/.rels": RELATIONS.format(kind=KIND, name="officeDocument", target="word/document.xml"),
        "word/_rels/document.xml.rels": RELATIONS.format(kind=KIND, name="styles", target="styles.xml"),
        "word/styles.xml": STYLES,
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
    }
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue()


CELLS = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("key", "180 days"))
LETTER = packed(
    paragraph("Handbook", "H1")
    + paragraph("Keys last 180 days.")
    + paragraph("Boats", "H2")
    + paragraph("배는 아침에 떠납니다.")
    + f"<w:tbl><w:tr>{CELLS}</w:tr></w:tbl>"
)


def test_headings_are_places_and_the_first_is_the_title() -> None:
    assert read_docx(LETTER) == Content(
        title="Handbook",
        blocks=(
            Block("Keys last 180 days.", ""),
            Block("배는 아침에 떠납니다.", "Boats"),
            Block("key", "Boats"),
            Block("180 days", "Boats"),
        ),
    )


def test_what_is_hidden_in_markup_stays_text() -> None:
    assert read_docx(packed(paragraph("a &lt;script&gt; b"))).blocks == (Block("a <script> b", ""),)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (OLD_WORD + b"\0" * 500, "locked with a password, or in the format of Word before 2007"),
        (b"hello", r"is not a DOCX that can be read \(BadZipFile"),
        (LETTER[: len(LETTER) // 2], r"is not a DOCX that can be read \(BadZipFile"),
        (packed("<w:p>"), r"is not a DOCX that can be read \(ExpatError"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, message: str) -> None:
    with pytest.raises(BadInputError, match=message) as caught:
        read_docx(data)
    assert caught.value.fix


def test_an_archive_without_a_document_is_refused() -> None:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(BadInputError, match="is not a DOCX"):
        read_docx(out.getvalue())


def test_a_small_file_that_unpacks_to_much_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docx, "MAX_UNPACKED", 1_000_000)
    data = packed(paragraph("a" * 1_000_000))
    assert len(data) < 10_000
    with pytest.raises(BadInputError, match="unpacks to 100"):
        read_docx(data)


def test_entities_that_would_multiply_are_refused() -> None:
    data = packed("")
    bomb = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
    )
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            text = old.read(entry).decode()
            if entry.filename == "word/document.xml":
                text = f"{bomb}]><w:document {W}><w:body>{paragraph('&j;')}</w:body></w:document>"
            new.writestr(entry.filename, text)
    with pytest.raises(BadInputError, match="is not a DOCX"):
        read_docx(out.getvalue())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, len(LETTER) - 1), st.binary(min_size=1, max_size=8))
def test_damage_is_an_error_or_harmless(at: int, bytes_: bytes) -> None:
    data = LETTER[:at] + bytes_ + LETTER[at + len(bytes_) :]
    with suppress(BadInputError):
        read_docx(data)
