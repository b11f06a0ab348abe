"""What a scatter will take before it starts: tokens, seconds and money, and how wide it should be."""

from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from typing import Final, TypedDict

from msgspec import Struct

from headway.core.errors import BadInputError
from headway.core.money import MicroUsd
from headway.core.usage import Usage
from headway.runtime.chunking import ESTIMATE, Measure
from headway.trace.scaling.curve import Point
from headway.trace.scaling.knee import Knee, knee
from headway.trace.scaling.speed import Speed

_MILLION: Final = 1_000_000


class Known(Struct, frozen=True):
    """What earlier calls of a model tell."""

    speed: Speed = Speed()
    points: tuple[Point, ...] = ()
    """How many times as fast as one after another, by calls under way."""


class Planned(TypedDict, total=False):
    """How a scatter is planned."""

    max_tokens: int
    """Most tokens of an answer; 4,096 unless said otherwise."""
    output_tokens: float
    """Of an answer, on average; unless given, as many as the model's had so far."""
    width: int
    """Calls at once; unless given, the knee of the measured curve."""
    measure: Measure
    """How tokens are counted; unless given, as many a character as earlier prompts had, else by `ESTIMATE`."""


class Estimate(Struct, frozen=True, kw_only=True):
    """What a scatter will take. ``None`` is unknown; `remarks` say why, and what would tell."""

    model: str
    items: int
    input_tokens: int
    """As if nothing were read from a cache."""
    counted: str
    """How the input was counted or estimated."""
    output_tokens: int | None
    width: int | None
    """For ``run.map(…, limit=…)``: what was asked for, else the knee of the measured curve."""
    seconds: float | None
    """At that width."""
    one_by_one: float | None
    """Seconds at a width of 1."""
    money: MicroUsd | None
    known: Known
    knee: Knee | None
    remarks: tuple[str, ...]

    @property
    def tokens(self) -> int | None:
        """Input and output."""
        return None if self.output_tokens is None else self.input_tokens + self.output_tokens

    def __str__(self) -> str:
        """A page."""
        alone = "" if self.one_by_one is None else f" (one after another {self.one_by_one:,.1f} s)"
        wide = f"{self.width} at once" if self.width is not None else "width unknown"
        lines = [
            f"{self.items} call{'' if self.items == 1 else 's'} of {self.model}, {wide}",
            f"  tokens   {_shown(self.tokens)}: {self.input_tokens:,} in, {_shown(self.output_tokens)} out",
            f"  seconds  {'unknown' if self.seconds is None else f'{self.seconds:,.1f}'}{alone}",
            f"  money    {'unknown' if self.money is None else f'{self.money / _MILLION:,.6f} USD'}",
        ]
        notes = [f"Input tokens: {self.counted}.", *([] if self.knee is None else [f"Width: {self.knee}."])]
        return "\n".join([*lines, *(f"  - {note}" for note in (*notes, *self.remarks))])


