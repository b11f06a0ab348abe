"""The debugging agent: bugs go through its stages side by side, as one task of the runtime."""

import os
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from headway.agents.debugging.case import Bug, Fixed, NotFixed, Verdict
from headway.agents.debugging.questions import Questions
from headway.agents.debugging.repository import Repository
from headway.agents.debugging.stages import Stages
from headway.agents.debugging.trial import Trials
from headway.core.errors import BadInputError, HeadwayError
from headway.runtime import Budget, Pipeline, Run, Started, Task, back_to, task
from headway.runtime.chunking import Document

_QUEUE: Final = 64


class How(Struct, frozen=True, kw_only=True):
    """How the agent goes about it.

    Raises:
        BadInputError: a number makes no sense.
    """

    attempts: int = 3
    """At a test that shows the bug, and at a patch that fixes it."""
    tokens: int = 24_000
    """Of files or logs in one prompt."""
    max_tokens: int = 4096
    """Of each of the model's answers."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name, least in (("attempts", 1), ("tokens", 256), ("max_tokens", 1)):
            if getattr(self, name) < least:
                raise BadInputError(f"{name}={getattr(self, name)} is too few.", fix=f"Give {least} or more.")


class Debugger:
    """Finds and fixes the bugs of a repository, and tells of each what is proven.

    Args:
        repository: a copy; see `take_copy`.
        logs: see `read_logs`.
        trials: run tests; `Trials.probe` them before.
        model: the model's name at the runtime's endpoint.
        how: bounds.
        on_verdict: told of each as soon as it is there.
    """

    def __init__(
        self,
        repository: Repository,
        logs: Sequence[Document],
        trials: Trials,
        model: str,
        *,
        how: How | None = None,
        on_verdict: Callable[[Verdict], None] = lambda _: None,
    ) -> None:
        how = how or How()
        self._attempts = how.attempts
        self._stages = Stages(repository, logs, trials, Questions(model, how.max_tokens), how.tokens)
        self._told = on_verdict
        self._verdicts: dict[str, Verdict] = {}

    def task(self, budget: Budget) -> Task[[Sequence[Bug]], None]:
        """What finds the verdicts; await it by `verdicts`."""

        @task(budget=budget, lane="batch")
        async def debug(run: Run, bugs: Sequence[Bug]) -> None:
            pipeline = self._pipeline()
            flow = pipeline.run(run, bugs, tolerate=1)
            async for fixed in flow:
                self._tell(fixed)
            for failure in flow.failures:
                self._tell(self._not_fixed(bugs[failure.index], failure.error))

        return debug

    async def verdicts(self, started: Started[None], bugs: Sequence[Bug]) -> tuple[Verdict, ...]:
        """The verdict on each bug, in their order; those that the task was stopped at are not fixed."""
        stopped: Exception = HeadwayError("The task ended before.")
        try:
            await started
        except HeadwayError as error:
            stopped = error
        for bug in bugs:
            if bug.name not in self._verdicts:
                self._tell(self._not_fixed(bug, stopped))
        return tuple(self._verdicts[bug.name] for bug in bugs)

    def _pipeline(self) -> Pipeline[Bug, Fixed]:
        stages, again = self._stages, self._attempts - 1
        analysis, reproduction, root_cause = stages.analysis, stages.reproduction, stages.root_cause
        fix, validation = stages.fix, stages.validation
        cpus = os.cpu_count() or 1
        return (
            Pipeline[Bug, Bug]()
            .stage(analysis, queue=_QUEUE)
            .stage(reproduction, queue=_QUEUE, on_fail=back_to(reproduction, again) if again else None)
            .stage(root_cause, queue=_QUEUE)
            .stage(fix, queue=_QUEUE)
            .stage(validation, workers=max(2, cpus), queue=_QUEUE, on_fail=back_to(fix, again) if again else None)
        )

    def _not_fixed(self, bug: Bug, error: Exception) -> NotFixed:
        why = str(error) if isinstance(error, HeadwayError) else f"{type(error).__name__}: {error}"
        return NotFixed(bug=bug.name, why=why, reached=self._stages.reached.get(bug.name, bug))

    def _tell(self, verdict: Verdict) -> None:
        self._verdicts[verdict.bug] = verdict
        self._told(verdict)
