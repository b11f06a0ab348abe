"""How tools ended: failed, well, or seen by nobody."""

import pytest
from findings import broken, used
from tasks import span, tool

from headway.core.span import Retrieval, Span
from headway.trace.ended import failed, untold


@pytest.mark.parametrize(
    ("made", "known"),
    [
        (tool("t", 0, 1), (False, False)),
        (tool("t", 0, 1, inferred=True), (False, True)),  # the gap in which it ran says nothing of it
        (tool("t", 0, None), (False, True)),
        (used(tool("t", 0, None), "look", failed=False), (False, False)),
        (used(tool("t", 0, 1, inferred=True), "look", failed=True), (True, False)),
        (broken(tool("t", 0, None)), (True, False)),
        (span("r", 0, 1, Retrieval()), (False, False)),
        (span("r", 0, None, Retrieval()), (False, True)),
    ],
)
def test_a_tool_whose_end_nobody_saw_may_have_failed(made: Span, known: tuple[bool, bool]) -> None:
    assert (failed(made), untold(made)) == known
