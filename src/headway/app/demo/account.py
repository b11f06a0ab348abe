"""What Headway recorded of one question, and whether its numbers add up."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from rich.text import Text

from headway.agents.knowledge.agent import KnowledgeAnswer
from headway.app.demo.counters import Counters, Verdict, judge
from headway.app.report.figures import count
from headway.core.errors import NotFoundError
from headway.core.span import ModelCall
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.policy.headers import RETRY_HEADER
from headway.trace.account import TaskAccount, recorded
from headway.trace.anatomy import Anatomy
from headway.trace.store import Store
from headway.trace.task_row import TaskRow

PATIENCE: Final = 5.0
"""Seconds for the last span to reach the store; it is written within a tenth of one."""
GLANCE: Final = 0.05
ROUNDING: Final = 1e-6
"""Seconds by which sums of floats may be off."""


class Account(Struct, frozen=True, kw_only=True):
    """An answer and the anatomy of its task."""

    answer: KnowledgeAnswer
    task: TaskAccount
    tasks: int
    """Tasks that Headway took the question's calls for: more than one are a wrong identification."""

    @property
    def anatomy(self) -> Anatomy:
        """The task, dissected."""
        return self.task.anatomy


def known_tasks(store: Store) -> frozenset[TaskId]:
    """Tasks that are there already."""
    return frozenset(row.task for row in store.tasks(limit=1000))


async def account(store: Store, known: frozenset[TaskId], answer: KnowledgeAnswer) -> Account:
    """The account of the task that was recorded since ``known``.

    Raises:
        NotFoundError: its calls did not appear in the store in time.
    """
    rows = await _rows(store, known, len(answer.calls))
    spans = store.spans(max(rows, key=lambda row: row.calls).task)
    return Account(answer=answer, task=recorded(spans), tasks=len(rows))


async def _rows(store: Store, known: frozenset[TaskId], calls: int) -> list[TaskRow]:
    rows: list[TaskRow] = []
    try:
        async with asyncio.timeout(PATIENCE):
            while _good(rows) < calls:
                await asyncio.sleep(GLANCE)  # the store belongs to another process, which cannot tell us
                rows = [row for row in store.tasks(limit=100) if row.task not in known]
    except TimeoutError as error:
        raise NotFoundError(
            f"The agent made {calls} calls, but {_good(rows)} are recorded as answered in {store.path}.",
            fix="The gateway's log says whether spans were dropped.",
        ) from error
    return rows


def _good(rows: Sequence[TaskRow]) -> int:
    """Calls that were answered: those that broke off were made again, and the agent counts only the last."""
    return sum(row.calls - row.errors for row in rows)


def checks(
    accounts: Sequence[Account],
    before: Mapping[str, Counters | None],
    after: Mapping[str, Counters | None],
    gone: Sequence[str],
) -> tuple[Verdict, ...]:
    """Do terms sum to E2E, does each question show as one task, and do report, client and engines count the same?"""
    report = _sum([one.anatomy.usage for one in accounts])
    engines = judge(before, after, gone, report)
    prefix = {True: "engine counters agree: ", False: "engine counters differ: ", None: "engine counters unknown: "}
    off = max(abs(sum(one.anatomy.phases.values()) - one.anatomy.e2e) for one in accounts)
    split = [f"{one.answer.mode} shows as {one.tasks} tasks" for one in accounts if one.tasks > 1]
    return (
        Verdict(agree=off <= ROUNDING, words=f"the critical path's terms sum to E2E, to within {ROUNDING:g} s"),
        Verdict(
            agree=not split, words="; ".join(split) or f"each question was recognised as one task, {_by(accounts)}"
        ),
        _same_tokens(accounts),
        Verdict(agree=engines.agree, words=prefix[engines.agree] + engines.words),
    )


def _by(accounts: Sequence[Account]) -> str:
    """What the gateway had to go by; a call that is made again says so, as OpenAI's own client has it say."""
    calls = [bar.span.work for one in accounts for bar in one.anatomy.bars]
    if any(type(call) is ModelCall and call.sent_before for call in calls):
        return f"without headers but {RETRY_HEADER}, which OpenAI's client sends with a call that it repeats"
    return "without headers"


def _same_tokens(accounts: Sequence[Account]) -> Verdict:
    if any(one.anatomy.failures for one in accounts):
        return Verdict(agree=None, words="calls broke off and were made again: what they cost the client cannot tell")
    report, client = (
        _sum(usages) for usages in zip(*((a.anatomy.usage, a.answer.usage) for a in accounts), strict=True)
    )
    same = "the same tokens" if report == client else f"different tokens: {_tokens(report)} and {_tokens(client)}"
    return Verdict(agree=report == client, words=f"report and client count {same}")


def _tokens(usage: Usage) -> str:
    return f"{count(usage.input_tokens)} in ({count(usage.cache_read)} cached), {count(usage.output_tokens)} out"


def _sum(usages: Sequence[Usage]) -> Usage:
    def total(field: Callable[[Usage], int | None]) -> int | None:
        counts = [field(usage) for usage in usages]
        known = [value for value in counts if value is not None]
        return sum(known) if len(known) == len(counts) else None

    return Usage(
        input_tokens=total(lambda usage: usage.input_tokens),
        output_tokens=total(lambda usage: usage.output_tokens),
        cache_read=total(lambda usage: usage.cache_read),
    )


def verdict_line(verdict: Verdict) -> Text:
    """A verdict as one line."""
    sign, style = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("?", "yellow")}[verdict.agree]
    return Text.assemble(("  " + sign + " ", style), verdict.words)
