"""Nothing lost on the way: hops, queues and failed calls."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import inf

from headway.trace.change import Change, Share, unended
from headway.trace.levers.case import Case
from headway.trace.levers.lever import UNTOLD, Advice, Lever, Saved, predicted, spared
from headway.trace.phases import HOP, QUEUE, RETRY, never_sent
from headway.trace.tree import EPSILON


def no_hop(case: Case) -> Iterable[Lever]:
    """Nothing between the parties; where no model is called there are none.

    What began and is not known to have ended may have been at work all the time: that is no hop.
    """
    if not case.study.turns:
        return
    change = Change(case.study)
    lost = unended(case.study)
    refused = {i for i in case.study.held.calls if never_sent(case.call(i)[1])}
    hops = [share for share in case.shares[HOP] if share.owner not in refused and not _in(case, share, lost)]
    change.scale(hops, lambda _: 0.0)
    yield predicted(
        case,
        change,
        Saved(),
        Advice(
            key="no-hop",
            name="no hop",
            assumes="The upper bound: the agent's own code, the network and the gateway take no time.",
            tradeoff="Work on the agent's own code and where it runs.",
            rule="Each iteration pays its hops once: N x hop.",
            how="Run the agent beside the gateway, keep connections open, and do the agent's own work while the model"
            " writes.",
        ),
    )


def _in(case: Case, share: Share, moments: Sequence[float]) -> bool:
    """Whether any of these moments, in ascending order, lies in the gap or tail that a share is of."""
    held, graph = case.study.held, case.study.graph
    until = held.lo[share.node] if share.is_gap else held.hi[share.node]
    since = until - (graph.gap if share.is_gap else graph.tail)[share.node]
    return bisect_left(moments, since - EPSILON) < bisect_left(moments, until)


def no_queue(case: Case) -> Iterable[Lever]:
    """A free slot at once."""
    change = Change(case.study)
    change.scale(case.shares[QUEUE], lambda _: 0.0)
    yield predicted(
        case,
        change,
        Saved(),
        Advice(
            key="no-queue",
            name="no queue",
            assumes="A slot is always free for this task.",
            tradeoff="Slots that stand idle between peaks, or other tasks that wait instead.",
            rule="Waiting grows with utilisation as u / (1 - u), and each iteration pays it again.",
            how="Add a replica or slots, let interactive tasks go first, or admit fewer tasks at a time.",
        ),
    )


def no_failures(case: Case) -> Iterable[Lever]:
    """No call that failed."""
    failed, tried = _done_by_others(case), [i for i in case.study.held.calls if case.call(i)[1].setbacks]
    change = Change(case.study)
    for i in failed:
        change.tail[i] = 0.0
        if (after := case.study.again.get(i)) in case.study.paused:
            change.drop_gap(after)
    attempts = [share for share in case.shares[RETRY] if not share.is_gap]
    change.scale(attempts, lambda i: 0.0 if case.call(i)[0].error is None else 1.0)
    yield predicted(
        case,
        change,
        UNTOLD if tried else spared(case, failed),
        Advice(
            key="no-failures",
            name="no failed calls",
            assumes="What the failed calls were for was done by later ones; without a failure there is no pause before"
            " the same call is made again.",
            tradeoff="None, but what fails them must be found first.",
            rule="A failed call costs its whole time and is then made again.",
            how="Find out what failed them (the findings name the errors), and take a replica that fails calls out of"
            " the fleet.",
        ),
    )


def _done_by_others(case: Case) -> list[int]:
    """Failed calls after which another call did well: one that did not fail would else have taken its time too."""
    held, spans = case.study.held, case.study.tree.spans
    failed = [i for i in held.calls if spans[i].error is not None and not held.adrift[i]]
    latest = max((held.lo[i] for i in held.calls if spans[i].error is None and not held.adrift[i]), default=-inf)
    return [i for i in failed if held.hi[i] <= latest + EPSILON]
