"""Running the debugging agent where a person watches: its steps as they come, its verdicts in words, its patches."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from headway.agents.debugging.agent import Debugger, How
from headway.agents.debugging.case import Bug, Fixed, NotFixed, Verdict, read_report
from headway.agents.debugging.repository import read_logs, take_copy
from headway.agents.debugging.sandbox import Limits
from headway.agents.debugging.trial import Trials
from headway.app.asking import first_model, open_client, visible
from headway.core.errors import StoreError
from headway.runtime import Budget, Models, Runtime, Stage, Started


class Job(Struct, frozen=True, kw_only=True):
    """What there is to do."""

    reports: tuple[Path, ...]
    repo: Path
    logs: tuple[str, ...]
    copy: Path
    """A folder for the copy of the repository."""
    base_url: str
    api_key: str
    model: str | None
    python: Path | None
    how: How
    limits: Limits
    budget: Budget
    store: Path


async def carry_out(job: Job, steps: Console) -> tuple[Verdict, ...]:
    """Find a verdict on each bug; what is done is told on ``steps``.

    Raises:
        HeadwayError: there is nothing to begin with: no report, repository, sandbox, pytest or model.
    """
    bugs: list[Bug] = []
    for path in job.reports:
        bugs.append(read_report(path, frozenset(bug.name for bug in bugs)))
    repository = await asyncio.to_thread(take_copy, job.repo, job.copy)
    logs = await asyncio.to_thread(read_logs, job.repo.resolve(), job.logs)
    trials = Trials(repository, job.limits, job.python)
    await trials.probe()
    if job.limits.network:
        steps.print("  Tests may use the network, as --allow-network says.", style="yellow")
    async with open_client(job.base_url, job.api_key) as client, Models(job.base_url, api_key=job.api_key) as models:
        model = job.model or await first_model(client)
        debugger = Debugger(repository, logs, trials, model, how=job.how, on_verdict=lambda one: _told(one, steps))
        async with Runtime(store=job.store, models=models) as runtime:
            started = runtime.start(debugger.task(job.budget), bugs)
            watching = asyncio.create_task(_watch(started, steps))
            try:
                return await debugger.verdicts(started, bugs)
            finally:
                watching.cancel()


async def _watch(started: Started[None], steps: Console) -> None:
    async for told in started.progress():
        if isinstance(told, Stage):
            failed = f", {told.failed} failed" if told.failed else ""
            steps.print(Text(f"  · {told.name}: {told.done} done{failed}", "dim"))


def _told(verdict: Verdict, steps: Console) -> None:
    match verdict:
        case Fixed():
            steps.print(Text(f"  {verdict.bug}: fixed", "green"))
        case NotFixed():
            steps.print(Text(f"  {verdict.bug}: not fixed", "yellow"))


def in_words(verdicts: Sequence[Verdict], *, shown: bool) -> str:
    """All verdicts for a person; with their patches where ``shown``."""
    return visible("\n\n".join("\n".join(_lines(verdict, shown=shown)) for verdict in verdicts))


def _lines(verdict: Verdict, *, shown: bool) -> list[str]:
    match verdict:
        case Fixed():
            failed = sum(outcome == "failed" for outcome in verdict.shown.outcomes.values())
            proof = (
                f"{failed} new test{'s' * (failed != 1)} failed before and passed after; "
                f"of the others all {len(verdict.before.passed)} that passed before passed after"
            )
            lines = [
                f"{verdict.bug}: fixed. {verdict.explanation.strip()}",
                f"  cause: {verdict.cause.strip()}",
                f"  proof: {proof}",
            ]
            if verdict.failing_still:
                lines.append(f"  failed before and fail still: {', '.join(verdict.failing_still)}")
            return [*lines, "", verdict.patch] if shown else lines
        case NotFixed():
            through = ", ".join(verdict.stages) or "nothing"
            return [f"{verdict.bug}: not fixed: {verdict.why.strip()}", f"  done before that: {through}"]


def write_patches(verdicts: Sequence[Verdict], out: Path | None) -> None:
    """Write the patches of what is fixed into the folder ``out``, if there is one.

    Raises:
        StoreError: the folder cannot be written to.
    """
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        for verdict in verdicts:
            if isinstance(verdict, Fixed):
                (out / f"{verdict.bug}.patch").write_text(verdict.patch, encoding="utf-8", newline="")
    except OSError as error:
        raise StoreError(
            f"{out} cannot be written to: {error.strerror}.", fix="Name another folder with --out."
        ) from error
