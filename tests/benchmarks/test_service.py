"""Headway with all features, as the benchmark runs it: every call passes them."""

from pathlib import Path

import pytest

from headway.core.span import ModelCall
from headway.trace.store import Store
from rig.build import CannotBuildError, build
from rig.processes import Cores
from rig.rounds import Loader
from rig.servers import Pace, Seen, mock_engine
from rig.service import service
from rig.traffic import agent_traffic, stream_events


def test_every_call_is_let_in_by_key_told_apart_routed_with_a_receipt_and_recorded(tmp_path: Path) -> None:
    try:
        build("load")
    except CannotBuildError as error:
        pytest.skip(str(error))
    traffic, seen = agent_traffic(27_000, conversations=1, steps=3), list[Seen]()
    with (
        mock_engine(traffic, stream_events(4), Pace(), Cores(), tmp_path) as engine,
        service("all", engine, Cores(), tmp_path, seen) as server,
    ):
        result = Loader(traffic, engine, Cores(), tmp_path, requests=6).run(server, connections=1, seconds=30)

    assert result.answers == 6
    assert seen[0].dropped == 0
    assert seen[0].evidence == {"new": 2, "tool_result": 4}
    with Store(tmp_path / "all" / "spans.db", readonly=True) as store:
        calls = [span for row in store.tasks(10) for span in store.spans(row.task) if isinstance(span.work, ModelCall)]
    assert len(calls) == 6
    assert {span.tenant for span in calls} == {"bench"}
    assert {work.route.policy for span in calls if isinstance(work := span.work, ModelCall) and work.route} == {
        "expected-seconds"
    }
