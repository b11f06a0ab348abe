"""From what a person names to an account: tasks of the live store, or files of any format with one task or many."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct, structs

from headway.app.gathering import Gathering, Heard
from headway.app.naming import first_words, resolve
from headway.app.report.figures import plural, printable
from headway.app.slowest import Slowest
from headway.core.errors import BadInputError, NotFoundError
from headway.core.task import TaskId
from headway.trace.account import TaskAccount, account_of
from headway.trace.facts import TaskFacts
from headway.trace.filed import Row, put_away, taken_out
from headway.trace.prices import PriceOf, price_for
from headway.trace.set_study import SetStudy
from headway.trace.sources.intake import Imported, Intake
from headway.trace.sources.verdict import judge
from headway.trace.store import Store, nothing_recorded
from headway.trace.whatif import Outcome, what_if
from headway.trace.whatif_text import WhatIf
from headway.trace.workers import rarely_collected

ALL = 1_000_000
"""More tasks than a store holds."""
OURS = "Headway's gateway"


class Found(Struct, frozen=True, kw_only=True):
    """What was named: one task, or a set."""

    task: TaskAccount | None
    """Where there is just one, or one was asked for."""
    record: Imported | None
    """That task as it was recorded."""
    outcome: Outcome | None
    """That task with the changes that were asked for."""
    study: SetStudy
    """All tasks, each as a row."""
    slowest: tuple[Imported, ...]
    """Of a set, the slowest tasks as they were recorded, the slowest first."""
    intake: Intake | None
    """The import; none where the tasks come from the live store."""
    note: str | None = None
    """What is to be known before all else, in a sentence: that there is something newer."""


class Question(Struct, frozen=True, kw_only=True):
    """What is asked of tasks, whatever they come from."""

    task: str | None = None
    """The beginning of the id of the one that is wanted."""
    changes: tuple[WhatIf, ...] = ()
    prices: PriceOf = price_for
    each: Callable[[Imported], None] | None = None
    """Given every task that is explained, as it is read."""


def read_files(names: Sequence[str], question: Question, heard: Heard = lambda _: None, *, processes: int = 1) -> Found:
    """Account for everything under the names; of each task but few, no more than a row is kept.

    Raises:
        NotFoundError: a name means nothing, nothing in the files is a task, or none or several have the id.
        BadInputError: a named file cannot be read.
        WorkerError: a process that helped to read died.
    """
    gathering = Gathering(names, question.prices, processes=processes, heard=heard)
    return _found(gathering.rows(), question, gathering.intake, processes)


def read_store(store: Store, question: Question) -> Found:
    """Account for the tasks of a live store: for all, or for the one that is wanted.

    Raises:
        NotFoundError: nothing is recorded, or no task has the id.
        BadInputError: several have it.
    """
    ids = [row.task for row in store.tasks(ALL)] if question.task is None else [resolve(store, question.task)]
    if not ids:
        raise nothing_recorded(store.path)
    return _found((put_away(_imported(store, task), question.prices) for task in ids), question, None, 1)


def read_last(store: Store, question: Question) -> Found:
    """Account for the task of a live store that was active last.

    Raises:
        NotFoundError: nothing is recorded.
    """
    last = store.last()
    if last is None:
        raise nothing_recorded(store.path)
    found = read_store(store, structs.replace(question, task=last))
    return structs.replace(found, note=_newer(store, last))


def read_rows(
    names: Sequence[str], prices: PriceOf, heard: Heard = lambda _: None, *, processes: int = 1
) -> list[TaskFacts]:
    """A row of every task under the names.

    Raises:
        NotFoundError: a name means nothing, or nothing in the files is a task.
        BadInputError: a named file cannot be read.
        WorkerError: a process that helped to read died.
    """
    return [row.facts for row in Gathering(names, prices, processes=processes, heard=heard).rows()]


def are_files(names: Sequence[str]) -> bool:
    """Whether names are meant as files, not as the ids of recorded tasks, which have no dots, slashes or stars."""
    return any(name == "-" or set(name) & set("/*?.~[") or Path(name).exists() for name in names)


def _newer(store: Store, last: TaskId) -> str | None:
    """Whoever asks for the last task has to know that a later request never became one."""
    newest = store.tasks(1)[0]
    if not newest.refused:
        return None
    errors = sorted({str(span.error) for span in store.spans(newest.task)})
    told = f"The last request reached no engine ({printable(', '.join(errors))})"
    if newest.task != last:
        told += f"; this is the last task that did. Of the request: headway explain {newest.task}"
    return f"{told}."


def _imported(store: Store, task: TaskId) -> Imported:
    spans = store.spans(task)
    return Imported(task=task, title=first_words(spans) or None, spans=spans, verdict=judge(spans, OURS, "spans"))


@rarely_collected()
def _found(tasks: Iterable[Row], question: Question, intake: Intake | None, processes: int) -> Found:
    study = SetStudy(question.prices, question.changes, processes=processes)
    slowest, wanted = Slowest(), list[Imported]()
    for row in tasks:
        study.take(row)
        slowest.offer(row)
        asked = question.task is None or row.facts.task.startswith(question.task)
        if asked and question.each is not None:
            question.each(taken_out(row))
        if len(study.rows) == 1 if question.task is None else asked:
            wanted.append(taken_out(row))
    if question.task is None and len(study.rows) > 1:
        if question.changes and all(row.e2e is None for row in study.rows):
            raise _nothing_to_replay(next(iter(study.rows)).source)
        return Found(task=None, record=None, outcome=None, study=study, slowest=slowest.kept(), intake=intake)
    wanted = [one for one in wanted if one.task == question.task] or wanted  # an id may begin as another one does
    if len(wanted) != 1:
        raise NotFoundError(
            f"{f'{len(wanted):,}' if wanted else 'None'} of {plural(len(study.rows), 'task')}"
            f" begin{'s' if len(study.rows) == 1 else ''} with {question.task!r}.",
            fix="Leave --task out to see the slowest, and give enough of the id.",
        )
    (one,) = wanted
    return Found(
        task=account_of(one.spans, one.verdict, one.title, prices=question.prices),
        record=one,
        outcome=what_if(one.spans, question.changes, prices=question.prices) if _replayed(one, question) else None,
        study=study,
        slowest=(),
        intake=intake,
    )


def _replayed(one: Imported, question: Question) -> bool:
    if question.changes and not one.verdict.timed:
        raise _nothing_to_replay(one.verdict.source)
    return bool(question.changes)


def _nothing_to_replay(source: str) -> BadInputError:
    return BadInputError(
        f"{source} does not say when things happened, so nothing can be replayed.",
        fix="Leave --what-if out, or record spans with start and end.",
    )
