import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from headway.app.report.grid import Grid


def printed(grid: Grid, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(grid)
    return out.getvalue()


def test_columns_that_do_not_fit_follow_below_beside_the_names() -> None:
    grid = Grid(("", "mean", "p50", "p99"), [("E2E", "1000000", "2000000", "3000000"), ("N", "4", "5", "6")])
    assert [line.split() for line in printed(grid, 25).splitlines()] == [
        ["mean", "p50"],
        ["E2E", "1000000", "2000000"],
        ["N", "4", "5"],
        [],
        ["p99"],
        ["E2E", "3000000"],
        ["N", "6"],
    ]
    assert len(printed(grid, 60).splitlines()) == 3


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(30, 100), st.booleans())
def test_no_number_is_lost_or_cut_at_any_width(digits: list[int], width: int, words: bool) -> None:
    cells = [f"{i}" * size for i, size in enumerate(digits)]
    head = ["", *(f"h{i}" for i in range(len(digits))), *(["words"] if words else [])]
    found = printed(Grid(head, [["name", *cells, *(["some words"] if words else [])]], words=words), width).split()
    assert set(head) - {""} <= set(found)
    assert set(cells) <= set(found)


@pytest.mark.parametrize("width", [30, 100])
def test_words_stand_beside_the_names_once(width: int) -> None:
    grid = Grid(("", "a", "b", "asked"), [("task", "1" * 8, "2" * 8, "why")], words=True)
    assert printed(grid, width).split().count("why") == 1
