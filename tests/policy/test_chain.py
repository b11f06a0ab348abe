"""The fast path and the slow one are one rule."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway.core.task import SessionId, SpanId, TaskId
from headway.policy.chain import SAME_KEY, SHORT, Chains, History
from headway.policy.turn import Turn

texts = st.text(max_size=12) | st.sampled_from(['},{"role":"user"', '"}, {"', "]", '\\"', "\u00e9\U0001f600"])
messages = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": texts})
chats = st.lists(messages, min_size=1, max_size=8)
LONG = {"role": "system", "content": "Be careful. " * (SHORT // 12 + 1)}
"""With this at its head a history is long enough for the fast path."""


def encode(chat: list[dict[str, Any]], *, spaced: bool = False, ascii_only: bool = False) -> bytes:
    return json.dumps(chat, separators=None if spaced else (",", ":"), ensure_ascii=ascii_only).encode()


def remember(chains: Chains, raw: bytes, name: str = "a") -> Turn:
    history = chains.read(raw)
    turn = Turn(
        span=SpanId(name),
        tenant="",
        task=TaskId(name),
        session=SessionId(name),
        opened=0.0,
        evidence="new",
        raw=history.raw,
        chain=history.chain,
        said=history.said,
        root=history.root,
        specific=history.specific,
    )
    chains.add(turn)
    return turn


def digests(history: History) -> tuple[object, ...]:
    return history.raw, history.chain, history.said, history.root, history.specific


@given(chats, chats, st.booleans())
def test_a_longer_history_is_recognised_and_read_the_same_either_way(
    before: list[dict[str, Any]], more: list[dict[str, Any]], spaced: bool
) -> None:
    fast, before = Chains(), [LONG, *before]
    turn = remember(fast, encode(before, spaced=spaced))
    quick = fast.read(encode([*before, *more], spaced=spaced))
    assert list(quick.known) == [turn]
    assert [(m.role, m.content) for m in quick.news] == [(m["role"], m["content"]) for m in more]
    assert digests(quick) == digests(Chains().read(encode([*before, *more], spaced=spaced)))


@given(chats, chats, st.booleans())
def test_a_short_history_that_grows_is_recognised_whatever_the_assistant_said_last(
    before: list[dict[str, Any]], more: list[dict[str, Any]], spaced: bool
) -> None:
    chains, asked = Chains(), {"role": "user", "content": "What now?"}
    turn = remember(chains, encode([*before, asked]))
    grown = chains.read(encode([*before, asked, *more], spaced=spaced))
    assert list(grown.known) == [turn]
    assert [(m.role, m.content) for m in grown.news] == [(m["role"], m["content"]) for m in more]


@given(chats, chats)
def test_what_only_begins_alike_is_not_known(before: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
    chains = Chains()
    for head in ([], [LONG]):
        remember(chains, encode([*head, {"role": "user", "content": "another"}, *before]))
        assert not chains.read(encode([*head, {"role": "user", "content": "not the other"}, *before, *more])).known


@given(st.sampled_from([[], [LONG]]), chats)
def test_the_same_again_is_recognised_in_any_spelling_of_json(
    head: list[dict[str, Any]], chat: list[dict[str, Any]]
) -> None:
    chat = [*head, *chat, {"role": "user", "content": "last"}]
    chains = Chains()
    turn = remember(chains, encode(chat))
    for again in (encode(chat), encode(chat, spaced=True), encode(chat, ascii_only=True)):
        history = chains.read(again)
        assert list(history.same) == [turn]
        assert history.chain == turn.chain


def test_of_too_many_with_one_history_the_oldest_are_passed_over() -> None:
    chains = Chains()
    chat = [{"role": "user", "content": "hi"}]
    turns = [remember(chains, encode(chat), str(n)) for n in range(SAME_KEY + 3)]
    assert list(chains.read(encode(chat)).same) == turns[3:]
    for turn in turns:
        chains.remove(turn)
    assert not chains.read(encode(chat)).same
