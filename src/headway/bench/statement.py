"""What a run was made under. Runs of which this differs are not compared: that would measure the difference."""

import os
import platform
from importlib.metadata import version

from msgspec import Struct, structs


class Statement(Struct, frozen=True, kw_only=True):
    """All that a figure depends on besides what is to be measured."""

    url: str
    model: str
    workload: str
    workload_digest: str
    arrivals: str
    stop: str
    warm_up: int
    """Sessions left out at the beginning."""
    stream: bool
    exact: bool
    """Whether answers were asked for at exactly the length that the workload says."""
    texts: str
    """Whether the engine can have seen them before."""
    headway: str
    python: str
    system: str
    machine: str


DIFFERENT_ON_PURPOSE = frozenset({"url", "headway"})
"""What two runs may differ in and be compared: it is what people change and then measure."""


def here() -> dict[str, str]:
    """What of it is this machine's."""
    return {
        "headway": version("headway"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def differences(one: Statement, other: Statement) -> tuple[str, ...]:
    """What forbids to compare two runs, a sentence each; none: they may be compared."""
    pairs = zip(structs.asdict(one).items(), structs.asdict(other).values(), strict=True)
    return tuple(
        f"{name}: {first!r} and {second!r}"
        for (name, first), second in pairs
        if first != second and name not in DIFFERENT_ON_PURPOSE
    )
