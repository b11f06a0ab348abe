"""Finding the call that a request continues, by the digest of its history.

Two indexes. The raw one knows the bytes of whole earlier requests: a client that sends the same history again plus
something new is recognised by hashing its bytes once (xxh3, tens of GB/s) and reading only what is new. The second,
slower one knows chains of per-message digests WITHOUT the assistant's messages, so it sees through other white space,
moved cache marks, and answers that the client dropped or altered; what the assistant said is compared apart.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from xxhash import xxh3_128, xxh3_128_digest

from headway.policy.messages import Message, Utterance, decode, link, link_answer, spoken, text
from headway.policy.turn import Turn

SAME_KEY = 16
"""Turns kept under one key; when more share a history, the oldest can no longer be continued."""
TRIES = 3
"""Prefixes of a request that are hashed before the fast path gives up."""
START = bytes(16)
"""The digest that every chain starts from."""

K = TypeVar("K")


class History(Struct, kw_only=True, gc=False):
    """A request's history, as far as it had to be read."""

    raw: tuple[int, bytes]
    chain: bytes | None = None
    said: bytes = START
    root: bytes | None = None
    specific: int = 0
    system: bytes = b""
    """Digest of the system messages; empty if the fast path did not need to read them."""
    same: Sequence[Turn] = ()
    """Turns with this very history, oldest first."""
    known: Sequence[Turn] = ()
    """Turns whose history is the longest that this one extends, oldest first."""
    reply: Utterance | None = None
    """What the history says was answered to ``known``; ``None`` if the client left that out."""
    news: Sequence[Message] = ()
    """The messages after ``known``, the reply included; all of them if nothing is known."""


class Shelf(Generic[K]):
    """Turns by key, a few under each, oldest first."""

    def __init__(self) -> None:
        self._turns: dict[K, tuple[Turn, ...]] = {}

    def get(self, key: K) -> tuple[Turn, ...]:
        """Those under ``key``; empty if there are none."""
        return self._turns.get(key, ())

    def add(self, key: K, turn: Turn) -> bool:
        """Put ``turn`` under ``key``; whether the key is a new one."""
        turns = self._turns.get(key, ())
        self._turns[key] = (*turns[1 - SAME_KEY :], turn)
        return not turns

    def remove(self, key: K, turn: Turn) -> bool:
        """Take ``turn`` away if it is still there; whether the key is gone with it."""
        turns = self._turns.get(key, ())
        left = tuple([other for other in turns if other is not turn])
        if left:
            self._turns[key] = left
        elif turns:
            del self._turns[key]
        return bool(turns) and not left


class Chains:
    """The indexes of one tenant."""

    def __init__(self) -> None:
        self._raw = Shelf[tuple[int, bytes]]()
        self._lengths: dict[int, int] = {}
        self._chains = Shelf[bytes]()

    def read(self, messages: bytes) -> History:
        """Recognise a raw JSON array of messages."""
        end = max(messages.rfind(b"]"), 0)
        return self._fast(messages, end) or self._slow(messages, end)

    def add(self, turn: Turn) -> None:
        """Let later requests find ``turn``."""
        length = turn.raw[0]
        if self._raw.add(turn.raw, turn):
            self._lengths[length] = self._lengths.get(length, 0) + 1
        if turn.chain is not None:
            self._chains.add(turn.chain, turn)

    def remove(self, turn: Turn) -> None:
        """Forget ``turn``."""
        length = turn.raw[0]
        if self._raw.remove(turn.raw, turn):
            self._lengths[length] -= 1
            if not self._lengths[length]:
                del self._lengths[length]
        if turn.chain is not None:
            self._chains.remove(turn.chain, turn)

    def _fast(self, messages: bytes, end: int) -> History | None:
        """Hash the prefix that ends where a known request is exactly as long; the latest such end first."""
        lengths, view, gap, tries, cut = self._lengths, memoryview(messages), _gap(messages), TRIES, end
        while cut >= 0 and tries:
            if cut in lengths:
                tries -= 1
                stream = xxh3_128(view[:cut])
                known = self._raw.get((cut, stream.digest()))
                if known and cut == end:
                    return _repeated(known)
                if known:
                    news = decode(b"[" + messages[cut + 1 :])
                    if news is None or known[-1].chain is None:
                        return None
                    stream.update(view[cut:end])
                    return _extended(known, (end, stream.digest()), news)
            cut = messages.rfind(gap, 0, cut - 1) + 1 or -1
        return None

    def _slow(self, messages: bytes, end: int) -> History:
        """Read every message; the longest known chain wins, and under it whoever said the same."""
        history = History(raw=(end, xxh3_128_digest(memoryview(messages)[:end])))
        everything = decode(messages)
        if everything is None:
            history.same = self._raw.get(history.raw)
            return history
        history.news, history.chain = everything, START
        after = 0
        for position, message in enumerate(everything, start=1):
            _follow(history, message)
            if message.role == "assistant":
                continue
            if known := self._chains.get(history.chain):
                alike = tuple([turn for turn in known if turn.said == history.said]) or known
                if position == len(everything):
                    history.same = alike
                else:
                    history.known, after = alike, position
        history.news = everything[after:]
        if after and history.news[0].role == "assistant":
            history.reply = spoken(history.news[0])
        return history


def _gap(messages: bytes) -> bytes:
    """What stands between two messages, in the client's way to write JSON.

    Unescaped quotes do not occur inside JSON strings, so no text can fake it; where it stands inside a message it is
    harmless, for no earlier request ends there.
    """
    colon = messages.find(b'":')
    return b'}, {"' if messages[colon + 2 : colon + 3] == b" " else b'},{"'


def _repeated(same: Sequence[Turn]) -> History | None:
    """The history of ``same`` once more; ``None`` where it must be read, as others may be at this point too."""
    if any(turn.descends for turn in same):
        return None
    before = same[-1]
    return History(
        raw=before.raw,
        chain=before.chain,
        said=before.said,
        root=before.root,
        specific=before.specific,
        same=same,
    )


def _extended(known: Sequence[Turn], raw: tuple[int, bytes], news: list[Message]) -> History:
    """The history of ``known`` with ``news`` after it."""
    before = known[-1]
    history = History(
        raw=raw,
        chain=before.chain,
        said=before.said,
        root=before.root,
        specific=before.specific,
        known=known,
        news=news,
    )
    for message in news:
        said = _follow(history, message)
        if said is not None and message is news[0]:
            history.reply = said
    return history


def _follow(history: History, message: Message) -> Utterance | None:
    """Add one message to the digests of a history; what it says, if it is the assistant's."""
    if message.role == "assistant":
        said = spoken(message)
        history.said = link_answer(history.said, said)
        return said
    history.chain = link(history.chain or START, message)
    if message.role in ("system", "developer"):
        history.system = link(history.system, message)
        return None
    history.specific += len(text(message))
    if history.root is None and message.role == "user":
        history.root = history.chain
    return None
