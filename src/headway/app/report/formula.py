"""The formula E2E = sum over the calls (hop + retry + queue + prefill + decode + tools), rounded so that it adds up."""

from collections.abc import Sequence

from msgspec import Struct, structs

from headway.app.report.figures import apportion, decimals_for
from headway.app.report.fold import scattered
from headway.core.usage import Usage
from headway.trace.anatomy import Anatomy, Iteration
from headway.trace.path import Phase

COLUMNS: dict[str, tuple[Phase, ...]] = {
    "hop": (Phase.HOP,),
    "retry": (Phase.RETRY,),
    "queue": (Phase.QUEUE,),
    "prefill": (Phase.PREFILL,),
    "decode": (Phase.DECODE,),
    "unsplit": (Phase.MODEL,),
    "tools": (Phase.TOOL, Phase.RETRIEVAL, Phase.HUMAN),
}
"""The terms of the formula, and the phases each of them holds."""


class Row(Struct, frozen=True, kw_only=True):
    """One term of the sum: an iteration, what came before the first, or several folded into one."""

    label: str
    model: str
    terms: dict[str, int]
    """Per column, in units of the table."""
    seconds: float
    """The row's sum before it was rounded, which its share is of."""
    share: int
    """Of E2E, in tenths of a per cent."""
    tpot: float | None = None
    tpot_by_engine: bool = False
    tpot_to_end: bool = False
    usage: Usage | None = None

    @property
    def total(self) -> int:
        """The row's sum, in units of the table."""
        return sum(self.terms.values())


class Formula(Struct, frozen=True, kw_only=True):
    """The table. One unit is 10^-``decimals`` seconds; every row, every column and the whole add up exactly."""

    decimals: int
    rows: tuple[Row, ...]
    totals: dict[str, int]
    shares: dict[str, int]
    """Of E2E per column, in tenths of a per cent; they sum to 1000. Like all shares, of what was not yet rounded."""
    phases: dict[Phase, int]
    """Units per phase of the critical path, largest first; those of a column sum to the column."""
    phase_shares: dict[Phase, int]
    e2e: int

    @property
    def used(self) -> tuple[str, ...]:
        """The columns in which anything took time."""
        return tuple(column for column, total in self.totals.items() if total) or ("hop",)


def formula(anatomy: Anatomy, limit: int) -> Formula:
    """The formula of one task in at most ``limit`` rows: the smallest iterations beyond that share rows."""
    decimals = decimals_for(anatomy.e2e)
    parts = _parts(anatomy)
    scale = 10**decimals
    sums = {column: sum(part.terms[column] for part in parts) * scale for column in COLUMNS}
    e2e = round(sum(sums.values()))
    totals = dict(zip(COLUMNS, apportion(list(sums.values()), e2e), strict=True))
    cells = {
        column: apportion([part.terms[column] * scale for part in parts], totals[column]) if sums[column] else None
        for column in COLUMNS
    }
    whole = [
        Row(
            label=part.label,
            model=part.model,
            terms={column: 0 if units is None else units[i] for column, units in cells.items()},
            seconds=sum(part.terms.values()),
            share=0,
            tpot=part.tpot,
            tpot_by_engine=part.tpot_by_engine,
            tpot_to_end=part.tpot_to_end,
            usage=part.usage,
        )
        for i, part in enumerate(parts)
    ]
    rows = _shortened(whole, limit)
    phases = _phases(anatomy, totals)
    return Formula(
        decimals=decimals,
        rows=tuple(
            structs.replace(row, share=share)
            for row, share in zip(rows, _tenths([row.seconds for row in rows]), strict=True)
        ),
        totals=totals,
        shares=dict(zip(COLUMNS, _tenths([sums[name] if totals[name] else 0.0 for name in COLUMNS]), strict=True)),
        phases=phases,
        phase_shares=dict(zip(phases, _tenths([anatomy.phases[phase] for phase in phases]), strict=True)),
        e2e=e2e,
    )


class _Part(Struct, frozen=True, kw_only=True):
    label: str
    model: str
    terms: dict[str, float]
    tpot: float | None = None
    tpot_by_engine: bool = False
    tpot_to_end: bool = False
    usage: Usage | None = None


def _parts(anatomy: Anatomy) -> list[_Part]:
    parts = [_iteration(number, it) for number, it in enumerate(anatomy.iterations, 1)]
    if anatomy.lead_in <= 0:
        return parts
    before = {
        column: sum(
            max(0.0, min(tile.end, anatomy.lead_in) - tile.start) for tile in anatomy.path if tile.phase in phases
        )
        for column, phases in COLUMNS.items()
    }
    return [_Part(label="", model="before call 1", terms=before), *parts]


def _iteration(number: int, it: Iteration) -> _Part:
    terms = (it.hop, it.retry, it.queue, it.prefill, it.decode, it.model_unsplit, it.tools)
    return _Part(
        label=str(number),
        model=f"{it.model}, answered from the cache" if it.given_again else it.model,
        terms=dict(zip(COLUMNS, terms, strict=True)),
        tpot=it.tpot,
        tpot_by_engine=it.tpot_by_engine,
        tpot_to_end=it.tpot_to_end,
        usage=it.usage,
    )


def _tenths(values: Sequence[float]) -> list[int]:
    total = sum(values)
    return apportion([value * 1000 / total for value in values], 1000) if total > 0 else [0] * len(values)


def _phases(anatomy: Anatomy, totals: dict[str, int]) -> dict[Phase, int]:
    units: dict[Phase, int] = {}
    for column, phases in COLUMNS.items():
        values = [anatomy.phases.get(phase, 0.0) for phase in phases]
        if sum(values) > 0:
            scale = totals[column] / sum(values)
            units |= zip(phases, apportion([value * scale for value in values], totals[column]), strict=True)
    return {phase: units[phase] for phase in sorted(units, key=lambda phase: -units[phase]) if units[phase]}


def _shortened(rows: Sequence[Row], limit: int) -> list[Row]:
    """Keep the largest, of equals some from everywhere; each run of others becomes one row of their sums."""
    if len(rows) <= limit:
        return list(rows)
    kept = set(sorted(range(len(rows)), key=lambda i: (-rows[i].total, scattered(i)))[: limit // 2])
    shown: list[Row] = []
    run: list[Row] = []
    for i, row in enumerate(rows):
        if i not in kept:
            run.append(row)
            continue
        shown += _together(run)
        run = []
        shown.append(row)
    return shown + _together(run)


def _together(run: Sequence[Row]) -> list[Row]:
    if len(run) <= 1:
        return list(run)
    terms = {column: sum(row.terms[column] for row in run) for column in COLUMNS}
    spent = sum(row.seconds for row in run)
    return [
        Row(label=f"{run[0].label}-{run[-1].label}", model=f"{len(run):,} calls", terms=terms, seconds=spent, share=0)
    ]
