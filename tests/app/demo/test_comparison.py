import msgspec
from rich.console import Console

from headway.app.demo.comparison import compare
from headway.core.money import MicroUsd
from headway.core.usage import Usage
from headway.trace.anatomy import Anatomy
from headway.trace.path import Phase

Rows = dict[str, list[str]]


def rows(direct: Anatomy, planning: Anatomy) -> Rows:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(compare(direct, planning))
    lines = [line.split("  ") for line in capture.get().splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    return {line[0]: line[1:] for line in cells if line}


def like(example: Anatomy, calls: int, e2e: float, usage: Usage, cost: int | None) -> Anatomy:
    one = msgspec.structs.replace(example.iterations[0], hop=0.0, queue=0.0, prefill=e2e / 2, decode=e2e / 2, tools=0.0)
    return msgspec.structs.replace(
        example,
        iterations=(one,),
        lead_in=0.0,
        calls=calls,
        e2e=e2e,
        usage=usage,
        cost=None if cost is None else MicroUsd(cost),
        phases={Phase.PREFILL: e2e / 2, Phase.DECODE: e2e / 2},
        task_ttft=e2e / 2,
    )


def test_each_figure_stands_beside_its_rival_with_the_ratio(anatomy: Anatomy) -> None:
    direct = like(anatomy, 1, 4.0, Usage(input_tokens=400, output_tokens=50, cache_read=0), None)
    planning = like(anatomy, 3, 10.0, Usage(input_tokens=1800, output_tokens=200, cache_read=900), None)
    table = rows(direct, planning)
    assert table["model calls"] == ["1", "3", "3.0x"]
    assert table["input tokens"] == ["400", "1,800", "4.5x"]
    assert table["of them from the cache"] == ["0", "900"]  # no ratio to nothing
    assert table["output tokens"] == ["50", "200", "4.0x"]
    assert table["end to end"] == ["4.00 s", "10.00 s", "2.5x"]
    assert table["first visible output"] == ["2.00 s", "5.00 s", "2.5x"]
    assert "cost" not in table


def test_what_is_unknown_says_so_and_a_known_price_is_shown(anatomy: Anatomy) -> None:
    known = like(anatomy, 1, 4.0, Usage(input_tokens=400, output_tokens=50), 20_000)
    unknown = like(anatomy, 2, 4.0, Usage(), None)
    table = rows(known, unknown)
    assert table["input tokens"] == ["400", "unknown"]
    assert table["of them from the cache"] == ["unknown", "unknown"]
    assert table["cost"] == ["$0.0200", "unknown"]


def test_a_phase_that_could_not_be_told_apart_is_unknown_and_not_0(anatomy: Anatomy) -> None:
    split = like(anatomy, 1, 4.0, Usage(), None)
    unsplit = msgspec.structs.replace(split, phases={Phase.MODEL: 4.0})
    table = rows(unsplit, split)
    assert table["reading prompts (prefill)"] == ["unknown", "2.00 s"]
    assert table["writing (decode)"] == ["unknown", "2.00 s"]


def test_a_phase_reads_as_it_does_in_the_account_of_its_task(anatomy: Anatomy) -> None:
    # 20.03 s: the halves, 10.015 s each, are printed as 10.02 and 10.01, so that they add up
    table = rows(*[like(anatomy, 1, 20.03, Usage(), None)] * 2)
    assert (table["reading prompts (prefill)"][0], table["writing (decode)"][0]) == ("10.02 s", "10.01 s")
