"""All findings of a task or of a set of tasks, the dearest first."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import structs

from headway.trace.anatomy import Anatomy, dissect
from headway.trace.findings.cache import cache_misses
from headway.trace.findings.case import Case, case_of
from headway.trace.findings.dominance import (
    iterations_dominate,
    many_turns,
    one_turn_dominates,
    tools_dominate,
)
from headway.trace.findings.failed_calls import failed_calls
from headway.trace.findings.failures import failed_tools
from headway.trace.findings.finding import Confidence, Finding
from headway.trace.findings.forgotten import cache_forgotten
from headway.trace.findings.growth import context_growth
from headway.trace.findings.hidden import flushed_ends, no_times, unfinished_spans, unsplit_model
from headway.trace.findings.hops import hop_gaps
from headway.trace.findings.queueing import engine_queue
from headway.trace.findings.reasoning import reasoning_dominates
from headway.trace.findings.repeats import polled_tools, repeated_tools, standstill
from headway.trace.findings.retries import paid_twice
from headway.trace.findings.serial import serial_tools
from headway.trace.findings.slow_calls import slow_calls
from headway.trace.findings.slowdown import slower_turns
from headway.trace.findings.standing import standing_prompt
from headway.trace.findings.straggler import stragglers
from headway.trace.findings.tail import Account, iteration_tail
from headway.trace.findings.unread import unread_answers, unread_results
from headway.trace.findings.visible import late_first_text
from headway.trace.findings.writing import writing_dominates
from headway.trace.prices import PriceOf, price_for
from headway.trace.sources.verdict import Verdict
from headway.trace.study import Task, study

LEAST: Final = 0.01
"""Of a task's seconds, money or tokens: a finding that costs less of all that is known of it is not worth reading."""
SURE: Final[dict[Confidence, int]] = {"certain": 0, "likely": 1, "possible": 2}

DETECTORS: Final[tuple[Callable[[Case], Iterable[Finding]], ...]] = (
    tools_dominate,
    iterations_dominate,
    many_turns,
    one_turn_dominates,
    writing_dominates,
    reasoning_dominates,
    slower_turns,
    slow_calls,
    cache_misses,
    cache_forgotten,
    late_first_text,
    hop_gaps,
    serial_tools,
    repeated_tools,
    polled_tools,
    standstill,
    paid_twice,
    failed_tools,
    failed_calls,
    context_growth,
    standing_prompt,
    stragglers,
    unread_answers,
    unread_results,
    engine_queue,
)
LIMITS: Final[tuple[Callable[[Case], Iterable[Finding]], ...]] = (
    unsplit_model,
    unfinished_spans,
    flushed_ends,
    no_times,
)
"""What is wrong with the record, not with the task."""
SET_DETECTORS: Final[tuple[Callable[[Sequence[Account]], Iterable[Finding]], ...]] = (iteration_tail,)


def findings(
    task: Task, verdict: Verdict, *, anatomy: Anatomy | None = None, prices: PriceOf = price_for
) -> tuple[Finding, ...]:
    """What is wrong with one task, the dearest first; then what is wrong with its record.

    Two findings may be about the same seconds. Nothing rests on what the verdict calls unknown.

    Args:
        task: all spans of the task, in any order and any state; or its study.
        verdict: what they can be trusted for.
        anatomy: the task's, where it is there already.
        prices: what tokens cost, where no cost was recorded.
    """
    studied = study(task)
    case = case_of(studied, anatomy or dissect(studied, prices=prices), verdict, prices)
    return (*_found(case, DETECTORS), *_found(case, LIMITS))


def _found(case: Case, detectors: Iterable[Callable[[Case], Iterable[Finding]]]) -> list[Finding]:
    found = [_kept_to(case, finding) for detect in detectors for finding in detect(case)]
    return sorted([one for one in found if _worth_reading(case, one)], key=lambda one: _rank(case, one))


def set_findings(accounts: Sequence[Account]) -> tuple[Finding, ...]:
    """What only many tasks together show, the dearest first."""
    found = [finding for detect in SET_DETECTORS for finding in detect(accounts)]
    return tuple(sorted(found, key=lambda one: (-(one.seconds or 0.0), one.name)))


def _kept_to(case: Case, finding: Finding) -> Finding:
    """Sums of the path's tiles may exceed E2E by a rounding."""
    if finding.seconds is None or finding.seconds <= case.e2e:
        return finding
    return structs.replace(finding, seconds=case.e2e)


def _shares(case: Case, finding: Finding) -> tuple[float | None, float | None, float | None]:
    """Of E2E, of the task's cost, of its tokens; unknown where either is."""
    usage = case.anatomy.usage
    read, wrote = usage.input_tokens, usage.output_tokens
    tokens = None if read is None or wrote is None else read + wrote
    return (
        _share(finding.seconds, case.e2e),
        _share(finding.cost, case.anatomy.cost),
        _share(finding.tokens, tokens),
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _worth_reading(case: Case, finding: Finding) -> bool:
    known = [share for share in _shares(case, finding) if share is not None]
    return not known or max(known) >= LEAST


def _rank(case: Case, finding: Finding) -> tuple[float, float, int, str]:
    seconds, money, tokens = _shares(case, finding)
    return -max(seconds or 0.0, money or 0.0), -(tokens or 0.0), SURE[finding.confidence], finding.name
