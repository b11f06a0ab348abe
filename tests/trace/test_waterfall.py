from math import inf

import pytest
from hypothesis import given
from tasks import call, forests, step

from headway.core.span import Span
from headway.trace.graph import slacks
from headway.trace.study import study
from headway.trace.waterfall import bars_of


def test_a_step_has_the_least_slack_of_what_it_holds() -> None:
    # a is on the path until 5; b and c end 2 and 3 s before it, in a step of their own and a step in that
    spans = [
        *(step("root", 0, 5), call("a", 0, 5, "root")),
        *(
            step("outer", 0, 3, "root"),
            call("b", 0, 2, "outer"),
            step("inner", 0, 3, "outer"),
            call("c", 0, 3, "inner"),
        ),
    ]
    slack = {bar.span.id: bar.slack for bar in bars_of(study(spans))}
    assert slack == {"root": 0, "a": 0, "outer": 2, "inner": 2, "b": 3, "c": 2}


@given(forests)
def test_no_step_outside_the_replay_has_more_slack_than_anything_it_holds(spans: list[Span]) -> None:
    case = study(spans)
    own, bars = slacks(case.graph, case.held), bars_of(case)
    least = list(own)
    for i in range(len(own) - 1, 0, -1):  # children after parents
        if not case.held.adrift[i]:
            least[case.tree.parent[i]] = min(least[case.tree.parent[i]], least[i])
    for i, bar in enumerate(bars):
        if bar.on_path == 0 and own[i] == inf and i not in case.held.untimed:
            assert bar.slack == pytest.approx(least[i], abs=1e-9)
