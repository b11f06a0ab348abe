"""Where the time of calls goes that broke off, and of those that no engine ever saw."""

import pytest
from findings import found
from msgspec import structs
from savings import levers
from tasks import call

from headway.core.span import ErrorType
from headway.trace.anatomy import dissect
from headway.trace.phases import Phase


@pytest.mark.parametrize("error", ["upstream_stalled", "upstream_closed", "client_gone"])
def test_an_engine_that_falls_silent_in_mid_answer_is_at_work_and_no_hop(error: str) -> None:
    spans = [structs.replace(call("a", 0, 2, marks=(0, 0.5, 1)), error=ErrorType(error))]
    assert dissect(spans).phases == {Phase.PREFILL: 0.5, Phase.DECODE: 0.5, Phase.MODEL: 1}
    assert "no hop" not in levers(spans)
    assert "hop-gaps" not in found(spans)


def test_a_caller_that_stops_reading_is_a_hop() -> None:
    spans = [structs.replace(call("a", 0, 2, marks=(0, 0.5, 1)), error=ErrorType("client_stalled"))]
    assert dissect(spans).phases[Phase.HOP] == 1
