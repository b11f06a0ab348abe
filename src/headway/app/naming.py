"""Naming a task by the beginning of its id: where several tasks share that, what tells them apart is shown."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from headway.app.report.figures import moment, plural, printable, short_id
from headway.core.errors import AmbiguousError, BadInputError, NotFoundError
from headway.core.span import Span
from headway.core.task import TaskId
from headway.trace.sources.secrets import masked
from headway.trace.store import Store

_WORDS: Final = 48
_MODELS: Final = 24
_SPANS: Final = 500
"""A task of more spans is not searched for its first words."""


def resolve(store: Store, beginning: str) -> TaskId:
    """The one task whose id begins so.

    Raises:
        BadInputError: several do; each is listed with when it started, its calls, models and, where text is kept, its
            first words, by the shortest id that would name it alone.
        NotFoundError: none does.
    """
    try:
        return store.resolve(beginning)
    except AmbiguousError as error:
        rows = [_row(store, TaskId(task), error.candidates) for task in error.candidates]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        more = " and more" if error.more else ""
        raise BadInputError(
            "\n  ".join([f"{plural(len(rows), 'task')}{more} begin with {beginning!r}:", *lines]),
            fix="Give more of the id: as much as is shown is enough.",
        ) from error


def spans_named(store: Store, beginning: str) -> tuple[Span, ...]:
    """The spans of the task whose id begins so; where there is none, the spans whose own ids do.

    Raises:
        BadInputError: several tasks do.
        NotFoundError: neither does.
    """
    try:
        return store.spans(resolve(store, beginning))
    except NotFoundError:
        spans = store.beginning(beginning)
        if not spans:
            raise
        return spans


def first_words(spans: Sequence[Span]) -> str:
    """How the user's request begins, from the first call whose text was kept, keys masked; empty where none was."""
    prompt = next((span.text[0] for span in sorted(spans, key=lambda span: span.start) if span.text is not None), "")
    try:
        messages = msgspec.json.decode(prompt or "[]", type=list[_Message])
    except msgspec.MsgspecError:
        return ""  # a prompt of another shape: only a hint is missing
    said = next((message.content for message in reversed(messages) if message.role == "user"), None) or ""
    text = said if isinstance(said, str) else " ".join(part.text for part in said)
    return printable(_cut(masked(" ".join(text[: 8 * _WORDS].split())), _WORDS))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


class _Part(Struct):
    text: str = ""


class _Message(Struct):
    role: str = ""
    content: str | list[_Part] | None = None


def _row(store: Store, task: TaskId, others: Sequence[str]) -> tuple[str, ...]:
    row = store.row(task)
    words = first_words(store.spans(task)) if row.spans <= _SPANS else ""
    return (
        printable(short_id(task, [TaskId(other) for other in others])),
        moment(row.started_at),
        plural(row.calls, "call"),
        printable(_cut(", ".join(row.models), _MODELS)),
        f"“{words}”" if words else "",
    )
