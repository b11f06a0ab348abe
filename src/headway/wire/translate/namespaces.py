"""Groups of tools (`namespace` in the Responses API): functions of longer names to an engine that knows no groups.

A tool's longer name is made of both names, and told back as the two that it was: callers see their own tools called.
"""

from collections.abc import Container
from typing import Final

from xxhash import xxh3_64_hexdigest

_LONGEST: Final = 64
"""Characters that a function's name may have."""
_BETWEEN: Final = "__"

Grouped = dict[str, tuple[str, str]]
"""A function's name by which an engine knows a tool, with the tool's group and its name in there."""


def long_name(group: str, name: str, taken: Container[str] = ()) -> str:
    """What the tool ``name`` of ``group`` is called where there are no groups; the same in every request.

    Args:
        group: its name.
        name: the tool's.
        taken: names that other tools have, which it cannot have too.
    """
    joined = f"{group.rstrip('_')}{_BETWEEN}{name}"
    if len(joined) <= _LONGEST and joined not in taken:
        return joined
    digest = xxh3_64_hexdigest(f"{group}\x00{name}".encode(errors="replace"))
    return f"{joined[: _LONGEST - len(digest) - 1]}_{digest}"


def name_of(group: str | None, name: str, grouped: Grouped) -> str:
    """What a call of the tool ``name``, of ``group`` if it names one, is told an engine as."""
    if group is None:
        known = [flat for flat, (_, short) in grouped.items() if short == name]
        return known[0] if len(known) == 1 else name
    return next((flat for flat, tool in grouped.items() if tool == (group, name)), long_name(group, name))


def about(group: str, description: str | None) -> str:
    """What is said of a group, for the description of its first tool: nobody else is left to say it."""
    return f"Of all tools whose names begin with {group.rstrip('_')}{_BETWEEN}: {description}" if description else ""
