"""Where the time, the tokens and the money of one task went."""

from itertools import repeat

from msgspec import Struct, structs

from headway.core.money import MicroUsd
from headway.core.span import ModelCall
from headway.core.spent import Spent
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.answer import task_ttft, task_ttft_most
from headway.trace.loop import Turn, spent
from headway.trace.own_totals import Told
from headway.trace.path import Segment
from headway.trace.phases import DECODE, HOP, MODEL, PREFILL, QUEUE, RETRIEVAL, RETRY, TOOL, Phase, engine_tpot
from headway.trace.prices import PriceOf, price_for
from headway.trace.study import Task, study
from headway.trace.totals import total
from headway.trace.tree import UNENDED, Tree
from headway.trace.waterfall import Bar, bars_of

__all__ = ["Anatomy", "Bar", "Iteration", "dissect", "tpot", "ttft"]


class Iteration(Struct, frozen=True, kw_only=True, gc=False):
    """One term of the formula: a model call on the critical path and what came before the next one.

    ``hop + retry + queue + prefill + decode + model_unsplit + tools`` are its seconds on the path; over all iterations
    (plus ``Anatomy.lead_in``) they sum to E2E exactly, because they are the tiles of the path.
    """

    span: SpanId
    model: str
    hop: float
    queue: float
    prefill: float
    """TTFT less any queueing that the engine reported."""
    decode: float
    model_unsplit: float
    tools: float
    """Tools and retrievals."""
    ttft: float | None
    """First token - sent; unknown where nothing was streamed."""
    tpot: float | None
    """(last token - first token) / (output_tokens - 1), else by the engine's own timings, else up to the call's end;
    unknown where decode or the number of tokens is."""
    usage: Usage
    retry: float = 0.0
    """Attempts at the call that failed before it was served or failed last, and the pauses after them."""
    tpot_by_engine: bool = False
    """Whether ``tpot`` rests on the engine's own timings, for want of a timed stream or of a count of its tokens."""
    tpot_to_end: bool = False
    """Whether the last token was not timed and is taken to have come at the call's end: then ``tpot`` is the most that
    it can have been."""
    given_again: bool = False
    """Whether its answer was kept of an earlier call, so that no engine was asked."""


class Anatomy(Struct, frozen=True, kw_only=True):
    """The whole account of one task. Seconds; ``None`` is unknown and ``unknowns`` says why."""

    task: TaskId
    """The empty string when there was no span to name it."""
    session: SessionId | None
    started_at: float
    """Epoch seconds."""
    e2e: float
    n: int
    """Model calls on the task's loop, i.e. on the critical path; one that failed and was made again is one."""
    calls: int
    """All model calls, sub-agents, parallel branches and detached work included."""
    path: tuple[Segment, ...]
    phases: dict[Phase, float]
    """Seconds on the critical path, for the phases that occur there; they sum to ``e2e``."""
    iterations: tuple[Iteration, ...]
    lead_in: float
    """Seconds before the first model call of the path."""
    bars: tuple[Bar, ...]
    """Every span, parents before children."""
    detached: tuple[SpanId, ...]
    """Work that outlived its parent; not in E2E. What hangs below it is not listed again."""
    task_ttft: float | None
    """First VISIBLE output of the task - the user's request.

    That is the first visible token of the answer: the last call of the loop that issued no tool calls, did not fail
    and is no sub-agent's (not inside a tool); where it was not streamed, its end. An earlier answer without tool calls
    was read by another call, not by the user: else it would have ended the task.
    """
    task_ttft_most: float | None = None
    """The latest that it can have been, where it was not timed; an upper bound, and no estimate."""
    last_call_ttft: float | None
    """What a per-call dashboard would show: TTFT of the loop's last call."""
    usage: Usage
    """Sums over all calls; a field is unknown when any call's is."""
    cached_share: float | None
    """``cache_read`` / ``input_tokens``."""
    cost: MicroUsd | None
    spent: Spent
    """The same sums as far as the calls tell: lower bounds where ``usage`` and ``cost`` are unknown."""
    own_totals: tuple[Told, ...] = ()
    """Which of these sums are the record's own totals of the task, since its calls do not tell their parts."""
    failures: int
    """Calls, tools and retrievals that are known to have failed."""
    unseen: int = 0
    """Tools whose end nobody saw: whether they failed is unknown."""
    retries: int | None
    """Times that a call was sent again, under one span or by its caller; unknown when any call's attempts are."""
    human: float
    """Seconds inside the task's bounds in which only a person was waited for; not in E2E."""
    waited_before: float | None = None
    """Seconds in which a person was waited for before the task; unknown where no such wait was recorded."""
    unknowns: tuple[str, ...]
    """Plain sentences: what could not be known, what was repaired or assumed, and why."""


