"""Configurations with every field right, every field wrong, and none."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.app.config.reading import BadConfigError, load_config, read_config
from headway.app.config.written import File
from headway.core.config import Limits
from headway.core.errors import BadInputError, NotFoundError

RIGHT = """
[gateway]
host = "0.0.0.0"
port = 9000
allow_hosts = ["agents.example"]
admin = false
store = "spans.db"
drain = "1 min"

[gateway.limits]
body_bytes = "32 MiB"
stall_seconds = "2 min"
connections = 100

[[replicas]]
url = "http://127.0.0.1:8000"
models = ["qwen3"]

[[replicas]]
id = "large"
url = "https://api.example.com/v1/"
key_env = "EXAMPLE_KEY"

[embedded]
replicas = 3
weights = "model.gguf"

[budget.task]
p95 = "12 s"

[prices."qwen3"]
input = 0.1
output = 0.4
"""

WRONG = """
[gateway]
host = 1
port = 70000
allow_hosts = "agents.example"
admin = "no"
drain = "long"
colour = "red"

[gateway.limits]
body_bytes = "32 megs"
stall_seconds = -1
connections = 0

[[replicas]]
models = ["qwen3"]

[[replicas]]
url = "https://me:secret@api.example.com/v1"
key_env = ""

[embedded]
replicas = 1.5

[budget.task]
p95 = "soon"

[prices."qwen3"]
input = 0.1
"""


def mistakes(text: str) -> dict[str, int | None]:
    with pytest.raises(BadConfigError) as caught:
        read_config(text, "headway.toml")
    return {mistake.key or mistake.problem.split()[0]: mistake.line for mistake in caught.value.mistakes}


def test_every_field_right() -> None:
    file = read_config(RIGHT, "headway.toml")
    gateway, limits = file.gateway, file.gateway.limits
    assert (gateway.host, gateway.port, gateway.allow_hosts, gateway.admin) == (
        "0.0.0.0",
        9000,
        ["agents.example"],
        False,
    )
    assert (gateway.store, gateway.drain) == (Path("spans.db"), 60.0)
    assert (limits.body_bytes, limits.stall_seconds, limits.connections) == (32 * 1024 * 1024, 120.0, 100)
    assert [(one.id, one.url, one.models, one.key_env) for one in file.replicas] == [
        (None, "http://127.0.0.1:8000/v1", ["qwen3"], None),
        ("large", "https://api.example.com/v1", [], "EXAMPLE_KEY"),
    ]
    assert file.embedded is not None
    assert (file.embedded.replicas, file.embedded.weights) == (3, Path("model.gguf"))


def test_every_field_wrong_is_told_by_its_line() -> None:
    assert mistakes(WRONG) == {
        "gateway.host": 3,
        "gateway.port": 4,
        "gateway.allow_hosts": 5,
        "gateway.admin": 6,
        "gateway.drain": 7,
        "gateway.colour": 8,
        "gateway.limits.body_bytes": 11,
        "gateway.limits.stall_seconds": 12,
        "gateway.limits.connections": 13,
        "replicas[0].url": 15,
        "replicas[1].url": 19,
        "replicas[1].key_env": 20,
        "embedded.replicas": 23,
        "budget.task.p95": 26,
        "has": 28,  # of prices it is not told which: the table's own line
    }


def test_no_secret_of_a_url_is_repeated() -> None:
    with pytest.raises(BadConfigError) as caught:
        read_config(WRONG, "headway.toml")
    assert "secret" not in str(caught.value)


def test_the_error_reads_like_a_compilers() -> None:
    with pytest.raises(BadConfigError) as caught:
        read_config("[gateway]\nport = 'x'\n", "headway.toml")
    assert (
        caught.value.what
        == "headway.toml has 1 mistake.\n  headway.toml:2: gateway.port: should be a valid integer, not 'x'"
    )


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\nb = ", 2), ("[a]\n[a]\n", 2), ("[gateway\n", 1), ('x = """\n', 1), ("\x00", 1)]
)
def test_no_toml(text: str, line: int) -> None:
    with pytest.raises(BadConfigError) as caught:
        read_config(text, "headway.toml")
    assert [mistake.line for mistake in caught.value.mistakes] == [line]


def test_an_empty_file_is_all_defaults_and_these_are_the_gateways_own() -> None:
    file = read_config("", "headway.toml")
    assert file == File()
    assert Limits(**file.gateway.limits.model_dump()) == Limits()


def test_every_field_is_described_in_the_schema() -> None:
    schema = File.model_json_schema()
    undescribed = [
        f"{table}.{name}"
        for table, definition in schema["$defs"].items()
        for name, field in definition["properties"].items()
        if "description" not in field and "$ref" not in field and "anyOf" not in field
    ]
    assert undescribed == []


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="There is no"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"x = '\xff'")
    with pytest.raises(BadInputError, match="cannot be read"):
        load_config(tmp_path / "latin.toml")


NAMES = st.sampled_from(["gateway", "limits", "port", "replicas", "url", "embedded", "budget", "prices", "task", "x"])
VALUES = st.recursive(
    st.sampled_from(["1", "-1", "0.5", "nan", "true", '"x"', '"1 s"', "1979-05-27", "[]", "{}"]),
    lambda inner: st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(items)}]"),
    max_leaves=3,
)


@given(st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.booleans(), NAMES, VALUES), max_size=4))
def test_any_text_is_read_or_told(parts: list[tuple[list[str], bool, str, str]]) -> None:
    text = "".join(
        f"{'[[' if many else '['}{'.'.join(path)}{']]' if many else ']'}\n{key} = {value}\n"
        for path, many, key, value in parts
    )
    lines: list[int | None] = []
    try:
        read_config(text, "headway.toml")
    except BadConfigError as error:
        lines = [mistake.line for mistake in error.mistakes]
    assert None not in lines
