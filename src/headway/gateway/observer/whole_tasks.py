"""Figures of whole tasks, counted once each when the task is over, by the analysis that `headway explain` uses.

A task is over when nothing was heard of it for a while: a short one after an answer that asks for no tool, a long one
while a tool is at work. What comes later still is counted as late and changes no figure.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from headway.core.span import ModelCall, Span
from headway.core.task import TaskId
from headway.gateway.exposition import Histogram, family, histograms
from headway.trace.facts import TaskFacts, facts_of
from headway.trace.prices import PriceOf, price_for
from headway.trace.sources.verdict import judge

_log = logging.getLogger(__name__)

QUIET: Final = 30.0
"""Seconds without news after which a task is over whose last call asked for no tool."""
TOOL_QUIET: Final = 900.0
"""The same while a tool is at work."""
OPEN: Final = 10_000
"""Tasks that may be open; beyond, the one that was quiet longest is taken to be over."""
NAMES: Final = 100
"""Models, and tenants, with a label of their own."""
LABEL_SETS: Final = 300
"""Of model, tenant and status; all others share those of ``other``."""
OTHER: Final = "other"
_LABEL_CHARS: Final = 128

# Bounds: seconds from one call to hours of work; calls; tokens in powers of 4; dollars; shares; replicas changed.
_SECONDS: Final = (0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 3600)
_CALLS: Final = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)
_TOKENS: Final = tuple(4**power for power in range(4, 14))
_DOLLARS: Final = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
_SHARE: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_MOVES: Final = (0, 1, 2, 3, 5, 8, 13, 21)
_MICRO: Final = 1_000_000


class Figure(Struct, frozen=True):
    """One histogram of tasks."""

    name: str
    what: str
    bounds: tuple[float, ...]
    labels: dict[str, str] = {}


FIGURES: Final = (
    Figure(
        "headway_task_duration_seconds", "From the request to the end of the task, a person's time left out.", _SECONDS
    ),
    Figure("headway_task_calls", "Model calls on the task's loop.", _CALLS),
    Figure(
        "headway_task_tokens", "Tokens of all calls, where all of them tell.", _TOKENS, {"gen_ai_token_type": "input"}
    ),
    Figure(
        "headway_task_tokens", "Tokens of all calls, where all of them tell.", _TOKENS, {"gen_ai_token_type": "output"}
    ),
    Figure("headway_task_cost_usd", "US dollars for all calls, where all prices are known.", _DOLLARS),
    Figure("headway_task_cached_ratio", "Share of the input tokens that caches gave.", _SHARE),
    Figure("headway_task_recomputed_tokens", "Input tokens computed though an earlier call of the task had.", _TOKENS),
    Figure("headway_task_replica_moves", "How often a call went to another replica than the one before.", _MOVES),
)


class _Open(Struct):
    heard: float
    """When there was news; the observer's clock."""
    last: float = 0.0
    """End of the call that ended last."""
    tools: bool = False
    """It asked for tools."""


Spans = Callable[[TaskId], Sequence[Span]]
"""All spans of a task."""


