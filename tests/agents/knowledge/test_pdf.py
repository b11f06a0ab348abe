import logging
from collections.abc import Callable, Sequence
from io import BytesIO

import pytest
from pypdf import PdfReader, PdfWriter

from headway.agents.knowledge import bundled_documents
from headway.agents.knowledge.pdf import read_pdf
from headway.agents.knowledge.text import Block
from headway.core.errors import BadInputError

MakePdf = Callable[[Sequence[Sequence[str]]], bytes]


def encrypted(data: bytes, password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(BytesIO(data)))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def test_pages_are_places_and_short_lines_end_paragraphs(make_pdf: MakePdf) -> None:
    pages = [["A heading", "This line is long enough to go on", "and ends here."], ["Second page."]]
    assert read_pdf(make_pdf(pages)).blocks == (
        Block("A heading", "page 1"),
        Block("This line is long enough to go on and ends here.", "page 1"),
        Block("Second page.", "page 2"),
    )


def test_the_bundled_report_is_read_with_title_and_both_pages() -> None:
    content = read_pdf((bundled_documents() / "incident-label-outage.pdf").read_bytes())
    assert content.title == "Incident report: no labels on the morning of 12 April"
    assert {block.place for block in content.blocks} == {"page 1", "page 2"}
    assert any("expired signing key" in block.text for block in content.blocks)


def test_blank_pages_among_others_are_told_and_the_rest_is_used(make_pdf: MakePdf) -> None:
    content = read_pdf(make_pdf([["Text."], [], []]))
    assert content.blocks == (Block("Text.", "page 1"),)
    assert "page(s) 2, 3" in content.missing


def test_a_scan_is_refused_with_the_way_out(make_pdf: MakePdf) -> None:
    with pytest.raises(BadInputError, match=r"no text on its 2 page\(s\).*scan.*ocrmypdf"):
        read_pdf(make_pdf([[], []]))


def test_a_locked_file_is_refused_and_one_that_opens_without_password_is_read(make_pdf: MakePdf) -> None:
    data = make_pdf([["Secret."]])
    with pytest.raises(BadInputError, match=r"locked with a password.*qpdf"):
        read_pdf(encrypted(data, "word"))
    assert read_pdf(encrypted(data, "")).blocks == (Block("Secret.", "page 1"),)


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "empty"), (b"hello", "not a PDF"), (b"%PDF-1.7\n%%EOF", "not a PDF"), (b"\0" * 4000, "not a PDF")],
)
def test_what_is_no_pdf_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        read_pdf(data)


def test_a_file_cut_anywhere_is_read_or_refused_and_the_log_stays_quiet(
    make_pdf: MakePdf, caplog: pytest.LogCaptureFixture
) -> None:
    data = make_pdf([["Some text."]])
    refused = 0
    with caplog.at_level(logging.DEBUG):
        for end in range(0, len(data), 23):
            try:
                read_pdf(data[:end])
            except BadInputError:
                refused += 1
    assert refused
    assert not caplog.records
