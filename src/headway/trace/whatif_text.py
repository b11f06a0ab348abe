"""What-ifs as a person writes them."""

import re
from typing import Final

from msgspec import Struct

from headway.core.budget import seconds
from headway.core.errors import BadInputError
from headway.trace.phases import DECODE, HOP, MODEL, PREFILL, QUEUE, RETRIEVAL, TOOL, Phase


class Iterations(Struct, frozen=True):
    """That many iterations fewer, of average length; never the answer."""

    fewer: int


class Cache(Struct, frozen=True):
    """This share of what was read again comes from the cache."""

    share: float


class Parallel(Struct, frozen=True):
    """The tools of each response at once."""


class Faster(Struct, frozen=True):
    """Phases that last ``factor`` times as long."""

    phases: tuple[Phase, ...]
    factor: float


class Output(Struct, frozen=True):
    """Answers ``factor`` times as long."""

    factor: float


class Tool(Struct, frozen=True):
    """One tool, ``factor`` times as long or in this many seconds a use."""

    name: str
    factor: float | None
    seconds: float | None


class Model(Struct, frozen=True):
    """All calls to one model, ``factor`` times as long."""

    name: str
    factor: float


WhatIf = Iterations | Cache | Parallel | Faster | Output | Tool | Model


PHASES: Final[dict[str, tuple[Phase, ...]]] = {
    "tpot": (DECODE,),
    "decode": (DECODE,),
    "prefill": (PREFILL,),
    "ttft": (QUEUE, PREFILL),
    "queue": (QUEUE,),
    "hop": (HOP,),
    "model": (QUEUE, PREFILL, DECODE, MODEL),
    "tools": (TOOL, RETRIEVAL),
}
_NUMBER: Final = r"([0-9]{1,6}(?:\.[0-9]{1,9})?)"
_FACTOR: Final = re.compile(_NUMBER + r"\s*x")
_SHARE: Final = re.compile(_NUMBER + r"\s*%")
_FEWER: Final = re.compile(r"-\s*([0-9]{1,6})")
_NAMED: Final = re.compile(r"(tool|model):(\S.*?)\s+(\S+(?:\s+[a-z]+)?)")
_FIX: Final = (
    'Write e.g. "iterations -3", "cache 100%", "tools parallel", "tpot 0.5x", "prefill 0.5x", "queue 0x",'
    ' "output 0.5x", "tool:search 0.5x", "tool:search 0.4s" or "model:NAME 0.5x"; several with commas between.'
)


def parse(text: str) -> tuple[WhatIf, ...]:
    """Changes as a person writes them, with commas between.

    Raises:
        BadInputError: one of them is no change, or two give one tool different lengths.
    """
    changes = tuple(_one(part.strip()) for part in text.split(","))
    lengths = [one.name for one in changes if isinstance(one, Tool) and one.seconds is not None]
    for name in lengths:
        if lengths.count(name) > 1:
            raise BadInputError(f"tool:{name} is given several lengths.", fix="Leave one of them.")
    return changes


def _one(text: str) -> WhatIf:
    what, _, how = text.partition(" ")
    how = how.strip()
    if named := _NAMED.fullmatch(text):
        return _of_name(text, *named.groups())
    if what == "iterations" and (match := _FEWER.fullmatch(how)):
        return Iterations(int(match[1]))
    if what == "cache" and (match := _SHARE.fullmatch(how)) and float(match[1]) <= 100:  # noqa: PLR2004 - per cent
        return Cache(float(match[1]) / 100)
    if (what, how) == ("tools", "parallel"):
        return Parallel()
    if match := _FACTOR.fullmatch(how):
        factor = float(match[1])
        if what == "output":
            return Output(factor)
        if what in PHASES:
            return Faster(PHASES[what], factor)
    raise BadInputError(f"{text!r} is no change.", fix=_FIX)


def _of_name(text: str, kind: str, name: str, how: str) -> WhatIf:
    match = _FACTOR.fullmatch(how)
    if kind == "tool":
        if match:
            return Tool(name, float(match[1]), None)
        return Tool(name, None, seconds(how, f"--what-if {text!r}"))
    if match:
        return Model(name, float(match[1]))
    raise BadInputError(f"{text!r} is no change.", fix=_FIX)
