"""From rounds to figures: medians with their range, differences to the direct way, and the table that is printed."""

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from msgspec import Struct

from rig.rounds import Round

ALL, FULL, BARE, NGINX, DIRECT = "everything", "headway", "bare", "nginx", "direct"
HEADINGS = {ALL: "all features on", FULL: "recording+identity", BARE: "both off", NGINX: "nginx"}
"""What stands over a server's column; others have their own names."""


class Spread(Struct, frozen=True):
    """The rounds of one figure."""

    median: float
    least: float
    most: float


class Figure(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    unit: str
    values: dict[str, Spread]
    """Server → what it took."""
    targets: dict[str, float] = {}
    """Server → most that it may take, or least where higher is better."""
    nginx_then: float | None = None
    """What nginx took on the machine that the target was set on: a slower one cannot be expected to meet it."""
    higher_is_better: bool = False


def _spread(values: Iterable[float]) -> Spread:
    ordered = sorted(values)
    return Spread(median(ordered), ordered[0], ordered[-1])


def figure(
    name: str,
    unit: str,
    rounds: Sequence[Round],
    of: Callable[[Round], float],
    *,
    targets: dict[str, float] | None = None,
    nginx_then: float | None = None,
    higher_is_better: bool = False,
) -> Figure:
    """A figure that each round has by itself."""
    values = {name: _spread(of(one) for one in rounds if one.server == name) for name in _servers(rounds)}
    return Figure(
        name=name,
        unit=unit,
        values=values,
        targets=targets or {},
        nginx_then=nginx_then,
        higher_is_better=higher_is_better,
    )


def added(
    name: str,
    unit: str,
    rounds: Sequence[Round],
    of: Callable[[Round], float],
    *,
    targets: dict[str, float] | None = None,
) -> Figure:
    """What a server adds to the direct way: the difference is taken within each round, where the weather is alike."""
    direct = [of(one) for one in rounds if one.server == DIRECT]
    values = {
        name: _spread(of(one) - base for one, base in zip((r for r in rounds if r.server == name), direct, strict=True))
        for name in _servers(rounds)
    }
    return Figure(name=name, unit=unit, values=values, targets=targets or {})


def _servers(rounds: Sequence[Round]) -> list[str]:
    """All that can be compared, in the order in which they are to stand."""
    seen = dict.fromkeys(one.server for one in rounds if one.server != DIRECT)
    return sorted(seen, key=lambda name: list(HEADINGS).index(name) if name in HEADINGS else len(HEADINGS))


def _number(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1000:,.1f}k"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _cell(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"{_number(spread.median)} ({_number(spread.least)}..{_number(spread.most)})"


def _ratio(row: Figure, ours: str, base: str) -> str:
    """How many times the base's figure ours is; - where a base near nothing makes it meaningless."""
    mine, theirs = row.values.get(ours), row.values.get(base)
    if mine is None or theirs is None or theirs.median <= 0 or mine.median <= 0:
        return "-"
    return f"{mine.median / theirs.median:.2f}x"


def _verdict(row: Figure, server: str) -> str:
    ours, target = row.values.get(server), row.targets.get(server)
    if target is None or ours is None:
        return ""
    reached = ours.median >= target if row.higher_is_better else ours.median <= target
    relative = "" if row.nginx_then is None else f" ({target / row.nginx_then:.2f}x nginx)"
    least_or_most, missed = ("≥", "short") if row.higher_is_better else ("≤", "over")
    return f"{least_or_most}{target:g}{relative} {'PASS' if reached else missed}"


def table(rows: Sequence[Figure], ratios: Sequence[tuple[str, str]]) -> str:
    """The figures as text: medians (min..max) of every server, some servers' ratios to others, targets."""
    servers = list(dict.fromkeys(name for row in rows for name in row.values))
    aimed = [name for name in servers if any(name in row.targets for row in rows)]
    head = ["", *(HEADINGS.get(name, name) for name in servers), *(f"{ours}/{base}" for ours, base in ratios)]
    head += [f"target, {HEADINGS.get(name, name)}" for name in aimed]
    body = [
        [
            f"{row.name}, {row.unit}",
            *(_cell(row.values.get(name)) for name in servers),
            *(_ratio(row, ours, base) for ours, base in ratios),
            *(_verdict(row, name) for name in aimed),
        ]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in (head, *body)) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in (head, *body))
    ]
    return "\n".join(line.rstrip() for line in lines)
