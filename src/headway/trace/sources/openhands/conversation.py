"""Conversations of OpenHands: trajectories of its first generation, events and states of its software agent SDK."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final, cast

import msgspec
from msgspec import Raw, Struct

from headway.core.span import ModelCall
from headway.core.task import SessionId
from headway.trace.sources.digests import digest, span_id, task_id
from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.openhands.meter import Account, accounts
from headway.trace.sources.openhands.rows import (
    EVENT,
    OLD_EVENT,
    STATE,
    Event,
    OldEvent,
    State,
    is_event,
    is_old,
    is_state,
)
from headway.trace.sources.openhands.v0 import Trajectory
from headway.trace.sources.openhands.v1 import Conversation
from headway.trace.sources.session.draft import Draft
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_LAID: Final = "Calls are laid one after the other: the state tells how long each took, but not when it was."


class _Kind(Struct):
    """What tells one kind of row from another."""

    kind: object = None
    action: object = None
    observation: object = None


class _Page(Struct):
    """What may hold rows."""

    items: list[Raw] | None = None
    history: list[Raw] | None = None


_KIND: Final = msgspec.json.Decoder(_Kind)
_PAGE: Final = msgspec.json.Decoder(_Page)
_LISTED: Final = msgspec.json.Decoder(list[Raw])
_SHAPELESS: Final = "an event or state in no known shape"


class OpenHands:
    """Importer of what OpenHands keeps of a conversation."""

    name = "openhands"
    title = "OpenHands conversation"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By the fields that its events and states have together."""
        found = sample.first()
        held = found.get("items", found.get("history"))
        if isinstance(held, list) and held and isinstance(cast("list[object]", held)[0], dict):
            found = cast("list[dict[str, object]]", held)[0]
        return is_event(found) or is_old(found) or is_state(found)

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each message of a user. Events that have a file each belong to the folder's conversation."""
        kept: dict[str, _Kept] = {}
        for document in documents:
            rows = [row for record in document.records(skips) for row in _rows(record, skips)]
            alone = len(rows) == 1
            place = PurePath(document.name).parent
            if place.name == "events":
                place = place.parent
            conversation = kept.setdefault(str(place) if alone else document.name, _Kept(document.name))
            for row in rows:
                match row:
                    case Event():
                        conversation.events.append(row)
                    case OldEvent():
                        conversation.old.append(row)
                    case State():
                        conversation.state = row
        for conversation in kept.values():
            yield from conversation.pieces(skips)


class _Kept:
    """All that is kept of one conversation."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.events: list[Event] = []
        self.old: list[OldEvent] = []
        self.state: State | None = None

    def pieces(self, skips: Skips) -> Iterator[Piece]:
        """Its tasks."""
        if self.old:
            trajectory = Trajectory(digest("openhands", *(f"{one.id} {one.timestamp}" for one in self.old)))
            self._count([one.timestamp for one in self.old if not trajectory.hear(one)], skips)
            yield from trajectory.pieces()
        made = list(accounts(self.state.stats)) if self.state is not None else []
        if self.events:
            yield from self._conversation(made, skips)
        elif self.state is not None and made:
            yield _state(self.state, made)
        elif self.state is not None:
            skips.add("the state of a conversation in which no model was called", self.where)

    def _conversation(self, made: list[Account], skips: Skips) -> Iterator[Piece]:
        key = digest("openhands", self.events[0].id)
        named = self.state.id if self.state is not None else None
        conversation = Conversation(key, SessionId(named or key), {one.id: one for one in made})
        ordered = sorted(self.events, key=lambda event: event.timestamp)
        self._count([event.timestamp for event in ordered if not conversation.hear(event)], skips)
        for reason in conversation.unused:
            skips.add(reason, self.where)
        yield from conversation.pieces()

    def _count(self, times: list[str], skips: Skips) -> None:
        for _ in times:
            skips.add("an event whose time is none", self.where)


def _rows(record: Record, skips: Skips) -> Iterator[Event | OldEvent | State]:
    for row in _split(record, skips):
        kind = decode(_KIND, row, skips, _SHAPELESS)
        if kind is None:
            continue
        if kind.kind is not None:
            found = decode(EVENT, row, skips, _SHAPELESS)
        elif kind.action is not None or kind.observation is not None:
            found = decode(OLD_EVENT, row, skips, _SHAPELESS)
        else:
            found = decode(STATE, row, skips, _SHAPELESS)
        if found is not None:
            yield found


def _split(record: Record, skips: Skips) -> Iterator[Record]:
    """The rows in a record, or the one that it is."""
    if record.data.lstrip()[:1] == b"[":
        listed = decode(_LISTED, record, skips, "a record that is broken")
    else:
        page = decode(_PAGE, record, skips, "a record that is broken")
        listed = None if page is None else page.items or page.history
        if page is not None and not listed:
            yield record
    for number, raw in enumerate(listed or (), 1):
        yield Record(bytes(raw), f"{record.where}, row {number}")


def _state(state: State, made: list[Account]) -> Piece:
    """A conversation of which only the state was kept."""
    key = digest("openhands", state.id or made[0].id)
    draft = Draft(span_id(key, "task"), "OpenHands", 0.0)
    now = 0.0
    for number, one in enumerate(made):
        work = ModelCall(model=one.model, usage=one.usage, cost=one.cost)
        end = None if one.seconds is None else now + one.seconds
        draft.call(span_id(key, "call", str(number)), now, end, work)
        now = now if end is None else end
    timed = any(one.seconds is not None for one in made)
    draft.remarks += [_LAID] if timed else []
    return draft.piece(task_id(key), SessionId(state.id or key), "durations" if timed else "none")
