"""How an agent goes about it: the bounds of its loop."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from headway.core.errors import BadInputError
from headway.runtime.context import Context


class Policy(Struct, frozen=True, kw_only=True):
    """How an agent goes about it.

    Raises:
        BadInputError: a number makes no sense.
    """

    iterations: int = 20
    """Model calls; before the last the model is told that it is the last."""
    max_tokens: int = 4096
    """Of each of the model's messages."""
    parallel: int = 16
    """Tool calls of one response that are under way at once."""
    standstill: int = 2
    """Turns in a row that may bring nothing new, because each call was made before with the same result: after the
    first the model is told, after the last the agent is stopped."""
    mistakes: int = 3
    """Times in a row that the model is told of an answer or of calls that cannot be used; the next stops the agent."""
    context: Context = Context()
    say: bool = False
    """Whether what the model writes is streamed to whoever watches the task."""
    enforce: bool = True
    """Whether the endpoint is asked to enforce the type of the answer (``response_format``), which few can where there
    are tools; so it is asked only where there are none. The answer is checked either way."""
    options: Mapping[str, Any] = {}
    """More fields of each request, e.g. ``temperature``."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("iterations", "max_tokens", "parallel", "standstill"):
            if getattr(self, name) < 1:
                raise BadInputError(f"Policy.{name}={getattr(self, name)} makes no sense.", fix="It is 1 or more.")
        if self.mistakes < 0:
            raise BadInputError(f"Policy.mistakes={self.mistakes} makes no sense.", fix="It is 0 or more.")
