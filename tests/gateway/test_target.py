"""A request whose target is a whole URL, as one sends it to a proxy."""

import pytest
from serving import QUESTION, chat, serving

from headway.gateway.fake import FakeEngine
from headway.gateway.front import Request
from headway.gateway.target import to_origin_form


@pytest.mark.parametrize(
    ("target", "path", "host"),
    [
        (b"http://a:8080/v1/models", b"/v1/models", b"a:8080"),
        (b"HTTPS://b/x?y=http://c/", b"/x?y=http://c/", b"b"),
        (b"http://a", b"/", b"a"),
        (b"http://a?q", b"/?q", b"a"),
        (b"http://user@a/x", b"/x", b"a"),
        (b"*", b"*", b"sent"),
        (b"ftp://a/x", b"ftp://a/x", b"sent"),
        (b"a:443", b"a:443", b"sent"),
    ],
)
def test_the_path_and_the_host_of_a_url(target: bytes, path: bytes, host: bytes) -> None:
    request = Request([], 0.0, path=target, fields={b"host": b"sent"})
    to_origin_form(request)
    assert (request.path, request.fields[b"host"]) == (path, host)


@pytest.mark.parametrize("upgrade", ["", "connection: upgrade\r\nupgrade: h2c\r\n"])
async def test_a_call_to_a_whole_url_is_served(upgrade: str) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        url = f"POST http://127.0.0.1:{served.port}/v1/chat/completions".encode()
        answer = await served.ask(chat(upgrade).replace(b"POST /v1/chat/completions", url))
        assert answer.status == 200
    assert engine.requests[0]["messages"] == QUESTION


async def test_the_urls_host_is_the_one_that_has_to_be_at_home() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        url = b"POST http://evil.example/v1/chat/completions"
        answer = await served.ask(chat().replace(b"POST /v1/chat/completions", url))
        assert (answer.status, answer.error["code"]) == (403, "not_allowed")
    assert engine.requests == []
