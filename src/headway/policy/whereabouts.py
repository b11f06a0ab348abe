"""Where other workers send calls: what is told of it, so that all know which replica has which prompt in its cache.

All of it is digests, ids and times. The digests of a prompt begin with its tenant, so what is told of one tenant's
calls matches no prompt of another's. Digests are comparable between processes that were started with one hash seed and
the same Python: whoever shares them sees to that.

A prompt is told whole, and so what is lost, or not heard yet, is made good by the session's next call.
"""

from array import array
from collections.abc import Container
from typing import Final

import msgspec
from msgspec import Struct

from headway.core.fleet import ReplicaId
from headway.core.task import TaskId
from headway.policy.lengths import Prefix
from headway.policy.route import RouteDone, RouteElsewhere, RouteEvent, RouteRequest
from headway.policy.routing.homes import session_of

MOST_PREFIXES: Final = 2_048
"""Of one message, 12 bytes each; of a longer prompt its beginning is told."""
_MOST_TOKENS: Final = (1 << 32) - 1


class _Sent(Struct, frozen=True, array_like=True, gc=False):
    replica: ReplicaId
    session: str
    at: float
    digests: bytes
    """64 bits each, of the shortest prefix first."""
    tokens: bytes
    """32 bits each."""


class _Unserved(Struct, frozen=True, array_like=True, gc=False):
    replica: ReplicaId
    task: TaskId


class _News(Struct, frozen=True, array_like=True, gc=False):
    teller: str
    sent: tuple[_Sent, ...]
    unserved: tuple[_Unserved, ...]


class Telling:
    """What a worker has to tell next.

    Args:
        teller: a name that no other worker has.
    """

    def __init__(self, teller: str) -> None:
        self._teller = teller
        self._sent: list[_Sent] = []
        self._unserved: list[_Unserved] = []
        self._prefixes = 0

    def __len__(self) -> int:
        """Calls that are to be told of."""
        return len(self._sent) + len(self._unserved)

    @property
    def full(self) -> bool:
        """It is to be taken before any more is added."""
        return self._prefixes >= MOST_PREFIXES or len(self) >= MOST_PREFIXES

    def sent(self, replica: ReplicaId, request: RouteRequest, at: float) -> None:
        """A call was sent to ``replica`` at ``at`` (epoch seconds)."""
        prompt = request.prompt[:MOST_PREFIXES]
        self._prefixes += len(prompt)
        digests, lengths = zip(*prompt, strict=True) if prompt else ((), ())
        try:
            tokens = array("I", lengths)
        except OverflowError:
            tokens = array("I", [min(max(length, 0), _MOST_TOKENS) for length in lengths])
        self._sent.append(_Sent(replica, session_of(request), at, array("q", digests).tobytes(), tokens.tobytes()))

    def unserved(self, replica: ReplicaId, task: TaskId) -> None:
        """``replica`` could not serve a call of ``task``."""
        self._unserved.append(_Unserved(replica, task))

    def take(self) -> bytes:
        """All of it as one message; nothing is to be told any more."""
        news = _News(self._teller, tuple(self._sent), tuple(self._unserved))
        self._sent, self._unserved, self._prefixes = [], [], 0
        return _encode(news)


def heard(message: bytes, me: str, fleet: Container[object], now: float) -> list[RouteEvent]:
    """What a message says of replicas in ``fleet``; nothing where it is one's own.

    Args:
        message: as `Telling.take` made it.
        me: the name of whoever hears it.
        fleet: the replicas' ids; what is told of others is passed over, so nobody's memory is filled with them.
        now: epoch seconds; what another machine's clock says is later counts as now.

    Raises:
        ValueError: it is no such message.
    """
    try:
        news = _decode(message)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    if news.teller == me:
        return []
    events: list[RouteEvent] = [
        RouteElsewhere(
            replica=sent.replica, session=sent.session, at=min(sent.at, now), prompt=_prompt(sent.digests, sent.tokens)
        )
        for sent in news.sent
        if sent.replica in fleet
    ]
    events += [
        RouteDone(replica=one.replica, task=one.task, failed=True, unserved=True)
        for one in news.unserved
        if one.replica in fleet
    ]
    return events


def _prompt(digests: bytes, tokens: bytes) -> tuple[Prefix, ...]:
    return tuple(zip(array("q", digests), array("I", tokens), strict=True))


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_News).decode
