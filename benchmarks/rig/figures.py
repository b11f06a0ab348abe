"""From rounds to figures: medians with their range, differences to the direct way, and the table that is printed."""

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from msgspec import Struct

from rig.rounds import Round

FULL, BARE, NGINX, DIRECT = "headway", "bare", "nginx", "direct"
COLUMNS = (FULL, BARE, NGINX)
HEADINGS = {FULL: "recording+identity", BARE: "both off", NGINX: "nginx"}


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
    target: float | None = None
    """Most that Headway, recording and identifying, may take."""
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
    target: float | None = None,
    nginx_then: float | None = None,
    higher_is_better: bool = False,
) -> Figure:
    """A figure that each round has by itself."""
    servers = [name for name in COLUMNS if any(one.server == name for one in rounds)]
    values = {name: _spread(of(one) for one in rounds if one.server == name) for name in servers}
    return Figure(
        name=name, unit=unit, values=values, target=target, nginx_then=nginx_then, higher_is_better=higher_is_better
    )


def added(
    name: str, unit: str, rounds: Sequence[Round], of: Callable[[Round], float], *, target: float | None = None
) -> Figure:
    """What a server adds to the direct way: the difference is taken within each round, where the weather is alike."""
    direct = [of(one) for one in rounds if one.server == DIRECT]
    servers = [name for name in COLUMNS if any(one.server == name for one in rounds)]
    values = {
        name: _spread(of(one) - base for one, base in zip((r for r in rounds if r.server == name), direct, strict=True))
        for name in servers
    }
    return Figure(name=name, unit=unit, values=values, target=target)


def _number(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1000:,.1f}k"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _cell(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"{_number(spread.median)} ({_number(spread.least)}..{_number(spread.most)})"


def _ratio(row: Figure, base: str) -> str:
    """How many times the base's figure Headway's is; - where a base near nothing makes it meaningless."""
    ours, theirs = row.values.get(FULL), row.values.get(base)
    if ours is None or theirs is None or theirs.median <= 0 or ours.median <= 0:
        return "-"
    return f"{ours.median / theirs.median:.2f}x"


def _verdict(row: Figure) -> str:
    ours = row.values.get(FULL)
    if row.target is None or ours is None:
        return ""
    verdict = "PASS" if ours.median <= row.target else "over"
    relative = "" if row.nginx_then is None else f" ({row.target / row.nginx_then:.2f}x nginx)"
    return f"≤{row.target:g}{relative} {verdict}"


def table(rows: Sequence[Figure]) -> str:
    """The figures as text: medians (min..max), Headway's ratios to the other columns, targets."""
    head = ["", *(HEADINGS[name] for name in COLUMNS), "vs off", "vs nginx", "target"]
    body = [
        [
            f"{row.name}, {row.unit}",
            *(_cell(row.values.get(name)) for name in COLUMNS),
            _ratio(row, BARE),
            _ratio(row, NGINX),
            _verdict(row),
        ]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in (head, *body)) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in (head, *body))
    ]
    return "\n".join(line.rstrip() for line in lines)
