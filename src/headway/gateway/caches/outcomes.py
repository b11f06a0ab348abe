"""What a cache says of a call: here is its answer, wait for it, or make the call and tell what came of it."""

from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct

from headway.core.span import AnswerSource
from headway.gateway.caches.copying import Copying
from headway.gateway.front import Reader
from headway.gateway.responses import Headers
from headway.policy.cache.kept import Kept
from headway.policy.cache.keys import CacheKey
from headway.policy.cache.question import Question
from headway.policy.cache.rules import CacheRule
from headway.wire.dialect import Dialect

if TYPE_CHECKING:
    from headway.policy.cache.nearest import Vector

How = Literal["hit", "stale", "semantic"]

_OK: Final = 200


class Ticket:
    """The right to make a call whose answer may be kept; told once to the cache how the call ended."""

    __slots__ = (
        "copy", "dialect", "ended", "fresh", "key", "labels", "leads", "meaning", "near", "question", "rule", "scope",
        "seen", "void", "waiting",
    )  # fmt: skip

    def __init__(
        self, rule: CacheRule, dialect: Dialect, scope: str, key: CacheKey, labels: frozenset[str], seen: str
    ) -> None:
        self.rule = rule
        self.dialect = dialect
        self.scope = scope
        """Whose answers these are; another's are never even compared."""
        self.key = key
        self.labels = labels
        """By which the answer can be dropped."""
        self.seen = seen
        """How far drops by other workers were known when it was asked."""
        self.leads = False
        """Others may wait for this call."""
        self.ended = False
        self.void = False
        """What it was to keep was dropped meanwhile."""
        self.waiting: list[Wait] = []
        """Those who waited when it was made void."""
        self.copy: Copying | None = None
        self.question: Question | None = None
        self.meaning: Vector | None = None
        self.near: Kept | None = None
        """What could have been given instead, by its meaning."""
        self.fresh: Kept | None = None
        """What was answered."""

    def copying(self, client: Reader) -> Copying:
        """The client to relay the answer to in place of ``client``."""
        self.copy = Copying(client, self.rule.largest)
        return self.copy


class Given(Struct, frozen=True, kw_only=True):
    """An answer to give."""

    kept: Kept
    rule: str
    """By which it was kept."""
    source: AnswerSource
    how: How
    age: int
    """Whole seconds since it was made."""
    refresh: Ticket | None = None
    """The call is to be made all the same, for `copying.Nobody`, so that the next is given a fresh answer."""

    def headers(self) -> Headers:
        """All that the answer's head says, but for its framing."""
        return [
            (b"content-type", self.kept.media),
            (b"age", b"%d" % self.age),
            (b"x-headway-cache", self.how.encode()),
        ]

    def deliver(self, client: Reader, *more: tuple[bytes, bytes]) -> None:
        """Send it, a stream as a stream, with ``more`` headers."""
        kept, headers = self.kept, [*self.headers(), *more]
        if kept.media.startswith(b"text/event-stream"):
            client.begin(_OK, headers)
            if kept.body:
                client.send(kept.body)
            client.end()
        else:
            client.respond(_OK, kept.body, headers)


class Waiter(Protocol):
    """A call that waits. It is told exactly once, unless it leaves before; never while it asks."""

    def cached(self, given: Given) -> None:
        """Here is the answer."""
        ...

    def uncached(self, ticket: Ticket) -> None:
        """Make the call, and tell what came of it."""
        ...


class Waiting(Protocol):
    """Where those who wait are known."""

    def left(self, wait: "Wait") -> None:
        """One waits no more."""
        ...

    def expired(self, wait: "Wait") -> None:
        """One has waited long enough."""
        ...


class Wait:
    """A call's place among those who wait; `Expiring`."""

    __slots__ = ("_waiter", "_waiting", "deadline", "lookups", "since", "ticket")

    def __init__(self, waiting: Waiting, waiter: Waiter, ticket: Ticket, since: float, deadline: float) -> None:
        self._waiting = waiting
        self._waiter: Waiter | None = waiter
        self.ticket = ticket
        """What it will make its call with, if it comes to that."""
        self.since = since
        self.deadline = deadline
        self.lookups = 0
        """Places that are still to say whether they have the answer."""

    @property
    def open(self) -> bool:
        """It is still to be told."""
        return self._waiter is not None

    def take(self) -> Waiter | None:
        """Whom to tell, once."""
        waiter, self._waiter = self._waiter, None
        return waiter

    def leave(self) -> None:
        """The call's client is gone, or its own deadline is: tell it nothing. Twice is once, too late is nothing."""
        if self._waiter is not None:
            self._waiter = None
            self._waiting.left(self)

    def expire(self, now: float) -> None:
        """It has waited long enough."""
        del now
        if self._waiter is not None:
            self._waiting.expired(self)
