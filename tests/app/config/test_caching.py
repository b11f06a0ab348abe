import pytest

from headway.app.config.caching import caching_of
from headway.app.config.reading import read_config
from headway.core.errors import BadInputError
from headway.policy.cache.rules import CacheRule

TEXT = """
[cache]
bytes = "2 MiB"
patience = "50 ms"

[[cache.rules]]
name = "live"
models = ["*-live"]
mode = "off"

[[cache.rules]]
name = "faq"
path = "/v1/messages"
models = ["claude-*"]
mode = "semantic"
ttl = "1 min"
stale = "30 s"
tags = ["docs"]
version = "2"
threshold = 0.97
error = 0.01
"""


def test_the_table_as_it_is_opened() -> None:
    caching = caching_of(read_config(TEXT, "headway.toml").cache, {})
    assert caching is not None
    assert (caching.limit, caching.patience, caching.redis, caching.needs_meanings) == (2 << 20, 0.05, None, True)
    assert caching.rules == (
        CacheRule(name="live", models=("*-live",), mode="off"),
        CacheRule(
            name="faq",
            path="/v1/messages",
            models=("claude-*",),
            mode="semantic",
            ttl=60.0,
            stale=30.0,
            tags=frozenset({"docs"}),
            version="2",
            threshold=0.97,
            error=0.01,
        ),
    )


def test_without_a_table_nothing_is_kept() -> None:
    assert caching_of(read_config("", "headway.toml").cache, {}) is None


def test_the_address_of_redis_may_be_in_the_environment() -> None:
    cache = read_config('[cache]\nredis_env = "CACHE"', "headway.toml").cache
    caching = caching_of(cache, {"CACHE": "redis://:secret@127.0.0.1/1"})
    assert caching is not None
    assert caching.redis == "redis://:secret@127.0.0.1/1"
    with pytest.raises(BadInputError, match="the environment variable CACHE is not set"):
        caching_of(cache, {})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('mode = "often"', "mode"),
        ("ttl = 0", "ttl"),
        ('tags = ["two words"]', "tags"),
        ("threshold = 1.5", "threshold"),
        ("models = []", "models"),
        ('path = "/v1/traces"', "path"),
    ],
)
def test_a_mistake_is_told_by_its_place(line: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        read_config(f'[[cache.rules]]\nname = "a"\n{line}\n', "headway.toml")


def test_two_rules_of_one_name() -> None:
    text = '[[cache.rules]]\nname = "a"\n[[cache.rules]]\nname = "a"\n'
    with pytest.raises(BadInputError, match="another cache rule is called 'a', too"):
        read_config(text, "headway.toml")