def dissect(task: Task, *, prices: PriceOf = price_for, timed: bool = True) -> Anatomy:
    """Take one task apart.

    Args:
        task: all spans of one task, or its study. No spans at all give an anatomy of length 0.
        prices: where the prices come from of calls whose cost was not recorded.
        timed: whether the record tells how long things took; where it does not, nothing is said of how that is known.
    """
    case = study(task)
    tree, held = case.tree, case.held
    totals = total(tree, held.calls, prices, again=case.again, timed=timed)
    notes = [*(note for note in tree.notes if timed or not note.endswith(UNENDED)), *held.notes]
    if case.flushed:
        notes.append("At least half of the spans end with the task: a flush ended them, so their phases are not split.")
    first_visible = task_ttft(case, notes) if timed else None
    lead_in, shares = spent(case.lead_in), [spent(turn.stretches) for turn in case.turns]
    iterations = tuple(map(_iteration, repeat(tree), case.turns, shares))
    sums = {phase: lead_in[phase] + sum([share[phase] for share in shares]) for phase in Phase}
    return Anatomy(
        task=tree.spans[0].task,
        session=next(filter(None, [span.session for span in tree.spans]), None),
        started_at=tree.origin,
        e2e=case.e2e,
        n=len(iterations),
        calls=len(held.calls),
        path=tuple([segment for stretch in case.walked for segment in stretch.segments]),
        phases={phase: seconds for phase, seconds in sums.items() if seconds},
        iterations=iterations,
        lead_in=sum(lead_in.values()),
        bars=bars_of(case),
        detached=tuple([tree.spans[i].id for i in held.detached]),
        task_ttft=first_visible,
        task_ttft_most=task_ttft_most(case) if timed and first_visible is None else None,
        last_call_ttft=iterations[-1].ttft if iterations else None,
        usage=totals.usage,
        cached_share=_share(totals.usage),
        cost=totals.cost,
        spent=totals.spent,
        own_totals=totals.own,
        failures=totals.failures,
        unseen=totals.unseen,
        retries=totals.retries,
        human=tree.human,
        waited_before=tree.waited_before,
        unknowns=(*notes, *totals.notes),
    )


def _iteration(tree: Tree, turn: Turn, phases: dict[Phase, float]) -> Iteration:
    span = tree.spans[turn.call]
    call = span.work
    if not isinstance(call, ModelCall):
        msg = f"a turn's call is a model call, got {type(call).__name__}"
        raise TypeError(msg)
    timed = tpot(call)
    own = engine_tpot(call) if timed is None else None
    ended = _tpot_to_end(call, span.end) if timed is None and own is None and phases[DECODE] > 0 else None
    return Iteration(
        span=span.id,
        model=call.model,
        given_again=call.given_again is not None,
        hop=phases[HOP],
        retry=phases[RETRY],
        queue=phases[QUEUE],
        prefill=phases[PREFILL],
        decode=phases[DECODE],
        model_unsplit=phases[MODEL],
        tools=phases[TOOL] + phases[RETRIEVAL],
        ttft=ttft(call, span.start),
        tpot=timed if timed is not None else own if own is not None else ended,
        usage=call.usage,
        tpot_by_engine=own is not None,
        tpot_to_end=ended is not None,
    )


def ttft(call: ModelCall, start: float) -> float | None:
    """First token received - request sent (or, where that was not timed, the span's start); seconds."""
    if call.first_token is None:
        return None
    return call.first_token - (start if call.sent is None else call.sent)


def tpot(call: ModelCall) -> float | None:
    """(last token - first token) / (output_tokens - 1); seconds."""
    count = call.usage.output_tokens
    if call.first_token is None or call.last_token is None or count is None or count < 2:  # noqa: PLR2004 - a gap needs two
        return None
    return (call.last_token - call.first_token) / (count - 1)


def _tpot_to_end(call: ModelCall, end: float | None) -> float | None:
    """TPOT of a stream whose last token was not timed: it came before the call's end. Seconds."""
    if call.last_token is not None or end is None:
        return None
    return tpot(structs.replace(call, last_token=end))


def _share(usage: Usage) -> float | None:
    if usage.cache_read is None or not usage.input_tokens:
        return None
    return usage.cache_read / usage.input_tokens