class WholeTasks:
    """Histograms of tasks.

    Args:
        spans: reads a task.
        prices: of tokens.
    """

    def __init__(self, spans: Spans, prices: PriceOf = price_for) -> None:
        self._spans = spans
        self._prices = prices
        self._open: OrderedDict[TaskId, _Open] = OrderedDict()
        self._counted: OrderedDict[TaskId, None] = OrderedDict()
        self._models: set[str] = set()
        self._tenants: set[str] = set()
        self._series: dict[tuple[str, str, str], tuple[Histogram, ...]] = {}
        self.late = 0
        """Spans that came after their task was counted."""
        self.uncounted = 0
        """Tasks that could not be taken apart."""

    @property
    def open(self) -> int:
        """Tasks that are not over."""
        return len(self._open)

    def hear(self, span: Span, now: float) -> None:
        """There is news of a task; ``now`` in seconds on any clock that does not step."""
        task = span.task
        if task in self._counted:
            self.late += 1
            return
        state = self._open.get(task)
        if state is None:
            state = self._open[task] = _Open(now)
        state.heard = now
        self._open.move_to_end(task)
        end = span.start if span.end is None else span.end
        if isinstance(span.work, ModelCall) and end >= state.last:
            state.last, state.tools = end, bool(span.work.tool_calls)

    def count_quiet(self, now: float) -> int:
        """Count the tasks that are over; returns how many."""
        over = [
            task for task, state in self._open.items() if now - state.heard >= (TOOL_QUIET if state.tools else QUIET)
        ]
        over += list(self._open)[: max(0, len(self._open) - OPEN)]
        for task in dict.fromkeys(over):
            del self._open[task]
            self._counted[task] = None
            if len(self._counted) > OPEN:
                self._counted.popitem(last=False)
            self._count(task)
        return len(over)

    def _count(self, task: TaskId) -> None:
        spans = self._spans(task)
        if not any(isinstance(span.work, ModelCall) for span in spans):
            return
        try:
            facts = facts_of(spans, judge(spans, "Headway", "spans"), prices=self._prices)
        except Exception as error:  # noqa: BLE001 - a record that nobody foresaw must not end the counting of all others
            self.uncounted += 1
            _log.warning(
                "task %s could not be counted: %s",
                task,
                type(error).__name__,
                extra={"event": "task_uncounted", "task": task},
            )
            return
        held = self._labelled(facts, spans)
        for histogram, value in zip(held, _values(facts, spans), strict=True):
            if value is not None:
                histogram.observe((value,))

    def _labelled(self, facts: TaskFacts, spans: Sequence[Span]) -> tuple[Histogram, ...]:
        calls = [span.work for span in spans if isinstance(span.work, ModelCall)]
        refused = all(call.attempts == 0 and call.given_again is None for call in calls)
        status = "refused" if refused else "error" if facts.failed else "ok"
        # A model that no engine was asked for is whatever a client wrote.
        model = max(facts.models, key=lambda name: facts.models[name].calls, default=OTHER) if not refused else OTHER
        tenant = next((span.tenant for span in spans if span.tenant is not None), "")
        key = (_bounded(model, self._models), _bounded(tenant, self._tenants) if tenant else "", status)
        if key not in self._series and len(self._series) >= LABEL_SETS:
            key = (OTHER, OTHER, status)
        return self._series.setdefault(key, tuple([Histogram(figure.bounds) for figure in FIGURES]))

    def page(self) -> Iterator[str]:
        """Their part of the page of metrics."""
        series = [
            ({"gen_ai_request_model": model, "tenant": tenant, "status": status}, held)
            for (model, tenant, status), held in self._series.items()
        ]
        for name in dict.fromkeys(figure.name for figure in FIGURES):
            which = [i for i, figure in enumerate(FIGURES) if figure.name == name]
            samples = [(labels | FIGURES[i].labels, held[i]) for labels, held in series for i in which]
            yield from histograms(name, FIGURES[which[0]].what, samples)
        for name, kind, what, value in (
            ("headway_tasks_open", "gauge", "Tasks that are not over.", self.open),
            ("headway_task_late_spans_total", "counter", "Spans that came after their task was counted.", self.late),
            ("headway_tasks_uncounted_total", "counter", "Tasks that could not be taken apart.", self.uncounted),
        ):
            yield from family(name, kind, what, [({}, value)])


def _values(facts: TaskFacts, spans: Sequence[Span]) -> tuple[float | None, ...]:
    """The values of `FIGURES`; ``None``: unknown, and so not counted."""
    spent = facts.spent
    read, cached = spent.input_tokens.exact, spent.cache_read.exact
    cost = spent.cost.exact
    return (
        facts.e2e,
        facts.n,
        read,
        spent.output_tokens.exact,
        None if cost is None else cost / _MICRO,
        cached / read if read and cached is not None else None,
        facts.recomputed,
        moves(spans),
    )


def moves(spans: Sequence[Span]) -> int:
    """How often a call of a task was served by another replica than the call before it, in order of their starts."""
    calls = sorted((span for span in spans if isinstance(span.work, ModelCall)), key=lambda span: span.start)
    replicas = [
        span.work.replica for span in calls if isinstance(span.work, ModelCall) and span.work.replica is not None
    ]
    return sum(before != after for before, after in pairwise(replicas))


def _bounded(name: str, known: set[str]) -> str:
    if name in known:
        return name
    if len(known) >= NAMES or len(name) > _LABEL_CHARS:
        return OTHER
    known.add(name)
    return name
