"""Finding the call that a request continues, by the digest of its history.

Two indexes. The raw one knows the bytes of whole earlier requests: a client that sends the same long history again plus
something new is recognised by hashing its bytes once (xxh3, tens of GB/s) and reading only what is new. The second one
knows chains of per-message digests WITHOUT the assistant's messages: it sees through other white space, moved cache
marks, and answers that the client dropped or altered; what the assistant said is compared apart. Short histories are
only in the second: reading them whole takes no longer.
"""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct
from xxhash import xxh3_128, xxh3_128_digest

from headway.policy.lengths import Beginning, Prefix, prefixes
from headway.policy.messages import Message, Utterance, decode, size, spoken, substance
from headway.policy.turn import Turn

SHORT = 2048
"""Bytes of a history from which on it is worth recognising without being read."""
SAME_KEY = 16
"""Turns kept under one key; when more share a history, the oldest can no longer be continued."""
TRIES = 3
"""Prefixes of a request that are hashed before the fast path gives up."""

_INSTRUCTING = frozenset({"system", "developer"})

K = TypeVar("K")


class History(Struct, kw_only=True, gc=False):
    """A request's history, as far as it had to be read."""

    raw: tuple[int, bytes] | None = None
    chain: int | None = None
    said: int = 0
    root: int | None = None
    specific: int = 0
    system: int = 0
    """Digest of the system messages; 0 if there are none, or the fast path did not need to read them."""
    same: Sequence[Turn] = ()
    """Turns with this very history, oldest first."""
    known: Sequence[Turn] = ()
    """Turns whose history is the longest that this one extends, oldest first."""
    reply: Utterance | None = None
    """What the history says was answered to ``known``; ``None`` if the client left that out."""
    news: Sequence[Message] = ()
    """The messages after ``known``, the reply included; all of them if nothing is known."""
    earlier: list[int] | None = None
    """The chains of the calls that it comes from, as far as it was read; ``None``: nobody wants to know."""
    last: int | None = None
    """The last of these."""
    links: list[tuple[int, int]] | None = None
    """A digest and the characters of each message that was read; ``None``: nobody wants to know."""
    prompt: tuple[Prefix, ...] = ()
    """All of the history, where somebody does."""
    size: int = 0
    """Its characters."""
    lent: Turn | None = None
    """The turn that ``prompt`` continues, which no longer needs its own."""


class Chains:
    """The indexes of one tenant.

    Args:
        earlier: whether histories tell of the calls that they come from.
    """

    def __init__(self, *, earlier: bool = False) -> None:
        self._earlier = earlier
        self._raw: dict[tuple[int, bytes], tuple[Turn, ...]] = {}
        self._lengths: dict[int, int] = {}
        self._chains: dict[int, tuple[Turn, ...]] = {}

    def read(self, messages: bytes, beginning: Beginning | None = None) -> History:
        """Recognise a raw JSON array of messages; with the ``beginning`` of its prompt, measure that too."""
        end = messages.rfind(b"]")
        if end < SHORT:
            return self._slow(messages, None, beginning)
        return self._fast(messages, end, beginning) or self._slow(
            messages, (end, xxh3_128_digest(memoryview(messages)[:end])), beginning
        )

    def knows(self, chain: int) -> bool:
        """Whether a turn has this history."""
        return chain in self._chains

    def add(self, turn: Turn) -> None:
        """Let later requests find ``turn``; one that could not be read is never found."""
        if turn.chain is None:
            return
        _shelve(self._chains, turn.chain, turn)
        if turn.raw is not None and _shelve(self._raw, turn.raw, turn):
            length = turn.raw[0]
            self._lengths[length] = self._lengths.get(length, 0) + 1

    def remove(self, turn: Turn) -> None:
        """Forget ``turn``."""
        if turn.chain is None:
            return
        _take(self._chains, turn.chain, turn)
        if turn.raw is not None and _take(self._raw, turn.raw, turn):
            length = turn.raw[0]
            self._lengths[length] -= 1
            if not self._lengths[length]:
                del self._lengths[length]

    def _fast(self, messages: bytes, end: int, beginning: Beginning | None) -> History | None:
        """Hash the prefix that ends where a known request is exactly as long; the latest such end first."""
        lengths, view, gap, tries, cut = self._lengths, memoryview(messages), _gap(messages), TRIES, end
        while cut >= SHORT and tries:
            if cut in lengths:
                tries -= 1
                stream = xxh3_128(view[:cut])
                known = self._raw.get((cut, stream.digest()))
                if known and cut == end:
                    return _repeated(known, beginning)
                if known:
                    news = decode(b"[" + messages[cut + 1 :])
                    if news is None:
                        return None
                    stream.update(view[cut:end])
                    return _extended(known, (end, stream.digest()), news, beginning, earlier=self._earlier)
            cut = messages.rfind(gap, 0, cut - 1) + 1
        return None

    def _slow(self, messages: bytes, raw: tuple[int, bytes] | None, beginning: Beginning | None) -> History:
        """Read every message; the longest known chain wins, and under it whoever said the same."""
        everything = decode(messages)
        if everything is None:
            return History()
        history, chains, after = History(raw=raw, chain=0, news=everything), self._chains, 0
        if beginning is not None:
            history.links = []
        if self._earlier:
            history.earlier = []
        for position, message in enumerate(everything, start=1):
            _follow(history, message)
            if history.chain in chains and message.role != "assistant":
                known = chains[history.chain]
                alike = tuple([turn for turn in known if turn.said == history.said]) or known
                if position == len(everything):
                    history.same = alike
                else:
                    history.known, after = alike, position
        if after:
            news = history.news = everything[after:]
            if news[0].role == "assistant":
                history.reply = spoken(news[0])
        if beginning is not None and history.links is not None:
            history.prompt, history.size = prefixes(beginning, history.links)
        return history


