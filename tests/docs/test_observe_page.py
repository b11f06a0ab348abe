"""The page on watching the gateway names every metric that there is."""

import re
from pathlib import Path
from random import Random

from headway.core.fleet import FleetView, Replica, ReplicaId, ReplicaLoad
from headway.gateway.metrics import Metrics
from headway.gateway.observer.endpoint import Taken
from headway.gateway.observer.export import Exporter
from headway.gateway.observer.whole_tasks import WholeTasks

PAGE = (Path(__file__).parents[2] / "docs" / "observe.md").read_text()


def test_every_metric_is_on_the_page() -> None:
    replica = Replica(id=ReplicaId("a"), url="http://127.0.0.1:1/v1")
    view = FleetView((ReplicaLoad(replica=replica, healthy=True, in_flight=0),))
    calls = Metrics().render(view, spans_recorded=0, spans_dropped=0, spans_lost=0).decode().splitlines()
    exporter = Exporter(Path("unused"), "n", lambda _: Taken(), Random(1))
    exporter.up = True
    lines = [*calls, *WholeTasks(lambda _: []).page(), *exporter.page()]
    names = {match[1] for line in lines if (match := re.match(r"# TYPE (\S+)", line))}
    assert len(names) > 25
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
