"""Peers that cannot be measured are named, and take nobody else with them."""

from pathlib import Path

import pytest
from msgspec import structs

from peers import Field, Load
from rig.build import CannotBuildError, build
from rig.figures import ALL
from rig.peers import PEERS, CannotInstallError, install
from rig.processes import Cores
from rig.rounds import Loader, WrongAnswerError
from rig.servers import Pace, Server, mock_engine
from rig.traffic import Traffic, question_traffic, stream_events


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    try:
        build("mock")
        build("load")
    except CannotBuildError as error:
        pytest.skip(str(error))


def test_a_peer_that_there_is_not_cannot_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    nowhere = structs.replace(PEERS[0], requirement=f"{tmp_path / 'no such wheel.whl'}")

    with pytest.raises(CannotInstallError, match="such"):
        install(nowhere)


def test_who_answers_wrongly_is_left_out_and_who_writes_answers_anew_is_not(tmp_path: Path) -> None:
    traffic, field = question_traffic(306, conversations=1), Field()
    with mock_engine(traffic, stream_events(4), Pace(), Cores(), tmp_path) as engine:
        other = Traffic(traffic.bodies, traffic.turns, traffic.answer[:-2] + b"]}", traffic.mark)
        loader, load = Loader(other, engine, Cores(), tmp_path, requests=5), Load("x", other, 1)
        wrong = Server("wrong", engine.port, engine.pid)

        assert field.load(loader, wrong, load, 30) is None
        assert field.load(loader, wrong, load, 30) is None
        kept = field.load(loader, Server("anew", engine.port, engine.pid, rewrites=True), load, 30)
        with pytest.raises(WrongAnswerError):
            field.load(loader, Server(ALL, engine.port, engine.pid), load, 30)

    assert kept is not None
    assert kept.answers == 5
    assert list(field.out) == ["wrong"]
    assert "differs from the expected one" in field.out["wrong"]
