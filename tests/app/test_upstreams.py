"""What ``--upstream`` means, and what is said when it means nothing."""

import pytest

from headway.app.cli.upstreams import read_upstreams
from headway.app.config.serving import replicas_of
from headway.core.errors import BadInputError
from headway.core.fleet import Replica, ReplicaId


def read(*values: str, **environment: str) -> tuple[Replica, ...]:
    return replicas_of(read_upstreams(values), environment)


def test_a_bare_server_gets_the_usual_path() -> None:
    assert read("http://127.0.0.1:8000/") == (Replica(id=ReplicaId("127.0.0.1:8000"), url="http://127.0.0.1:8000/v1"),)


def test_everything_there_is_to_say() -> None:
    value = "https://api.example.com/openai/v1/, model=small,model=large,key-env=MY_KEY,id=cloud"
    (replica,) = read(value, MY_KEY="sk-1")
    assert replica.id == "cloud"
    assert replica.url == "https://api.example.com/openai/v1"
    assert replica.models == ("small", "large")
    assert replica.api_key == "sk-1"
    assert "sk-1" not in repr(replica)
    assert replica.speaks == ("openai-chat", "openai-embeddings")


def test_what_a_provider_speaks() -> None:
    (replica,) = read("https://api.example.com/v1,speaks=anthropic-messages,speaks=anthropic-count-tokens")
    assert replica.speaks == ("anthropic-messages", "anthropic-count-tokens")


def test_what_an_engine_is() -> None:
    assert [read(f"http://127.0.0.1:1{kind}")[0].engine for kind in ("", ",kind=llama.cpp")] == ["openai", "llama.cpp"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("ftp://x", "no URL of an HTTP server"),
        ("127.0.0.1:8000", "no URL of an HTTP server"),
        ("", "no URL of an HTTP server"),
        ("http://", "no URL of an HTTP server"),
        ("http://x/v1?key=1", "ends in a query"),
        ("http://x:0/v1", "no URL of an HTTP server"),
        ("http://x:70000/v1", "no URL"),
        ("http://[::1/v1", "no URL"),
        ("http://me:secret@x/v1", "credentials do not belong"),
        ("http://x,model=", "cannot read 'model='"),
        ("http://x,speaks=latin", "'latin' is no dialect; there are openai-chat"),
        ("http://x,kind=vllm", "'openai'"),
        ("http://x,colour=red", "cannot read 'colour=red'"),
        ("http://x,key-env=NOT_SET", "NOT_SET is not set"),
    ],
)
def test_what_cannot_be_read_is_named(value: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words) as caught:
        read(value)
    assert caught.value.fix
    assert "secret" not in str(caught.value)


def test_two_upstreams_need_two_names() -> None:
    with pytest.raises(BadInputError, match="give each an id"):
        read("http://x/v1", "http://x/v2")
    assert len(read("http://x/v1", "http://x/v2,id=second")) == 2
