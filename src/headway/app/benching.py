"""A load from the command line to its report: what is played, against what, and what came of it."""

import asyncio
import secrets
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import uvloop
from msgspec import Struct, structs

from headway.bench.arrivals import Arrivals, Closed
from headway.bench.calibrate import Calibration, calibrate
from headway.bench.campaign import Campaign, Stop, run
from headway.bench.endpoint import Endpoint
from headway.bench.figures import figures
from headway.bench.play import PlayedTask
from headway.bench.report import Report
from headway.bench.slo import Slo
from headway.bench.spans import HeardTask, listen, spans_of
from headway.bench.statement import Statement, here
from headway.bench.sweep import Level, Swept, between, swept
from headway.bench.validity import troubles
from headway.bench.workload import Workload
from headway.core.clock import SystemClock
from headway.core.span import Span
from headway.trace.ids import Ids
from headway.trace.set_study import SetStudy
from headway.trace.sources.verdict import judge
from headway.trace.store import Store


class Plan(Struct, frozen=True, kw_only=True):
    """What is to be measured."""

    endpoint: Endpoint
    workload: Workload
    load: Arrivals
    stop: Stop
    slos: tuple[Slo, ...]
    warm_up: int
    seed: int
    repeat: bool
    """Whether the texts are those of every run with the same seed, which an engine may have cached, or new ones."""
    patience: float
    """Seconds that a call may take."""


class Measured(Struct, frozen=True, kw_only=True):
    """What came of it."""

    report: Report
    study: SetStudy
    """Of the tasks after the warm-up, for their anatomy."""


def measure(plan: Plan, told: Callable[[PlayedTask], None], store: Path | None = None) -> Measured:
    """Run the load, then read what was heard. Ctrl-C ends the load and not the measuring.

    Args:
        plan: what is to be measured.
        told: hears of every task that begins and ends.
        store: where the spans of all tasks are kept too.

    Raises:
        BadInputError: the plan cannot be run.
        StoreError: the spans cannot be kept.
        WorkerError: the client could not be measured.
    """
    calibration = uvloop.run(calibrate())
    campaign = uvloop.run(_run(plan, told))
    endpoint = plan.endpoint
    tasks = [listen(task, endpoint.model, stream=endpoint.stream) for task in campaign.tasks]
    spans = spans_of(tasks, Ids(SystemClock()))
    if store is not None:
        with Store(store) as kept:
            for one in spans:
                kept.write(one)
    return Measured(report=_report(plan, campaign, tasks, calibration), study=_study(plan, tasks, spans))


def sweep(
    plan: Plan, tasks: Sequence[int], rounds: int, told: Callable[[PlayedTask], None], said: Callable[[Level], None]
) -> Swept:
    """Run the plan's workload with more and more tasks at once.

    After the first level that does not keep the SLOs no higher one is run, but those between it and the last that did,
    to find the border. Ctrl-C ends the sweep; levels that were whole by then are kept.

    Args:
        plan: what is to be measured; its load and its end are each level's own.
        tasks: how many at once, level by level.
        rounds: sessions of a level for each of its tasks; one more is played first, as warm-up.
        told: hears of every task that begins and ends.
        said: hears of every level that has ended.

    Raises:
        BadInputError: the plan cannot be run.
    """
    levels: list[Level] = []

    def level(count: int) -> bool:
        """Run one; whether to go on."""
        load, stop = Closed(count), Stop(sessions=count * (rounds + 1), seconds=plan.stop.seconds)
        one = structs.replace(plan, load=load, stop=stop, warm_up=count)
        report = measure(one, told).report
        if report.interrupted:
            return False
        levels.append(Level(tasks=count, figures=report.figures, troubles=report.troubles))
        said(levels[-1])
        return True

    for count in sorted(set(tasks)):
        if not level(count):
            return swept(levels)
        if levels[-1].kept is False:
            break
    while (count := between(levels)) is not None:
        if not level(count) or levels[-1].troubles:
            break
    return swept(levels)


async def _run(plan: Plan, told: Callable[[PlayedTask], None]) -> Campaign:
    halt = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, halt.set)
    try:
        return await run(
            plan.endpoint,
            plan.workload.sessions(),
            plan.load,
            plan.stop,
            dice=Random(plan.seed),  # noqa: S311 - the same arrivals every time on purpose
            salt=f"seed {plan.seed}" if plan.repeat else secrets.token_hex(8),
            patience=plan.patience,
            told=told,
            halt=halt,
        )
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _report(plan: Plan, campaign: Campaign, tasks: Sequence[HeardTask], calibration: Calibration) -> Report:
    found = figures(campaign, tasks, plan.slos, plan.warm_up)
    endpoint, stop = plan.endpoint, plan.stop
    ends = [
        f"{stop.sessions} sessions" if stop.sessions is not None else "",
        f"{stop.seconds:g} s" if stop.seconds else "",
    ]
    return Report(
        statement=Statement(
            url=endpoint.url,
            model=endpoint.model,
            workload=plan.workload.written,
            workload_digest=plan.workload.digest,
            arrivals=f"closed {plan.load.tasks}" if isinstance(plan.load, Closed) else plan.load.written,
            stop=" or ".join(end for end in ends if end),
            warm_up=plan.warm_up,
            stream=endpoint.stream,
            exact=endpoint.exact,
            texts="the same as in every run with this seed" if plan.repeat else "never sent before",
            **here(),
        ),
        figures=found,
        troubles=troubles(campaign, found, plan.load, calibration),
        slos=tuple(f"{one.figure} {one.most:g}s" for one in plan.slos),
        interrupted=campaign.interrupted,
        cpu_share=campaign.cpu / campaign.seconds if campaign.seconds else 0.0,
        calibration=calibration,
    )


def _study(plan: Plan, tasks: Sequence[HeardTask], spans: Sequence[list[Span]]) -> SetStudy:
    study = SetStudy()
    for task, its in zip(tasks, spans, strict=True):
        if task.played.session >= plan.warm_up and task.played.ended is not None:
            study.add(its, judge(its, "headway bench", "spans"))
    return study
