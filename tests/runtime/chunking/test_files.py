from itertools import pairwise

import pytest
from chunks import CHARACTERS, DOCUMENTS, MEASURES, TEXTS, check_chunks, parts_of
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.core.errors import BadInputError
from headway.runtime.chunking import ESTIMATE, Document, Measure, Origin, by_file


@UNHURRIED
@given(DOCUMENTS, st.integers(80, 500), MEASURES)
def test_nothing_is_lost_and_no_budget_is_passed(documents: list[Document], budget: int, measure: Measure) -> None:
    chunks = by_file(documents, budget, measure=measure)
    check_chunks(chunks, documents, budget, measure)
    order = [part.origin.path for chunk in chunks for part in chunk.parts]
    assert sorted(order) == order


@UNHURRIED
@given(DOCUMENTS, st.integers(80, 500), MEASURES)
def test_what_fits_is_not_cut(documents: list[Document], budget: int, measure: Measure) -> None:
    chunks = by_file(documents, budget, measure=measure)
    for document in documents:
        alone = measure.count(f"=== {document.path} ===\n{document.text}" + "\n" * (not document.text.endswith("\n")))
        assert (alone <= budget) == (len(parts_of(chunks, document.path)) == 1)


@UNHURRIED
@given(DOCUMENTS, st.integers(100, 500))
def test_neighbours_share_a_chunk_where_they_fit_one(documents: list[Document], budget: int) -> None:
    chunks = by_file(documents, budget, measure=CHARACTERS)
    for one, other in pairwise(chunks):
        assert one.tokens + len(other.parts[0].written) > budget


def test_files_are_packed_in_order() -> None:
    """Each is 19 characters with its header: two make 38, three 57."""
    documents = [Document(name, "line 1\n") for name in ("aa", "bb", "cc")]
    chunks = by_file(documents, 40, measure=CHARACTERS)
    assert [chunk.text for chunk in chunks] == [
        "=== aa ===\nline 1\n=== bb ===\nline 1\n",
        "=== cc ===\nline 1\n",
    ]
    assert [chunk.tokens for chunk in chunks] == [36, 18]


def test_a_large_file_is_cut_between_lines() -> None:
    text = "".join(f"line {number}\n" for number in range(10))
    chunks = by_file([Document("a.py", text)], 60, measure=CHARACTERS)
    # The header takes 28 characters and each line 7, so four lines fit.
    assert [str(chunk.parts[0].origin) for chunk in chunks] == [
        "a.py, lines 1 to 4",
        "a.py, lines 5 to 8",
        "a.py, lines 9 to 10",
    ]
    assert chunks[1].parts[0].text == "line 4\nline 5\nline 6\nline 7\n"
    assert (chunks[1].parts[0].start, chunks[1].parts[0].end) == (28, 56)


def test_a_line_that_does_not_fit_is_cut_between_words_and_a_word_within() -> None:
    chunks = by_file([Document("a", "one two three four")], 28, measure=CHARACTERS)
    # "=== a, line 1 ===\n" and the closing line end take 19 characters.
    assert [chunk.parts[0].text for chunk in chunks] == ["one two ", "three ", "four"]
    chunks = by_file([Document("a", "x" * 25)], 29, measure=CHARACTERS)
    assert [chunk.parts[0].text for chunk in chunks] == ["x" * 10, "x" * 10, "x" * 5]
    assert {str(chunk.parts[0].origin) for chunk in chunks} == {"a, line 1"}


def test_a_cited_line_is_one_of_the_chunk_or_nobody_read_it() -> None:
    (chunk,) = by_file([Document("a", "1\n2\n"), Document("b", "1\n")], 100)
    assert chunk.origin("a", 2) == Origin("a", 2, 2)
    assert chunk.origin("a", 3) is None
    assert chunk.origin("c", 1) is None


def test_an_estimate_says_so() -> None:
    (chunk,) = by_file([Document("a", "로그")], 100)
    # 11 bytes of header, 6 of text, 1 line end: 18 bytes.
    assert (chunk.tokens, chunk.exact) == (6, False)
    assert chunk.counted == ESTIMATE.name == "an estimate, a token for 3 bytes of UTF-8"


def test_the_name_of_a_file_cannot_feign_another() -> None:
    (chunk,) = by_file([Document("a\n=== b ===\n", "x")], 100)
    assert chunk.text == "=== a?=== b ===? ===\nx\n"


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_that_holds_nothing_is_refused(budget: int) -> None:
    with pytest.raises(BadInputError, match="holds nothing"):
        by_file([], budget)


def test_a_budget_below_a_header_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"does not hold the line that names a/long/path"):
        by_file([Document("a/long/path", "text\n" * 9)], 10, measure=CHARACTERS)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"a\.bin holds what is no character, at character 1\. Read it by"):
        Document("a.bin", "x\udcff")


@UNHURRIED
@given(TEXTS)
def test_one_chunk_holds_all_of_a_text_that_fits(text: str) -> None:
    (chunk,) = by_file([Document("a", text)], 100_000)
    assert chunk.parts[0].text == text
