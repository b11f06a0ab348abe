"""Waiting for a free slot at the engine."""

from collections.abc import Iterable
from typing import Final

from headway.trace.findings.case import Case
from headway.trace.findings.figures import plural, ranked, seconds, share
from headway.trace.findings.finding import Finding
from headway.trace.phases import DECODE, PREFILL, QUEUE, is_derived

LEAST: Final = 0.1
"""Of E2E."""


def engine_queue(case: Case) -> Iterable[Finding]:
    """A tenth of the path or more is spent waiting before the engine begins to read."""
    spent = case.anatomy.phases.get(QUEUE, 0.0)
    if not case.timed or spent < LEAST * case.e2e:
        return
    waited = {i: case.spent(i, QUEUE) for i in case.on_path if case.spent(i, QUEUE) > 0}
    work = sum(case.anatomy.phases.get(phase, 0.0) for phase in (PREFILL, DECODE))
    derived = sum(is_derived(case.call(i)) for i in waited)
    where: dict[str, float] = {}
    for i, length in waited.items():
        replica = case.call(i).replica or case.call(i).model
        where[replica] = where.get(replica, 0.0) + length
    most = "more than it reads and writes" if spent > work else f"against {seconds(work)} of reading and writing"
    yield Finding(
        name="engine-queue",
        title=f"Calls wait {seconds(spent)} ({share(spent, case.e2e)} of E2E) for the engine to begin, {most}.",
        seconds=spent,
        confidence="likely" if derived else "certain",
        evidence=(
            (
                f"{plural(len(waited), 'call')} waited, the longest {seconds(max(waited.values()))}; by replica or"
                f" model: {ranked(where)}."
            ),
            *(
                (f"{plural(derived, 'call')} did not stream: what the engine's timings leave is waiting.",)
                * bool(derived)
            ),
        ),
        check="Compare with the engine's own queue length, or send one of the calls while it is idle.",
        remedy="Add a replica or slots, let interactive tasks go first, or admit fewer at a time (lever: no queue).",
        spans=case.ids(waited),
    )
