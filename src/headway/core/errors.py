"""The error tree: each says what failed, the value, the limit and what to do next."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal


class HeadwayError(Exception):
    """Root of every error that Headway raises on purpose.

    Args:
        what: what failed, with the value and the limit that it broke.
        fix: what the reader can do about it; printed after the message.
    """

    def __init__(self, what: str, *, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        """The message, then the way out."""
        return f"{self.what} {self.fix}".rstrip()


class BadInputError(HeadwayError):
    """The caller's input cannot be used: a request, a file, an option."""


class UsageError(BadInputError):
    """A command was used wrongly: its options contradict each other, or a value is none that it takes."""


class AmbiguousError(BadInputError):
    """Several things are called what the caller gave.

    Args:
        what: what failed.
        fix: what the reader can do about it.
        candidates: some of those that are called so, by their full names.
        more: whether there are others.
    """

    def __init__(self, what: str, *, fix: str, candidates: tuple[str, ...], more: bool) -> None:
        super().__init__(what, fix=fix)
        self.candidates = candidates
        self.more = more


class UpstreamError(HeadwayError):
    """An engine or provider behind Headway failed or broke the protocol."""


class NotDoneError(UpstreamError):
    """A call was refused, or reached nobody: nothing was done for it, so it costs nothing, and may be made again."""


class EngineError(HeadwayError):
    """An engine that Headway itself starts could not be started or kept alive."""


class NotFoundError(HeadwayError):
    """What was asked for by name is not there: a task, a model, a file."""


class StoreError(HeadwayError):
    """The store of spans cannot be read or written now: a full disk, another's lock, a missing right."""


class WorkerError(HeadwayError):
    """A process that helped with work ended before the work was done."""


class OverBudgetError(HeadwayError):
    """A task's budget does not hold what its next step may cost; nothing was started."""


class OverDeadlineError(HeadwayError):
    """A task, or an item of it, was not done in the time that it had; what it was doing has been stopped."""


class InDoubtError(HeadwayError):
    """A call was under way when it was stopped or its process died, and its policy forbids making it again."""


class ItemsFailedError(HeadwayError):
    """More items of a scatter failed than it tolerates; the rest was stopped. Its cause is the first failure.

    Args:
        what: how many failed, of how many, and how.
        fix: what the reader can do about it.
        errors: the failures that there were, by the item's index.
    """

    def __init__(self, what: str, *, fix: str, errors: tuple[tuple[int, Exception], ...]) -> None:
        super().__init__(what, fix=fix)
        self.errors = errors


class NoQuorumError(HeadwayError):
    """Votes were cast, and no verdict can reach the number that was asked for."""


class ToolError(HeadwayError):
    """A tool failed, and there is no model to be told of it."""


class StoppedError(HeadwayError):
    """An agent was stopped before it had an answer.

    Args:
        what: by what, after how many turns.
        fix: what the reader can do about it.
        reason: ``iterations``: it had all its turns; ``standstill``: its turns brought nothing new; ``mistakes``: what
            its model wrote could not be used.
        messages: all that was said, as the OpenAI API has it.
    """

    def __init__(
        self,
        what: str,
        *,
        fix: str,
        reason: Literal["iterations", "standstill", "mistakes"],
        messages: Sequence[Mapping[str, Any]],
    ) -> None:
        super().__init__(what, fix=fix)
        self.reason = reason
        self.messages = messages


class SandboxError(HeadwayError):
    """Foreign code cannot be isolated on this machine, or its sandbox failed; the code has not run outside of one."""


class MissingExtraError(HeadwayError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs packages that are not installed.",
            fix=f"Install them with: pip install 'headway[{extra}]'",
        )
