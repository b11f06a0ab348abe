from itertools import pairwise

import pytest
from chunks import CHARACTERS, DOCUMENTS, MEASURES, check_chunks
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.core.errors import BadInputError
from headway.runtime.chunking import Document, Measure, by_tokens


@UNHURRIED
@given(DOCUMENTS, st.integers(80, 500), st.integers(0, 79), MEASURES)
def test_nothing_is_lost_and_what_is_repeated_is_declared(
    documents: list[Document], budget: int, overlap: int, measure: Measure
) -> None:
    chunks = by_tokens(documents, budget, overlap=overlap, measure=measure)
    check_chunks(chunks, documents, budget, measure)
    for one, other in pairwise(chunks):
        before, after = one.parts[0], other.parts[0]
        again = after.text.encode()[: after.repeated].decode()
        assert before.text.endswith(again)
        assert measure.count(again) <= overlap
        if before.origin.path == after.origin.path:
            assert after.start + after.repeated == before.end < after.end
        else:
            assert not again


def test_lines_are_repeated() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 8))
    chunks = by_tokens([Document("a", text)], 53, overlap=15, measure=CHARACTERS)
    # The header takes 25 characters and each line 7: four lines fit, and two may be repeated.
    assert [str(chunk.parts[0].origin) for chunk in chunks] == ["a, lines 1 to 4", "a, lines 3 to 6", "a, lines 5 to 7"]
    assert [chunk.parts[0].repeated for chunk in chunks] == [0, 14, 14]


def test_words_are_repeated_where_a_line_is_too_long_for_it() -> None:
    chunks = by_tokens([Document("a", "one two three four five")], 33, overlap=6, measure=CHARACTERS)
    # "=== a, line 1 ===\n" and the closing line end take 19 characters, so 14 are left.
    assert [chunk.parts[0].text for chunk in chunks] == ["one two three ", "three four ", "four five"]
    assert [chunk.parts[0].repeated for chunk in chunks] == [0, 6, 5]


def test_without_overlap_pieces_follow_one_another() -> None:
    chunks = by_tokens([Document("a", "x" * 25)], 29, measure=CHARACTERS)
    assert [chunk.parts[0].text for chunk in chunks] == ["x" * 10, "x" * 10, "x" * 5]


@pytest.mark.parametrize("overlap", [-1, 10, 11])
def test_an_overlap_that_leaves_no_room_is_refused(overlap: int) -> None:
    with pytest.raises(BadInputError, match=f"overlap={overlap} of a budget of 10"):
        by_tokens([], 10, overlap=overlap)
