"""What may be asked over MCP, and the answers: the library calls of the command line, as a document and as text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from headway.app import explaining
from headway.app.explaining import Found, read_files, read_last, read_store
from headway.app.naming import spans_named
from headway.app.report.decisions import decisions_page
from headway.app.report.decisions_document import decisions_json, decisions_of
from headway.app.report.layout import plain
from headway.app.report.tasks import TaskTable
from headway.app.report.tasks_document import tasks_json
from headway.app.writing import document_of, markdown_of
from headway.core.errors import BadInputError
from headway.trace.prices import PriceOf
from headway.trace.store import Store, nothing_recorded
from headway.trace.whatif_text import parse

_DETAILS: Final = ("spans", "path", "terms")
"""What grows with the task, and is of little use to a model that reads it."""


class Sources(Struct, frozen=True, kw_only=True):
    """What may be asked about."""

    store: Path
    """The store of spans."""
    prices: PriceOf
    files: bool
    """Whether callers may name files for this process to read."""


class Answer(Struct, frozen=True):
    """An answer, twice."""

    text: str
    document: dict[str, Any]


class Named(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which task, or which tasks."""

    task: Annotated[
        str | None,
        Meta(
            description="A task's id or its beginning, from `tasks`; with `files`, the one in them with this id."
            " Left out: the recorded task that was active last, or all tasks in `files`."
        ),
    ] = None
    all: Annotated[bool, Meta(description="All recorded tasks, as a set, with p50, p95 and p99.")] = False
    files: Annotated[
        tuple[str, ...],
        Meta(
            description="Trace files, folders or patterns of any tool, instead of what was recorded; the format is"
            " told by the content."
        ),
    ] = ()
    details: Annotated[
        bool, Meta(description="Of one task, also every span, the critical path and each call's terms; may be long.")
    ] = False


class Changed(Named, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which task, and what would be different."""

    changes: Annotated[
        str,
        Meta(
            description="What to change, with commas between: 'iterations -3', 'cache 100%', 'tpot 0.5x', 'ttft 0.5x',"
            " 'tools parallel', 'tool:NAME 2s'."
        ),
    ]


class Listed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tasks to list."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="How many at most.")] = 20
    errors: Annotated[bool, Meta(description="Only tasks in which something failed.")] = False
    model: Annotated[str | None, Meta(description="Only tasks that called this model.")] = None


class Decided(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which call."""

    id: Annotated[str, Meta(min_length=1, description="A call's or a task's id, or the beginning of it.")]


def explain(sources: Sources, asked: Named) -> Answer:
    """Where the time, the tokens and the money of a task, or of many, went.

    Raises:
        HeadwayError: what was named is not there, or cannot be read.
    """
    return _account(_found(sources, asked, ""), asked)


def what_if(sources: Sources, asked: Changed) -> Answer:
    """The same with changes, by replaying; raises as `explain`."""
    return _account(_found(sources, asked, asked.changes), asked)


def tasks(sources: Sources, asked: Listed) -> Answer:
    """What was recorded, the task active last first; raises as `explain`."""
    with Store(sources.store, readonly=True) as store:
        rows = store.tasks(asked.limit, errors=asked.errors, model=asked.model)
        if store.last() is None:
            raise nothing_recorded(store.path)
        others = store.neighbours(row.task for row in rows)
    return _answer(plain(TaskTable(rows, others)), tasks_json(rows))


def why(sources: Sources, asked: Decided) -> Answer:
    """What was decided about a call, or all calls of a task, and why; raises as `explain`."""
    with Store(sources.store, readonly=True) as store:
        calls = decisions_of(spans_named(store, asked.id))
    return _answer(plain(decisions_page(calls)), decisions_json(calls))


def _found(sources: Sources, asked: Named, changes: str) -> Found:
    question = explaining.Question(task=asked.task, changes=parse(changes) if changes else (), prices=sources.prices)
    if asked.files:
        return read_files(_readable(sources, asked.files), question)
    if asked.all and asked.task is not None:
        raise BadInputError("Both a task and all of them were asked for.", fix="Leave `task` or `all` out.")
    with Store(sources.store, readonly=True) as store:
        if asked.task is None and not asked.all:
            return read_last(store, question)
        return read_store(store, question)


def _readable(sources: Sources, files: Sequence[str]) -> Sequence[str]:
    if not sources.files:
        raise BadInputError(
            "This server reads no files that callers name.",
            fix="Ask about recorded tasks, or start it as `headway mcp --port … --files`.",
        )
    if "-" in files:
        raise BadInputError("Standard input is not there to be read.", fix="Name a file.")
    return files


def _account(found: Found, asked: Named) -> Answer:
    answer = _answer(markdown_of(found), document_of(found))
    if asked.details or found.task is None:
        return answer
    return Answer(answer.text, {name: value for name, value in answer.document.items() if name not in _DETAILS})


def _answer(text: str, document: str) -> Answer:
    return Answer(text, msgspec.json.decode(document, type=dict[str, Any]))
