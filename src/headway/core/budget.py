"""Budgets: what a task and each of its stages may take. Read from TOML, so a person's mistakes are told by name."""

import re
import tomllib
from math import inf
from typing import Final, Literal

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError
from headway.core.money import MicroUsd

Percentile = Literal["p50", "p95", "p99"]
_TIME: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|h)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_MONEY: Final = re.compile(r"(?:\$\s*([0-9]+(?:\.[0-9]+)?)|([0-9]+(?:\.[0-9]+)?)\s*(?:USD|\$))")


class StageBudget(Struct, frozen=True, kw_only=True):
    """Limits on one stage's seconds on the critical path, or on a whole task's E2E."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    variance: float | None = None
    """Coefficient of variation: standard deviation / mean; the same for tasks of any length."""

    def limit(self, percentile: Percentile) -> float | None:
        """Seconds at one percentile; ``None``: not limited."""
        match percentile:
            case "p50":
                return self.p50
            case "p95":
                return self.p95
            case "p99":
                return self.p99


class Budget(Struct, frozen=True, kw_only=True):
    """Everything that is limited; what is ``None`` or not named is not."""

    task: StageBudget
    calls: int | None
    """Model calls of any one task."""
    tokens: int | None
    """Input and output tokens of any one task."""
    cost: MicroUsd | None
    """Of any one task."""
    stages: dict[str, StageBudget]
    """By name: a phase (``prefill``), ``tool:NAME``, ``model:NAME`` or ``agent:NAME``."""


class _Written(Struct, forbid_unknown_fields=True):
    p50: str | float | None = None
    p95: str | float | None = None
    p99: str | float | None = None
    variance: float | None = None


class _WrittenTask(_Written, forbid_unknown_fields=True):
    calls: int | None = None
    tokens: int | None = None
    cost: str | float | None = None


class _WrittenBudget(Struct, forbid_unknown_fields=True):
    task: _WrittenTask = msgspec.field(default_factory=_WrittenTask)
    stage: dict[str, _Written] = msgspec.field(default_factory=dict[str, _Written])


class _File(Struct):
    budget: _WrittenBudget | None = None


def read_budget(text: str, name: str) -> Budget:
    """The table ``[budget]`` of a TOML file.

    Times are seconds, or text with a unit: ``"400 ms"``, ``"1.5 s"``, ``"2 min"``; money is US dollars: ``"0.02 USD"``.

    Args:
        text: the file's text.
        name: what to call it in errors.

    Raises:
        BadInputError: it is no TOML, has no budget, or names a thing or a unit that there is not.
    """
    try:
        found = msgspec.convert(tomllib.loads(text), _File).budget
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInputError(f"{name} is no budget: {error}.", fix=_FIX) from error
    if found is None:
        raise BadInputError(f"{name} has no table [budget].", fix=_FIX)
    return Budget(
        task=_stage(found.task, f"{name}: budget.task"),
        calls=_positive(found.task.calls, f"{name}: budget.task.calls"),
        tokens=_positive(found.task.tokens, f"{name}: budget.task.tokens"),
        cost=None if found.task.cost is None else money(found.task.cost, f"{name}: budget.task.cost"),
        stages={stage: _stage(limits, f'{name}: budget.stage."{stage}"') for stage, limits in found.stage.items()},
    )


_FIX: Final = (
    'Write e.g. [budget.task] p95 = "12 s" and [budget.stage."tool:search"] p95 = "1.5 s"; see docs/budgets.md.'
)


def _stage(written: _Written, where: str) -> StageBudget:
    limits = [
        None if value is None else seconds(value, f"{where}.{name}")
        for name, value in (("p50", written.p50), ("p95", written.p95), ("p99", written.p99))
    ]
    given = [limit for limit in limits if limit is not None]
    if given != sorted(given):
        raise BadInputError(f"{where}: the limits fall from p50 to p99.", fix="A higher percentile is never shorter.")
    if written.variance is not None and not 0 <= written.variance < inf:
        raise BadInputError(f"{where}.variance is {written.variance}, which is no ratio.", fix=_FIX)
    return StageBudget(p50=limits[0], p95=limits[1], p99=limits[2], variance=written.variance)


def _positive(count: int | None, where: str) -> int | None:
    if count is not None and count < 0:
        raise BadInputError(f"{where} is {count}, which is negative.", fix=_FIX)
    return count


def seconds(value: str | float, where: str) -> float:
    """A time as a person writes it: a number of seconds, or text with a unit.

    Raises:
        BadInputError: no number, no known unit, or negative.
    """
    if isinstance(value, str):
        match = _TIME.fullmatch(value.strip())
        if match is None:
            raise BadInputError(
                f"{where} is {value!r}, which is no time.", fix="Write e.g. 0.4, 400 ms, 1.5 s or 2 min."
            )
        return float(match[1]) * _UNITS[match[2]]
    if not 0 <= value < inf:
        raise BadInputError(f"{where} is {value}, which is no time.", fix="Write seconds, or e.g. 400 ms.")
    return float(value)


def money(value: str | float, where: str) -> MicroUsd:
    """Money as a person writes it: a number of US dollars, ``0.02 USD`` or ``$0.02``; rounded to micro-USD.

    Raises:
        BadInputError: no number, another currency, or negative.
    """
    if isinstance(value, str):
        match = _MONEY.fullmatch(value.strip())
        if match is None:
            raise BadInputError(f"{where} is {value!r}, which is no money.", fix="Write US dollars, e.g. 0.02 USD.")
        return MicroUsd(round(float(match[1] or match[2]) * 1_000_000))
    if not 0 <= value < inf:
        raise BadInputError(f"{where} is {value}, which is no money.", fix="Write US dollars, e.g. 0.02.")
    return MicroUsd(round(value * 1_000_000))


def write_budget(budget: Budget) -> str:
    """The budget as the TOML that `read_budget` reads."""
    lines = ["[budget.task]", *_limits(budget.task)]
    lines += [
        f"{name} = {value}" for name, value in (("calls", budget.calls), ("tokens", budget.tokens)) if value is not None
    ]
    if budget.cost is not None:
        lines.append(f'cost = "{budget.cost / 1_000_000:.6f} USD"')
    for name, limits in budget.stages.items():
        lines += ["", f"[budget.stage.{msgspec.json.encode(name).decode()}]", *_limits(limits)]
    return "\n".join(lines) + "\n"


def _limits(limits: StageBudget) -> list[str]:
    times = (("p50", limits.p50), ("p95", limits.p95), ("p99", limits.p99))
    lines = [f"{name} = {_time(value)}" for name, value in times if value is not None]
    return lines if limits.variance is None else [*lines, f"variance = {limits.variance!r}"]


def _time(value: float) -> str:
    return repr(value) if "e" in repr(value) else f'"{value!r} s"'
