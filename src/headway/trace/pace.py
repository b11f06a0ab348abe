"""How long calls write whose first token was not timed: by how their time rises with their output."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from headway.core.span import ModelCall
from headway.trace.phases import MODEL
from headway.trace.stats import Line, fit
from headway.trace.study import Study

LEAST: Final = 5
"""Calls: of fewer, even a perfect order is no sign."""
SURE: Final = 0.5
"""Lower end of the slope's interval / slope: below that, how long they write is anybody's guess."""


class Pace(Struct, frozen=True, kw_only=True):
    """Of one model's calls whose time is not split."""

    model: str
    line: Line
    """Seconds of a call over its output tokens."""
    shortest: int
    """Fewest output tokens of a call."""
    longest: int
    writing: dict[int, float]
    """Seconds that each call writes by the line: slope x output tokens, at most its whole time."""


def paces(study: Study) -> list[Pace]:
    """Of each model of which enough calls are known, and whose time clearly rises with the output.

    What rises together with the output, as the reading of a growing history may, is in the slope too.
    """
    by_model: dict[str, list[tuple[int, int, float]]] = {}
    for i in study.held.calls:
        call, own = study.tree.spans[i].work, study.own[i]
        if isinstance(call, ModelCall) and own and study.tree.spans[i].error is None and not study.held.adrift[i]:
            spent = sum(segment.end - segment.start for segment in own if segment.phase == MODEL)
            if spent > 0 and call.usage.output_tokens is not None:
                by_model.setdefault(call.model, []).append((i, call.usage.output_tokens, spent))
    return [pace for model, calls in by_model.items() if (pace := _pace(model, calls)) is not None]


def writing_shares(study: Study) -> dict[int, float]:
    """Of each call whose time is not split, what share of that it writes by the line; those not known are not in it."""
    shares: dict[int, float] = {}
    for pace in paces(study):
        for i, spent in pace.writing.items():
            whole = sum(segment.end - segment.start for segment in study.own[i] if segment.phase == MODEL)
            shares[i] = min(spent / whole, 1.0)
    return shares


def _pace(model: str, calls: Sequence[tuple[int, int, float]]) -> Pace | None:
    line = fit([(tokens, spent) for _, tokens, spent in calls], least=LEAST)
    if line is None or line.slope_low <= 0 or line.slope_low < SURE * line.slope:
        return None
    written = [tokens for _, tokens, _ in calls]
    return Pace(
        model=model,
        line=line,
        shortest=min(written),
        longest=max(written),
        writing={i: min(line.slope * tokens, spent) for i, tokens, spent in calls},
    )