def _shown(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def counted(prompts: Sequence[Sequence[str]], speed: Speed, measure: Measure | None) -> tuple[list[int], str]:
    """Tokens of each prompt, and who told them: the caller's tokenizer, earlier prompts, or an estimate."""
    if measure is None and speed.tokens_a_char is not None:
        rate = speed.tokens_a_char
        told = f"an estimate, {rate:.3f} tokens a character as in earlier calls"
        return [round(rate * sum(map(len, prompt))) for prompt in prompts], told
    measure = measure or ESTIMATE
    return [sum(map(measure.count, prompt)) for prompt in prompts], measure.name


def makespan(seconds: Sequence[float], width: int) -> float:
    """When the last of them is done, where each begins as soon as one of ``width`` places is free, in their order."""
    free = [0.0] * min(width, len(seconds))
    heapify(free)
    for one in seconds:
        heapreplace(free, free[0] + one)
    return max(free, default=0.0)


def estimated(
    model: str,
    sizes: tuple[Sequence[int], str],
    output_tokens: float | None,
    width: int | None,
    known: Known,
    cost: Callable[[Usage], MicroUsd | None],
) -> Estimate:
    """Put together what is known.

    Args:
        model: its name.
        sizes: input tokens of each item, and how they were counted.
        output_tokens: of each answer; ``None``: unknown.
        width: items at once; ``None``: the knee.
        known: what earlier calls tell.
        cost: what a call costs; ``None`` where the price is not known.

    Raises:
        BadInputError: the width is below 1.
    """
    inputs, told = sizes
    if width is not None and width < 1:
        raise BadInputError(f"width={width} is no width.", fix="Give 1 or more, or none, for the knee.")
    bend = knee(known.points)
    wide = width if width is not None or bend is None else max(1, min(bend.width, len(inputs)))
    each = [known.speed.seconds(size, output_tokens) for size in inputs]
    usages = [
        Usage(input_tokens=size, output_tokens=_whole(output_tokens), cache_read=0, cache_write=0) for size in inputs
    ]
    costs = [cost(usage) for usage in usages]
    seconds = None if wide is None else _seconds(each, min(wide, max(1, len(inputs))), known.points, bend)
    return Estimate(
        model=model,
        items=len(inputs),
        input_tokens=sum(inputs),
        counted=told,
        output_tokens=None if output_tokens is None else round(output_tokens * len(inputs)),
        width=wide,
        seconds=seconds,
        one_by_one=_seconds(each, 1, known.points, bend),
        money=None if None in costs else MicroUsd(sum(one for one in costs if one is not None)),
        known=known,
        knee=bend,
        remarks=tuple(_remarks(model, known, bend, output_tokens, each, wide, priced=None not in costs)),
    )


def _whole(tokens: float | None) -> int | None:
    return None if tokens is None else round(tokens)


def _seconds(each: Sequence[float | None], width: int, points: Sequence[Point], bend: Knee | None) -> float | None:
    known = [one for one in each if one is not None]
    rate = _rate(width, points, bend)
    if len(known) < len(each) or rate is None:
        return None
    return makespan([one * width / rate for one in known], width)


def _rate(width: int, points: Sequence[Point], bend: Knee | None) -> float | None:
    """How many times as fast as one after another: by the fit, within what was measured, else as measured."""
    if bend is not None:
        return bend.fit.rate(width) if width <= bend.highest else None
    return next((point.rate for point in points if round(point.width) == width), None)


def _remarks(
    model: str,
    known: Known,
    bend: Knee | None,
    output_tokens: float | None,
    each: Sequence[float | None],
    width: int | None,
    *,
    priced: bool,
) -> list[str]:
    speed, remarks = known.speed, list[str]()
    if not speed.calls:
        remarks.append(
            f"No call of {model} is recorded, so nobody knows how fast it is: make some by `calibrate`, or give the"
            " Runtime a store that holds some."
        )
    if output_tokens is None:
        remarks.append("How long answers will be is not known: give output_tokens.")
    elif None in each and speed.calls:
        remarks.append(_unlike(speed))
    if speed.calls and bend is None:
        seen = ", ".join(str(round(point.width)) for point in known.points) or "none"
        remarks.append(f"Calls at fewer than four widths are recorded ({seen}), so there is no knee: see `calibrate`.")
    if bend is not None and width is not None and width > bend.highest:
        remarks.append(
            f"No more than {bend.highest:.3g} at once were measured, so how long {width} at once take is not known."
        )
    if output_tokens is not None and not priced:
        remarks.append(f"The price of {model} is not known: give it by Models(…, prices=…).")
    return remarks


def _unlike(speed: Speed) -> str:
    if speed.longest is None or speed.longest_answer is None:
        return "No call told how many tokens it read and wrote."
    return (
        f"Prompts or answers are much longer than any that was measured ({speed.longest:,} and {speed.longest_answer:,}"
        " tokens), and how the time rises with their length is not known."
    )
