import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadInputError
from headway.runtime import ResultCache

KEEPS = st.lists(st.tuples(st.integers(0, 9), st.text(max_size=400), st.none() | st.integers(0, 40)), max_size=60)


@given(KEEPS, st.integers(0, 5000))
def test_never_more_bytes_than_allowed_and_nothing_that_is_not_what_was_kept_last(
    keeps: list[tuple[int, str, int | None]], most: int
) -> None:
    cache = ResultCache(most)
    last: dict[int, tuple[str, int | None]] = {}
    for now, (key, text, until) in enumerate(keeps):
        cache.keep(key, text, until)
        last[key] = (text, until)
        assert cache.bytes <= most
        for known, (right, end) in last.items():
            found = cache.find(known, now)
            assert found in (None, right)
            assert found is None or end is None or now < end


def test_what_was_used_longest_ago_goes_first() -> None:
    size = sys.getsizeof("a") + 512
    cache = ResultCache(2 * size)
    cache.keep("one", "1", None)
    cache.keep("two", "2", None)
    assert cache.find("one", 0) == "1"
    cache.keep("three", "3", None)
    assert [cache.find(key, 0) for key in ("one", "two", "three")] == ["1", None, "3"]


def test_what_is_too_old_takes_no_room() -> None:
    cache = ResultCache()
    cache.keep("k", "text", 5.0)
    assert cache.find("k", 4.9) == "text"
    assert cache.find("k", 5.0) is None
    assert cache.bytes == 0


def test_a_text_that_is_too_large_is_not_kept_and_drives_nobody_out() -> None:
    cache = ResultCache(2000)
    cache.keep("small", "s", None)
    cache.keep("large", "l" * 3000, None)
    assert cache.find("large", 0) is None
    assert cache.find("small", 0) == "s"


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(BadInputError, match="most_bytes=-1"):
        ResultCache(-1)
