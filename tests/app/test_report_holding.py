from msgspec.structs import replace

from headway.app.report.holding import along_the_path
from headway.trace.anatomy import Anatomy


def test_rows_on_the_path_and_those_around_them(anatomy: Anatomy) -> None:
    planner, first, search, calculator, second, critic, judge, retrieval, third = anatomy.bars
    idle = [replace(bar, on_path=0.0) for bar in (planner, first, search, calculator, second, critic, retrieval, third)]
    only = [*idle[:6], replace(judge, on_path=6.8), *idle[6:]]
    assert along_the_path(only) == {planner.span.id, critic.span.id, judge.span.id}
    assert along_the_path(idle) == set()
    assert along_the_path([]) == set()
