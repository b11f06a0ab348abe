"""What one worker tells of where its calls went is what another hears; of tenants apart, of bounded size."""

import contextlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from routing import A, B, call, chain, fleet, winner

from headway.core.fleet import ReplicaId
from headway.core.task import SpanId, TaskId
from headway.policy.identify import CallOpening, Identifier
from headway.policy.lengths import Prefix
from headway.policy.route import RouteDone, RouteElsewhere, RoutePolicy
from headway.policy.routing.cache_aware import CacheAware
from headway.policy.routing.expected_seconds import ExpectedSeconds
from headway.policy.routing.preble import PrebleE2
from headway.policy.routing.session_home import SessionHome
from headway.policy.whereabouts import MOST_PREFIXES, Telling, heard

PROMPT = chain((11, 400), (12, 300), (13, 300))
FLEET = frozenset({A, B})


def told(*sent: tuple[str, tuple[Prefix, ...]], session: str = "s", at: float = 5.0) -> bytes:
    telling = Telling("one")
    for replica, prompt in sent:
        telling.sent(ReplicaId(replica), call(prompt=prompt, session=session), at)
    return telling.take()


def test_what_is_told_is_heard() -> None:
    telling = Telling("one")
    assert not telling
    telling.sent(B, call(prompt=PROMPT, session="s"), 5.0)
    telling.unserved(A, TaskId("t"))
    assert len(telling) == 2
    assert heard(telling.take(), "two", FLEET, 9.0) == [
        RouteElsewhere(replica=B, session="s", at=5.0, prompt=PROMPT),
        RouteDone(replica=A, task=TaskId("t"), failed=True, unserved=True),
    ]
    assert not telling


def test_ones_own_message_says_nothing_and_so_does_one_of_replicas_that_are_not_there() -> None:
    assert heard(told(("b", PROMPT)), "one", FLEET, 9.0) == []
    assert heard(told(("z", PROMPT)), "two", FLEET, 9.0) == []


def test_a_clock_that_runs_ahead_elsewhere_counts_as_now() -> None:
    (event,) = heard(told(("b", PROMPT), at=1e9), "two", FLEET, 9.0)
    assert isinstance(event, RouteElsewhere)
    assert event.at == 9.0


prompts = st.lists(st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, (1 << 32) - 1)), max_size=30).map(
    tuple
)


@given(st.lists(st.tuples(st.sampled_from("ab"), prompts), max_size=8), st.text(max_size=20), st.floats(0, 8))
def test_every_prompt_comes_through_whole(sent: list[tuple[str, tuple[Prefix, ...]]], session: str, at: float) -> None:
    assert heard(told(*sent, session=session, at=at), "two", FLEET, 9.0) == [
        RouteElsewhere(replica=ReplicaId(replica), session=session, at=at, prompt=prompt) for replica, prompt in sent
    ]


@given(st.binary(max_size=80))
def test_what_is_no_message_is_told_apart(message: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert heard(message, "two", FLEET, 9.0) == []


@pytest.mark.parametrize(
    ("digests", "tokens"),
    [(b"1234567", b"1234"), (b"12345678", b""), (b"12345678", b"123"), (b"12345678", b"12345678")],
)
def test_a_prompt_that_is_cut_off_is_none(digests: bytes, tokens: bytes) -> None:
    news = ["one", [["b", "s", 1.0, digests, tokens]], []]
    with pytest.raises(ValueError, match=r"bytes length|shorter|longer"):
        heard(msgspec.msgpack.encode(news), "two", FLEET, 9.0)


def test_of_a_prompt_without_end_its_beginning_is_told_and_a_message_has_bounded_length() -> None:
    endless = tuple([(digest, digest) for digest in range(5 * MOST_PREFIXES)])
    telling = Telling("one")
    telling.sent(B, call(prompt=endless, session="s"), 1.0)
    assert telling.full
    message = telling.take()
    assert len(message) < 13 * MOST_PREFIXES
    (event,) = heard(message, "two", FLEET, 9.0)
    assert isinstance(event, RouteElsewhere)
    assert event.prompt == endless[:MOST_PREFIXES]


def test_lengths_that_cannot_be_are_told_as_the_nearest_that_can() -> None:
    (event,) = heard(told(("b", ((1, -5), (2, 1 << 40)))), "two", FLEET, 9.0)
    assert isinstance(event, RouteElsewhere)
    assert event.prompt == ((1, 0), (2, (1 << 32) - 1))


@pytest.mark.parametrize("policy", [ExpectedSeconds(), CacheAware(), PrebleE2(), SessionHome()])
def test_a_session_goes_where_another_worker_has_sent_it(policy: RoutePolicy) -> None:
    nothing = call("c", chain((91, 1000)), session="new")
    assert winner(policy, nothing, fleet(a=0, b=0), 6.0) == "a"
    for event in heard(told(("b", PROMPT)), "two", FLEET, 5.5):
        policy.observe(event)
    assert winner(policy, call("c", (*PROMPT, (14, 1200)), session="s"), fleet(a=0, b=0), 6.0) == "b"


def test_a_replica_that_failed_a_task_at_another_worker_comes_after_all_others() -> None:
    policy = ExpectedSeconds()
    telling = Telling("one")
    telling.sent(B, call(prompt=PROMPT, session="s"), 5.0)
    telling.unserved(B, TaskId("s"))
    for event in heard(telling.take(), "two", FLEET, 5.5):
        policy.observe(event)
    assert winner(policy, call("c", PROMPT, session="s"), fleet(a=0, b=0), 6.0) == "a"


def test_what_is_older_than_what_is_known_moves_no_session() -> None:
    policy = SessionHome()
    for message in (told(("b", PROMPT), at=5.0), told(("a", PROMPT), at=4.0)):
        for event in heard(message, "two", FLEET, 6.0):
            policy.observe(event)
    assert winner(policy, call("c", PROMPT, session="s"), fleet(a=0, b=0), 6.0) == "b"


def test_the_same_prompt_of_two_tenants_has_no_digest_in_common() -> None:
    identifier = Identifier(iter([f"{n:032x}" for n in range(1, 9)]).__next__, measure=True)
    messages = json.dumps([{"role": "user", "content": f"message {n} of many"} for n in range(6)]).encode()
    digests = list[set[int]]()
    for number, tenant in enumerate(("acme", "evil", "")):
        span = SpanId(f"{number:016x}")
        identifier.decide(CallOpening(span=span, tenant=tenant, model="m", messages=messages), 1.0)
        digests.append({digest for digest, _ in identifier.prompt(span)})
    assert [len(one) for one in digests] == [6, 6, 6]
    assert len({digest for one in digests for digest in one}) == 18
