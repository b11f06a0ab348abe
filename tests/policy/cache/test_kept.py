"""A cache never outgrows its bound, never gives what is too old, and lets go what saves least for each byte."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadInputError
from headway.core.money import MicroUsd
from headway.policy.cache.kept import ENTRY_OVERHEAD, AnswerCache, Kept
from headway.policy.cache.keys import CacheKey
from headway.wire.openai import Answer, ToolCall

NOTHING = Answer()
A, B, C = CacheKey(b"a"), CacheKey(b"b"), CacheKey(b"c")


def answer(size: int = 88, *, seconds: float = 1.0, fresh: float = 10.0, stale: float = 20.0, tags: str = "") -> Kept:
    """One of 100 + ENTRY_OVERHEAD bytes unless told otherwise."""
    return Kept(
        body=b"x" * size,
        media=b"text/plain; ",
        answer=NOTHING,
        made=0.0,
        fresh_until=fresh,
        stale_until=stale,
        seconds=seconds,
        cost=MicroUsd(7),
        tags=frozenset(tags.split()),
    )


UNIT = 100 + sys.getsizeof("") + ENTRY_OVERHEAD


def test_fresh_then_stale_then_gone() -> None:
    cache = AnswerCache(10 * UNIT)
    assert cache.put(A, answer())
    freshness = [hit and hit.freshness for hit in (cache.get(A, now) for now in (0.0, 9.9, 10.0, 19.9, 20.0, 0.0))]
    assert freshness == ["fresh", "fresh", "stale", "stale", None, None]
    figures = cache.figures
    assert (figures.hits, figures.stale_hits, figures.misses, figures.expired) == (4, 2, 2, 1)
    assert (figures.bytes_served, figures.seconds_saved, figures.cost_saved) == (4 * 88, 4.0, 28)
    assert (cache.size, len(cache)) == (0, 0)


def test_a_look_counts_nothing_and_shows_only_what_is_fresh() -> None:
    cache = AnswerCache(10 * UNIT)
    kept = answer()
    cache.put(A, kept)
    assert (cache.peek(A, 9.9), cache.peek(A, 10.0), cache.peek(B, 0.0)) == (kept, None, None)
    assert (cache.figures.hits, cache.figures.misses, cache.worth) == (0, 0, 0.0)


def test_what_saves_least_for_each_byte_goes_first() -> None:
    cache = AnswerCache(3 * UNIT)
    cache.put(A, answer(seconds=1.0))
    cache.put(B, answer(seconds=5.0))
    cache.get(A, 0.0)
    cache.get(A, 0.0)  # asked three times: worth 3 s to B's 5
    cache.put(C, answer(88 + UNIT, seconds=20.0))  # needs one place: A's
    assert [cache.get(key, 0.0) is not None for key in (A, B, C)] == [False, True, True]
    assert cache.figures.evicted == 1


def test_what_was_dear_once_and_is_asked_for_no_more_goes_in_the_end() -> None:
    cache = AnswerCache(2 * UNIT)
    cache.put(A, answer(seconds=10.0))
    for number in range(12):  # each lifts the floor by a second's worth
        cache.put(CacheKey(b"%d" % number), answer(seconds=1.0))
    assert cache.get(A, 0.0) is None


def test_an_answer_larger_than_the_cache_is_refused_and_what_it_was_to_replace_is_gone() -> None:
    cache = AnswerCache(UNIT)
    cache.put(A, answer())
    assert not cache.put(A, answer(89))
    assert (cache.get(A, 0.0), cache.size, cache.figures.refused) == (None, 0, 1)


def test_invalidation_by_any_of_the_tags() -> None:
    cache = AnswerCache(10 * UNIT)
    cache.put(A, answer(tags="docs v1"))
    cache.put(B, answer(tags="v1"))
    cache.put(C, answer())
    assert cache.invalidate(["docs", "v2"]) == 1
    assert cache.invalidate(["docs", "v1"]) == 1
    assert [cache.get(key, 0.0) is not None for key in (A, B, C)] == [False, False, True]
    assert cache.figures.invalidated == 2


def test_a_cost_that_is_unknown_is_counted_not_guessed() -> None:
    cache = AnswerCache(UNIT)
    cache.put(
        A, Kept(body=b"", media=b"", answer=NOTHING, made=0, fresh_until=1, stale_until=1, seconds=2.0, cost=None)
    )
    cache.get(A, 0.0)
    assert (cache.figures.cost_saved, cache.figures.cost_unknown) == (0, 1)


def test_a_cache_without_room_is_a_mistake() -> None:
    with pytest.raises(BadInputError, match="0 bytes holds nothing"):
        AnswerCache(0)


KEYS = st.sampled_from([CacheKey(b"%d" % number) for number in range(6)])
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.integers(0, 2500), st.floats(0.0, 10.0), st.sampled_from(["", "x", "y", "x y"])),
    st.tuples(st.just("get"), KEYS, st.floats(0.0, 40.0)),
    st.tuples(st.just("invalidate"), st.sampled_from("xy")),
)


@given(st.lists(STEPS, max_size=60))
def test_bounds_and_answers_whatever_is_done(steps: list[tuple[object, ...]]) -> None:
    cache, put = AnswerCache(4 * UNIT), dict[CacheKey, Kept]()
    for step in steps:
        match step:
            case ("put", bytes() as key, int() as size, float() as seconds, str() as tags):
                put[CacheKey(key)] = answer(size, seconds=seconds, tags=tags)
                cache.put(CacheKey(key), put[CacheKey(key)])
            case ("get", bytes() as key, float() as now):
                hit = cache.get(CacheKey(key), now)
                if hit is not None:
                    assert hit.kept is put[CacheKey(key)]
                    assert now < hit.kept.stale_until
                    assert (hit.freshness == "fresh") == (now < hit.kept.fresh_until)
            case (_, str() as tag):
                cache.invalidate([tag])
                assert all(tag not in kept.tags for kept in cache.entries())
            case _:
                raise AssertionError(step)
        assert cache.size == sum(kept.size for kept in cache.entries()) <= cache.limit
        assert len(cache) == len(cache.entries())


def test_what_was_said_counts_too_and_worth_is_what_the_kept_have_saved() -> None:
    said = Answer(content="four", tool_calls=(ToolCall("id", "name", "{}"),))
    kept = Kept(body=b"", media=b"", answer=said, made=0, fresh_until=9, stale_until=9, seconds=2.0, cost=None)
    assert kept.size == sys.getsizeof("four") + sys.getsizeof("{}") + ENTRY_OVERHEAD
    cache = AnswerCache(4 * UNIT)
    cache.put(A, kept)
    cache.put(B, answer(seconds=5.0))
    cache.get(A, 0.0)
    cache.get(A, 0.0)
    cache.get(B, 0.0)
    assert cache.worth == 9.0
    cache.put(A, kept)
    assert cache.worth == 9.0
    cache.get(A, 9.0)
    assert cache.worth == 5.0