def _shelve(shelf: dict[K, tuple[Turn, ...]], key: K, turn: Turn) -> bool:
    """Put ``turn`` under ``key``, oldest first; whether the key is a new one."""
    turns = shelf.get(key)
    shelf[key] = (turn,) if turns is None else (*turns[1 - SAME_KEY :], turn)
    return turns is None


def _take(shelf: dict[K, tuple[Turn, ...]], key: K, turn: Turn) -> bool:
    """Take ``turn`` away if it is still there; whether the key is gone with it."""
    turns = shelf.pop(key, ())
    left = () if turns == (turn,) else tuple([other for other in turns if other is not turn])
    if left:
        shelf[key] = left
    return bool(turns) and not left


def _gap(messages: bytes) -> bytes:
    """What stands between two messages, in the client's way to write JSON.

    Unescaped quotes do not occur inside JSON strings, so no text can fake it; where it stands inside a message it is
    harmless, for no earlier request ends there.
    """
    colon = messages.find(b'":')
    return b'}, {"' if messages[colon + 2 : colon + 3] == b" " else b'},{"'


def _repeated(same: Sequence[Turn], beginning: Beginning | None) -> History | None:
    """The history of ``same`` once more; ``None`` where it must be read, as others may be at this point too."""
    before = same[-1]
    if any(turn.descends for turn in same) or not _lends(before, beginning):
        return None
    history = History(
        raw=before.raw,
        chain=before.chain,
        said=before.said,
        root=before.root,
        specific=before.specific,
        same=same,
    )
    if beginning is not None:
        history.prompt, history.size, history.lent = before.prompt, before.size, before
    return history


def _extended(
    known: Sequence[Turn],
    raw: tuple[int, bytes],
    news: list[Message],
    beginning: Beginning | None,
    *,
    earlier: bool,
) -> History | None:
    """The history of ``known`` with ``news`` after it; ``None`` where it must be read."""
    before = known[-1]
    if not _lends(before, beginning):
        return None
    history = History(
        raw=raw,
        chain=before.chain,
        said=before.said,
        root=before.root,
        specific=before.specific,
        known=known,
        news=news,
        links=None if beginning is None else [],
        earlier=[] if earlier else None,
    )
    history.reply = _follow(history, news[0])
    for message in news[1:]:
        _follow(history, message)
    if beginning is not None and history.links is not None:
        history.prompt, history.size = prefixes(beginning, history.links, before.prompt, before.size)
        history.lent = before
    return history


def _lends(before: Turn, beginning: Beginning | None) -> bool:
    """Whether the prompt of ``before`` can be continued, where one is wanted; a turn lends its own once."""
    return beginning is None or (before.seed == beginning.seed and bool(before.prompt))


def _follow(history: History, message: Message) -> Utterance | None:
    """Add one message to the digests of a history; what it says, if it is the assistant's."""
    role = message.role
    if role == "assistant":
        reply = spoken(message)
        if history.earlier is not None and history.chain is not None and history.last != history.chain:
            history.earlier.append(history.chain)
            history.last = history.chain
        history.said = hash((history.said, reply.text or 0, reply.calls or 0))
        if history.links is not None:
            history.links.append((hash((history.chain, history.said)), size(message)))
        return reply
    said = substance(message)
    history.chain = hash((history.chain, role, message.tool_call_id or "", said))
    if role in _INSTRUCTING:
        history.system = hash((history.system, said))
    else:
        history.specific += len(said)
        if history.root is None and role == "user":
            history.root = history.chain
    if history.links is not None:
        history.links.append((hash((history.chain, history.said)), len(said)))
    return None
