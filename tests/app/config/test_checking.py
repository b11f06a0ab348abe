"""Files of which each line is well, and that could not be served from."""

from pathlib import Path

import pytest

from headway.app.config.checking import check_config
from headway.app.config.reading import BadConfigError, Mistake

KEYS = """
[[replicas]]
url = "http://127.0.0.1:8000"

[[replicas]]
url = "https://api.example.com/v1"
key_env = "EXAMPLE_KEY"
"""

TIERS = """
[[replicas]]
url = "http://127.0.0.1:8000"

[tiers.basic]
models = ["small"]

[models.auto]
tier = "basic"

[[models.auto.rules]]
tier = "premium"
with_tools = true
"""


REPLICA = """
[[replicas]]
url = "http://127.0.0.1:8000"
"""


def mistakes(path: Path, text: str, **environment: str) -> tuple[Mistake, ...]:
    path.write_text(text)
    with pytest.raises(BadConfigError) as raised:
        check_config(path, environment)
    return raised.value.mistakes


def test_a_key_whose_variable_is_not_set_is_a_mistake_of_its_line(tmp_path: Path) -> None:
    (one,) = mistakes(tmp_path / "h.toml", KEYS)
    assert (one.line, one.key) == (7, "replicas[1].key_env")
    assert one.problem == "the environment variable EXAMPLE_KEY is not set"
    assert mistakes(tmp_path / "h.toml", KEYS, EXAMPLE_KEY="") == (one,), "an empty one is none"
    check_config(tmp_path / "h.toml", {"EXAMPLE_KEY": "k"})


def test_a_rule_that_names_a_tier_that_there_is_not(tmp_path: Path) -> None:
    (one,) = mistakes(tmp_path / "h.toml", TIERS)
    assert (one.line, one.key) == (12, "models.auto.rules[0].tier")
    assert one.problem == "there is no tier 'premium'; give it a table [tiers.premium]"
    (tmp_path / "h.toml").write_text(TIERS.replace("premium", "basic"))
    check_config(tmp_path / "h.toml", {})


def test_what_only_the_whole_shows(tmp_path: Path) -> None:
    (one,) = mistakes(
        tmp_path / "h.toml", KEYS.replace("https://api.example.com/v1", "http://127.0.0.1:8000"), EXAMPLE_KEY="k"
    )
    assert (one.line, one.key) == (6, "replicas[1].url")
    assert one.problem == "another replica is called '127.0.0.1:8000', too; give each an id of its own"


ALL = """
[gateway]
port = "x"

[[replicas]]
id = "a"
url = "http://127.0.0.1:8000"
models = ["small"]

[[replicas]]
id = "a"
url = "http://127.0.0.1:8001"
models = ["large"]

[tasks]
redis = "redis://127.0.0.1"
redis_env = "TASKS"

[cache]
redis = "redis://127.0.0.1"
redis_env = "CACHE"

[[cache.rules]]
name = "r"

[[cache.rules]]
name = "r"

[keys]
limits = "a.db"
limits_env = "LIMITS"

[retries]
base = "10 s"
cap = "5 s"

[schedule]
shadow = "nonesuch"

[models.empty]

[models.one]
models = ["small", "two"]

[models.two]
models = ["two"]

[tiers.best]
models = ["none"]
"""
SET = {"TASKS": "redis://h", "CACHE": "redis://h", "LIMITS": "b.db"}


def test_every_mistake_is_told_at_once_with_its_line_those_of_other_tables_too(tmp_path: Path) -> None:
    found = mistakes(tmp_path / "h.toml", ALL, **SET)
    assert [(one.line, one.key) for one in found] == [
        (3, "gateway.port"),
        (11, "replicas[1].id"),
        (17, "tasks.redis_env"),
        (21, "cache.redis_env"),
        (27, "cache.rules[1].name"),
        (31, "keys.limits_env"),
        (34, "retries.base"),
        (38, "schedule.shadow"),
        (40, "models.empty"),
        (43, "models.one.models[1]"),
        (46, "models.two.models[0]"),
        (49, "tiers.best.models[0]"),
    ]
    assert found[7].problem.startswith("There is no routing policy 'nonesuch'. Installed are: ")
    assert "write what it stands for" in found[9].problem


