"""The prefix index knows what a cache holds, forgets as a cache does, and learns how much that is."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st
from routing import A, B, C, chain

from headway.core.fleet import ReplicaId
from headway.policy.lengths import Prefix
from headway.policy.routing.prefixes import HELD_BYTES, Holding, Prefixes

SYSTEM = (1, 100)


def test_each_replica_matches_as_far_as_it_was_sent() -> None:
    index = Prefixes()
    index.insert(A, chain(SYSTEM, (2, 50), (3, 50)))
    index.insert(B, chain(SYSTEM, (9, 30)))
    assert index.match(chain(SYSTEM, (2, 50), (3, 50), (4, 7))) == {A: 200, B: 100}
    assert index.match(chain(SYSTEM, (2, 50))) == {A: 150, B: 100}
    assert index.match(chain((5, 1), (2, 50))) == {}
    assert index.match(()) == {}


def test_inserting_says_what_was_held_and_how_much_came_since() -> None:
    index = Prefixes()
    first = chain(SYSTEM, (2, 50))
    assert index.insert(A, first) == Holding(0, 0)
    index.insert(A, chain((7, 40)))
    # 150 tokens are held; 40 others were computed since: 190 tokens of room keep both.
    assert index.insert(A, (*first, (3, 170))) == Holding(150, 190)


def test_a_miss_shows_how_much_fits_and_the_oldest_go() -> None:
    index = Prefixes()
    index.insert(A, chain((1, 1000)))
    index.insert(A, chain((2, 1000)))
    index.insert(A, chain((3, 1000)))
    held = index.insert(A, chain((1, 1000), (4, 500)))
    assert held == Holding(1000, 3000)
    assert index.capacity(A) is None
    index.reported(A, held, cached=0)
    assert index.capacity(A) == 3000.0
    # 3,500 tokens are held and 3,000 fit: chain 2 is the oldest.
    assert index.match(chain((2, 1000))) == {}
    assert index.match(chain((3, 1000))) == {A: 1000}


def test_blocks_and_a_tenth_may_be_missing() -> None:
    index = Prefixes()
    index.insert(A, chain((1, 1000)))
    index.reported(A, index.insert(A, chain((1, 1000), (2, 10))), cached=900)
    assert index.capacity(A) is None
    index.reported(A, index.insert(A, chain((1, 1000), (2, 10), (3, 10))), cached=899)
    assert index.capacity(A) == 1010.0


def test_hits_of_a_full_cache_make_room_again() -> None:
    index = Prefixes()
    index.insert(A, chain((1, 1000)))
    held = index.insert(A, chain((1, 1000), (2, 100)))
    index.reported(A, held, cached=0)
    assert index.capacity(A) == 1000.0
    index.reported(A, index.insert(A, chain((1, 1000), (2, 100))), cached=1100)
    # 1,100 tokens were seen to be held.
    assert index.capacity(A) == 1100.0


def test_a_lost_replica_holds_nothing_and_its_place_is_given_away() -> None:
    index = Prefixes()
    index.insert(A, chain(SYSTEM))
    index.insert(B, chain(SYSTEM))
    index.forget(A)
    index.insert(C, chain((8, 1)))
    assert index.match(chain(SYSTEM)) == {B: 100}
    assert index.bytes == 2 * HELD_BYTES


def test_victims_are_the_oldest_ends() -> None:
    index = Prefixes()
    for digest in (1, 2, 3):
        index.insert(A, chain((digest, 100)))
    assert index.victims(A, 500) == []
    held = index.insert(A, chain((1, 100), (4, 10)))
    index.reported(A, held, cached=0)  # 300 fit; 310 were held: 2 has gone, 210 are left
    assert index.victims(A, 90) == []
    assert index.victims(A, 91) == [(3, 100)]


def test_its_memory_is_what_it_says_at_most() -> None:
    tracemalloc.start()
    index, before = Prefixes(), tracemalloc.get_traced_memory()[0]
    for session in range(200):
        index.insert(A, tuple((hash((session, depth)), depth * 100) for depth in range(1, 41)))
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert index.bytes == 8000 * HELD_BYTES
    assert used <= index.bytes


CHAINS = st.lists(st.integers(1, 4), min_size=1, max_size=6).map(
    lambda path: tuple((hash(tuple(path[: depth + 1])), 100 * (depth + 1)) for depth in range(len(path)))
)
STEPS = st.lists(st.tuples(st.sampled_from([A, B, C]), CHAINS, st.integers(0, 600)), max_size=40)


@given(STEPS, CHAINS)
def test_with_room_it_is_exactly_the_longest_prefix_that_was_sent(
    steps: list[tuple[ReplicaId, tuple[Prefix, ...], int]], wanted: tuple[Prefix, ...]
) -> None:
    index, sent = Prefixes(), dict[ReplicaId, set[int]]()
    for replica, prompt, _ in steps:
        index.insert(replica, prompt)
        sent.setdefault(replica, set()).update(digest for digest, _ in prompt)
    expected = {
        replica: max((tokens for digest, tokens in wanted if digest in digests), default=0)
        for replica, digests in sent.items()
    }
    assert index.match(wanted) == {replica: tokens for replica, tokens in expected.items() if tokens}


@given(STEPS)
def test_it_keeps_its_bounds_and_what_is_held_is_held_from_the_start(
    steps: list[tuple[ReplicaId, tuple[Prefix, ...], int]],
) -> None:
    index = Prefixes(max_bytes=12 * HELD_BYTES)
    for replica, prompt, cached in steps:
        index.reported(replica, index.insert(replica, prompt), cached)
        assert index.bytes <= 12 * HELD_BYTES
        for shelf in index._shelves.values():  # pyright: ignore[reportPrivateUsage] - the bound must be seen inside
            assert shelf.tokens == sum(link.own for link in shelf.held.values())
            assert all(link.parent is None or link.parent in shelf.held for link in shelf.held.values())
            assert set(shelf.tails) == {digest for digest, link in shelf.held.items() if not link.children}
