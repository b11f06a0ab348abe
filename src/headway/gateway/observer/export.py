"""The exporter: what is written to the store goes to an OTLP endpoint, however long that is away.

Guarantee: each span that is in the store is delivered at least once. The place is moved on only when the endpoint has
taken a message, so a span is sent twice where its answer was lost or Headway was killed in between, with the same
ids. A span is lost only where the store gave it up to make room before it was sent, or the endpoint does not want it;
both are counted. What waits, waits in the store: in memory there is one message.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final, assert_never

from msgspec import Struct

from headway.core.errors import StoreError
from headway.core.span import Span
from headway.gateway.exposition import family
from headway.gateway.observer.endpoint import Delivery, Later, Post, Taken, TooLarge, Unwanted
from headway.trace.export.otlp import to_otlp_protobuf
from headway.trace.follow import Follower, Place

_log = logging.getLogger(__name__)

PERIOD: Final = 1.0
"""Seconds between two looks at a store in which nothing waits."""
BATCH: Final = 512
"""Spans in a message, as OpenTelemetry's own exporters have it."""
_BATCH_BYTES: Final = 4 << 20
"""Of the rows that a message is made of; receivers often take no more."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
"""Seconds; each failure in a row doubles the pause, of which a random half is left out."""


class _Next(Struct):
    """One message that waits to be taken."""

    message: bytes
    spans: int
    unsendable: int
    place: Place


class Exporter:
    """Sends a store's spans on.

    Args:
        path: of the store.
        name: under which the place is kept: another endpoint begins at the end.
        post: delivers a message.
        dice: for pauses, so that many gateways do not come back at once.
        begin: where to begin in a store in which no place is kept.
    """

    def __init__(self, path: Path, name: str, post: Post, dice: Random, begin: Place = 0) -> None:
        self._path = path
        self._name = name
        self._post = post
        self._dice = dice
        self._begin = begin
        self._follower: Follower | None = None
        self._place: Place = 0
        self._next: _Next | None = None
        self._most = BATCH
        self._failed = 0
        """Deliveries in a row."""
        self.up: bool | None = None
        """Whether the endpoint took the last message; unknown before the first."""
        self.spans = {"sent": 0, "rejected": 0, "unsendable": 0, "missed": 0}
        """By what became of them; ``missed``, those that left the store first, are counted at most."""
        self.failures: dict[str, int] = {}
        """Messages to be sent again, by the word for why."""
        self.waiting = 0
        """Spans in the store that were not sent, at most."""

    def close(self) -> None:
        """Let go of the store."""
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def step(self) -> float:
        """Send one message if there is one; returns the seconds after which to step again."""
        try:
            follower = self._followed()
            if self._next is None:
                self._next = self._made(follower)
            if self._next is None:
                return PERIOD
            pause = self._deliver(follower, self._next)
            self.waiting = follower.end() - self._place
        except StoreError as error:
            _log.warning("spans cannot be exported now: %s", error, extra={"event": "export_store"})
            self.close()
            return self._pause(None)
        return pause

    def _followed(self) -> Follower:
        """The store as it is now; in a file that took its place everything is new."""
        found = self._follower
        if found is not None and not found.gone:
            return found
        self.close()
        self._next = None
        follower = self._follower = Follower(self._path, self._name)
        place = follower.place()
        if place is None:
            place = self._begin
            follower.keep(place)
        self._begin = 0
        self._place = place
        return follower

    def _made(self, follower: Follower) -> _Next | None:
        missed = follower.begin() - self._place
        if missed > 0:
            self.spans["missed"] += missed
            self._place += missed
            _log.warning(
                "spans left the store before they were exported: at most %d", missed, extra={"event": "export_missed"}
            )
        stretch = follower.after(self._place, self._most, _BATCH_BYTES)
        if stretch.place == self._place:
            self.waiting = 0
            return None
        told = [span for span in stretch.spans if span.start > 0]
        message, encoded = _encoded(told)
        unsendable = len(stretch.spans) + stretch.unreadable - encoded
        return _Next(message, encoded, unsendable, stretch.place)

    def _deliver(self, follower: Follower, made: _Next) -> float:
        delivery: Delivery = self._post(made.message) if made.spans else Taken()
        match delivery:
            case Taken(rejected=rejected):
                rejected = min(rejected, made.spans)
                self._done(follower, made, made.spans - rejected, rejected)
            case Unwanted(error=error):
                _log.error("%d spans were not wanted: %s", made.spans, error, extra={"event": "export_unwanted"})
                self._done(follower, made, 0, made.spans)
            case TooLarge():
                if made.spans > 1:
                    self._next, self._most = None, max(1, made.spans // 2)
                else:
                    self._done(follower, made, 0, made.spans)
            case Later(error=error, after=after):
                self.failures[error] = self.failures.get(error, 0) + 1
                if self.up is not False:
                    _log.warning("spans wait to be exported: %s", error, extra={"event": "export_down", "error": error})
                self.up = False
                return self._pause(after)
            case _:
                assert_never(delivery)
        return 0.0

    def _done(self, follower: Follower, made: _Next, sent: int, rejected: int) -> None:
        self._next, self._failed = None, 0
        self._place = made.place
        follower.keep(made.place)
        self._most = min(BATCH, self._most * 2)
        self.spans["sent"] += sent
        self.spans["rejected"] += rejected
        self.spans["unsendable"] += made.unsendable
        if made.spans:
            if self.up is False:
                _log.info("spans are exported again", extra={"event": "export_up"})
            self.up = True

    def _pause(self, wished: float | None) -> float:
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failed, 10))
        self._failed += 1
        return max(wished or 0.0, self._dice.uniform(longest / 2, longest))

    def page(self) -> Iterator[str]:
        """Its part of the page of metrics."""
        yield from family(
            "headway_export_spans_total",
            "counter",
            "Spans by what the export came to; missed ones, which left the store first, are counted at most.",
            [({"outcome": outcome}, count) for outcome, count in self.spans.items()],
        )
        yield from family(
            "headway_export_failures_total",
            "counter",
            "Messages that the endpoint did not take and that are sent again.",
            [({"error_type": error}, count) for error, count in self.failures.items()],
        )
        yield from family(
            "headway_export_spans_waiting",
            "gauge",
            "Spans in the store that are not exported yet, at most.",
            [({}, self.waiting)],
        )
        if self.up is not None:
            what = "1: the endpoint took the last message."
            yield from family("headway_export_endpoint_up", "gauge", what, [({}, int(self.up))])


def _encoded(spans: Sequence[Span], encode: Callable[[Sequence[Span]], bytes] = to_otlp_protobuf) -> tuple[bytes, int]:
    """A message of all spans that can be told, and how many those are."""
    try:
        return encode(spans), len(spans)
    except ValueError:
        if len(spans) <= 1:
            return b"", 0
    # Messages of protobuf that follow one another are one message: repeated fields add up.
    pieces = [_encoded([span]) for span in spans]
    return b"".join([piece for piece, _ in pieces]), sum(count for _, count in pieces)
