"""Whose models cost nothing."""

from headway.core.fleet import Replica, ReplicaId
from headway.gateway.door_opening import OwnModels
from headway.gateway.fleet import LiveFleet


def replica(name: str, *models: str, key: str | None = None) -> Replica:
    return Replica(id=ReplicaId(name), url="http://127.0.0.1:1/v1", models=models, api_key=key)


def test_a_model_is_ones_own_where_all_who_serve_it_are_and_that_follows_the_fleet() -> None:
    fleet = LiveFleet([replica("a", "small"), replica("b", "large", key="k")])
    own = OwnModels(fleet)
    assert [model in own for model in ("small", "large", "small")] == [True, False, True]
    fleet.put(replica("c", "small", key="k"))
    assert "small" not in own
    fleet.remove(ReplicaId("c"))
    assert "small" in own