def test_a_policy_that_there_is_not_and_what_needs_a_record(tmp_path: Path) -> None:
    text = '[gateway]\npolicy = "nonesuch"\nrecord = false\n[log]\ncalls = true\n[[replicas]]\nurl = "http://h"\n'
    found = mistakes(tmp_path / "h.toml", text)
    assert [(one.line, one.key) for one in found] == [(2, "gateway.policy"), (5, "log.calls")]


def test_a_table_that_cannot_be_read_makes_no_mistakes_of_others(tmp_path: Path) -> None:
    text = TIERS.replace('8000"', '8000"\nmodels = ["m"]').replace("premium", "basic")
    found = mistakes(tmp_path / "h.toml", text.replace('models = ["small"]', "model = 1") + "[embedded]\nslots = 0\n")
    assert {one.key for one in found} == {"tiers.basic.models", "tiers.basic.model", "embedded.slots"}


def test_a_mistake_of_the_environment_has_no_line(tmp_path: Path) -> None:
    (tmp_path / "h.toml").write_text('[[replicas]]\nurl = "http://h"\n')
    with pytest.raises(BadConfigError, match=r"h\.toml: The environment variable OTEL_EXPORTER_OTLP_ENDPOINT cannot"):
        check_config(tmp_path / "h.toml", {"OTEL_EXPORTER_OTLP_ENDPOINT": "nowhere"})


def test_a_model_that_no_replica_serves(tmp_path: Path) -> None:
    text = """[[replicas]]
url = "http://127.0.0.1:8000/v1"
models = ["small"]

[models.slow]
models = ["small", "nope"]
"""
    (one,) = mistakes(tmp_path / "h.toml", text)
    assert (one.line, one.key) == (6, "models.slow.models[1]")
    assert one.problem == "no replica serves 'nope'; add it to the models of one that does"
    (tmp_path / "h.toml").write_text(text.replace('models = ["small"]\n', ""))
    check_config(tmp_path / "h.toml", {})  # what a replica serves that declares nothing is not known


def test_addresses_at_which_nothing_can_be_kept_are_mistakes_of_their_lines(tmp_path: Path) -> None:
    text = (
        REPLICA
        + """
[keys]
store = "mysql://u:secretpw@x/d"
limits_env = "USE"
"""
    )
    one, two = mistakes(tmp_path / "h.toml", text, USE="mongo://u:secretpw@x")
    assert (one.line, one.key) == (6, "keys.store")
    assert one.problem == (
        "Keys cannot be kept at mysql://…. Give a file, or an address that begins with postgresql:// or postgres://."
    )
    assert (two.line, two.key) == (7, "keys.limits_env")
    assert two.problem == (
        "Limits cannot be kept at mongo://…. "
        "Give a file, or an address that begins with redis:// or rediss:// or unix://."
    )
    (tmp_path / "h.toml").write_text(text.replace("mysql", "postgresql"))
    check_config(tmp_path / "h.toml", {"USE": "redis://127.0.0.1/1"})


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("mysql://u:secretpw@h/1", "mysql://… is no address of a Redis"),
        ("valkey://u:secretpw@h/1", "for Valkey too"),
        ("secretpw@h", "an address of this kind is no address of a Redis"),
        ("redis://u:secretpw@h:port/1", "no host and port that there can be"),
        ("redis://u:secretpw@h:99999/1", "no host and port that there can be"),
        ("redis://u:secretpw@/1", "names no host"),
        ("redis://u:secretpw@h/first", "ends in no number of a database"),
        ("unix://", "or no socket"),
    ],
)
def test_an_address_that_is_no_redis_is_a_mistake_of_its_line_without_its_password(
    tmp_path: Path, address: str, says: str
) -> None:
    tables = f'[tasks]\nredis = "{address}"\n[cache]\nredis_env = "CACHE"\n[[cache.rules]]\nname = "r"\n'
    one, two = mistakes(tmp_path / "h.toml", REPLICA + tables, CACHE=address)
    first = REPLICA.count("\n") + 2
    assert [(one.line, one.key), (two.line, two.key)] == [(first, "tasks.redis"), (first + 2, "cache.redis_env")]
    assert says in one.problem
    assert says in two.problem
    assert "secretpw" not in one.problem + two.problem
