"""What is served is what the file says, with the command line's word before it."""

from pathlib import Path

import pytest

from headway.app.config.reading import read_config
from headway.app.config.serving import service_of, with_flags
from headway.core.errors import BadInputError
from headway.core.fleet import Replica, ReplicaId

TEXT = """
[gateway]
port = 9000
admin = false
store = "spans.db"
policy = "round-robin"
drain = "1 min"
allow_hosts = ["agents.example"]

[[replicas]]
id = "a"
url = "http://127.0.0.1:8001"
models = ["qwen3"]

[[replicas]]
url = "https://api.example.com/v1"
key_env = "EXAMPLE_KEY"
"""
FILE = read_config(TEXT, "headway.toml")


def test_the_file_alone(tmp_path: Path) -> None:
    service = service_of(FILE, tmp_path, {"EXAMPLE_KEY": "sk-1"})
    assert (service.port, service.admin_port, service.policy, service.drain) == (9000, None, "round-robin", 60.0)
    assert (service.store, service.allow_hosts) == (tmp_path / "spans.db", ("agents.example",))
    assert service.upstreams == (
        Replica(id=ReplicaId("a"), url="http://127.0.0.1:8001/v1", models=("qwen3",)),
        Replica(id=ReplicaId("api.example.com"), url="https://api.example.com/v1", api_key="sk-1"),
    )


def test_flags_go_before_it_and_what_they_do_not_say_stays(tmp_path: Path) -> None:
    flags = {"port": 0, "admin": True, "record": False, "policy": None}
    service = service_of(with_flags(FILE, flags, {}), tmp_path, {"EXAMPLE_KEY": "sk-1"})
    assert (service.port, service.admin_port, service.store, service.policy) == (0, 0, None, "round-robin")


def test_a_key_that_is_not_there_is_told_by_its_variable() -> None:
    with pytest.raises(BadInputError, match="the environment variable EXAMPLE_KEY is not set"):
        service_of(FILE, Path(), {})
