import io

import pytest
from rich.console import Console
from sets import imported, renamed, studied

from headway.app.report.set_terminal import render_set


def slowest(*ids: str, width: int = 100) -> list[str]:
    """The lines of the section on the slowest tasks, its head left out; each task takes longer than the one before."""
    study = studied(*(renamed(imported(number, number + 1), task) for number, task in enumerate(ids)))
    out = io.StringIO()
    Console(file=out, width=width).print(render_set(study.report()))
    _, _, after = out.getvalue().partition("SLOWEST")
    section, _, _ = after.partition("HOW GOOD")
    return section.splitlines()[2:]


def test_a_short_id_tells_a_task_from_all_others_and_not_from_the_slow_ones_alone() -> None:
    ids = [f"{number:x}" * 32 for number in range(1, 8)]
    twin = "7" * 20 + "0" * 12  # as quick as can be, so not among the slowest
    lines = slowest(twin, *ids)
    assert lines[0].split()[0] == "7" * 21
    assert lines[1].split()[0] == "6" * 8


@pytest.mark.parametrize("width", [100, 60])
def test_a_long_id_goes_on_in_the_next_line_and_is_never_cut(width: int) -> None:
    ids = [f"agent__project-{'x' * 60}-{number}" for number in range(3)]
    lines = slowest(*ids, width=width)
    names = "".join(line[2:].split(" ", 1)[0] for line in lines)
    parts = 1 if width == 100 else 2  # numbers that do not fit follow below, beside the names once more
    assert names == "".join(reversed(ids)) * parts
