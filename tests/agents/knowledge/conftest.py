"""Documents and indexes that several tests share."""

from collections.abc import AsyncIterator, Callable, Sequence
from io import BytesIO

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, IndirectObject, NameObject, PdfObject

from headway.agents.knowledge.documents import Document
from headway.agents.knowledge.fake import WordEmbedder
from headway.agents.knowledge.retrieval.index import Index, build
from headway.agents.knowledge.text import Block, Content

MakePdf = Callable[[Sequence[Sequence[str]]], bytes]


@pytest.fixture
def make_pdf() -> MakePdf:
    """Bytes of a PDF from the lines of its pages; a page without lines is blank, as a scan looks to a reader."""

    def make(pages: Sequence[Sequence[str]]) -> bytes:
        writer = PdfWriter()

        def add(thing: PdfObject) -> IndirectObject:
            return writer._add_object(thing)  # pyright: ignore[reportPrivateUsage] - pypdf has no public way

        font = add(
            DictionaryObject(
                {
                    NameObject("/Type"): NameObject("/Font"),
                    NameObject("/Subtype"): NameObject("/Type1"),
                    NameObject("/BaseFont"): NameObject("/Helvetica"),
                }
            )
        )
        for lines in pages:
            page = writer.add_blank_page(595, 842)
            page[NameObject("/Resources")] = DictionaryObject(
                {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
            )
            shown = "".join(f"({line}) Tj T* " for line in lines)
            stream = DecodedStreamObject()
            stream.set_data(f"BT /F1 12 Tf 14 TL 50 800 Td {shown}ET".encode() if lines else b"")
            page[NameObject("/Contents")] = add(stream)
        out = BytesIO()
        writer.write(out)
        return out.getvalue()

    return make


@pytest.fixture
async def ferry_index() -> AsyncIterator[Index]:
    """Three one-paragraph documents."""
    texts = {
        "ferry.md": "The ferry was late because a rope was in its propeller.",
        "told.md": "The harbour master was told about the late ferry by radio.",
        "cakes.md": "The bakery sells cakes with plums on Sundays.",
    }
    documents = [
        Document(name=name, content=Content(title=name.removesuffix(".md"), blocks=(Block(text, "Notes"),)))
        for name, text in texts.items()
    ]
    with await build(documents, WordEmbedder()) as index:
        yield index
