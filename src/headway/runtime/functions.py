"""What is scattered: an async function, and what it is called."""

import inspect
from collections.abc import Callable
from typing import Any

from headway.core.errors import BadInputError


def name_of(f: Callable[..., Any]) -> str:
    """What a function is called in spans, keys and errors."""
    return str(getattr(f, "__name__", type(f).__name__)).replace("/", "-").replace("|", "-")


def check(f: Callable[..., Any]) -> None:
    """Refuse a function that cannot be awaited.

    Raises:
        BadInputError: it is none.
    """
    if not (inspect.iscoroutinefunction(f) or inspect.iscoroutinefunction(getattr(f, "__call__", None))):  # noqa: B004 - not whether, which
        raise BadInputError(
            f"{name_of(f)} is no async function, and would block all others while it works.",
            fix="Write `async def`, and call what blocks by `await asyncio.to_thread(…)`.",
        )
