"""What holds of all chunks, however they were made, and documents to make them of."""

from collections.abc import Sequence

from hypothesis import strategies as st

from headway.runtime.chunking import ESTIMATE, Chunk, Document, Measure, Part

CHARACTERS = Measure(count=len, name="characters")
WORDS = Measure(count=lambda text: len(text.split()), name="words")
UNEVEN = Measure(count=lambda text: len(text) + len(text) // 50, name="more together than one by one")
MEASURES = st.sampled_from([ESTIMATE, CHARACTERS, WORDS, UNEVEN])

LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "# A", "## B", "### C", "Title", "=====", "---", "```", "    code", "| a |", "\r", "로그가 없다"]
        ),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
        st.integers(1, 300).map(lambda size: "x" * size),
        st.integers(1, 100).map(lambda size: "ab " * size),
    ),
    max_size=30,
)
TEXTS = st.tuples(LINES, st.booleans()).map(lambda drawn: "\n".join(drawn[0]) + ("\n" if drawn[1] else ""))
DOCUMENTS = st.lists(TEXTS, max_size=6).map(
    lambda texts: [Document(f"{number}.md", text) for number, text in enumerate(texts)]
)


def parts_of(chunks: Sequence[Chunk], path: str) -> list[Part]:
    return [part for chunk in chunks for part in chunk.parts if part.origin.path == path]


def check_chunks(chunks: Sequence[Chunk], documents: Sequence[Document], budget: int, measure: Measure) -> None:
    """No budget is passed, no source is wrong, nothing is lost and nothing is there twice but what says so."""
    for chunk in chunks:
        assert chunk.tokens == measure.count(chunk.text) <= budget
        assert (chunk.counted, chunk.exact) == (measure.name, measure.exact)
        for part in chunk.parts:
            assert part.written in chunk.text
    for document in documents:
        data = document.text.encode()
        parts = parts_of(chunks, document.path)
        assert b"".join(part.text.encode()[part.repeated :] for part in parts) == data
        assert parts or not data
        for part in parts:
            assert part.text.encode() == data[part.start : part.end]
            assert part.origin.first_line == 1 + data[: part.start].count(b"\n")
            assert part.origin.last_line == 1 + data[: max(part.start, part.end - 1)].count(b"\n")
            assert part.whole == (part.text == document.text)
