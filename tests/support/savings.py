"""What the levers save, in round numbers."""

from collections.abc import Sequence

from tasks import call, tool

from headway.core.money import Price
from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.trace.levers import Lever, rank

ONE_USD = 1_000_000


def priced(_call: ModelCall, _at: float) -> Price:
    return Price(input=1 * ONE_USD, output=2 * ONE_USD, cache_read=ONE_USD // 10)


def unpriced(_call: ModelCall, _at: float) -> None:
    return None


def levers(spans: Sequence[Span]) -> dict[str, Lever]:
    return {lever.name: lever for lever in rank(spans, prices=priced)}


def seconds(spans: Sequence[Span]) -> dict[str, float]:
    return {name: round(lever.seconds, 9) for name, lever in levers(spans).items()}


def usage(read: int, wrote: int, cached: int = 0) -> Usage:
    return Usage(input_tokens=read, output_tokens=wrote, cache_read=cached)


#      hop prefill decode        hop  prefill decode       hop prefill decode
# a 0 -- .25 -- 1 -- 2 | t 2-5 | 5 - 5.5 -- 6.5 -- 7.5 | u 7.5-8 | 8 - 8.25 -- 9.25 -- 11.25
LOOP = [
    call("a", 0, 2, marks=(0.25, 1, 2), asks=("1",), usage=usage(1000, 100)),
    tool("t", 2, 5, by="a", inferred=True),
    call("b", 5, 7.5, marks=(5.5, 6.5, 7.5), asks=("2",), usage=usage(1400, 100)),
    tool("u", 7.5, 8, by="b", inferred=True),
    call("c", 8, 11.25, marks=(8.25, 9.25, 11.25), usage=usage(2000, 201, cached=1000)),
]
