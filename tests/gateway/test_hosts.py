"""A gateway on loopback is not called by names that anybody could own, nor from pages that are not at home."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import chat, serving

from headway.gateway.fake import FakeEngine
from headway.gateway.hosts import is_at_home, is_foreign, is_loopback

NAMES = frozenset({"proxy.example"})
NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("host", "home"),
    [
        (b"localhost:8080", True),
        (b"LOCALHOST.", True),
        (b"127.0.0.1:8080", True),
        (b"127.3.4.5", True),
        (b"[::1]:8080", True),
        (b"::1", True),
        (b"10.0.0.7:1", True),
        (b"gateway", True),
        (b"", True),
        (b"app.localhost", True),
        (b"host.docker.internal:8080", True),
        (b"Proxy.Example:443", True),
        (b"evil.example", False),
        (b"evil.example:8080", False),
        (b"127.0.0.1.evil.example", False),
        (b"localhost.evil.example", False),
        (b"xproxy.example", False),
        (b"evil.example.", False),
        (b"printer.local", False),
    ],
)
def test_which_names_are_at_home(host: bytes, home: bool) -> None:
    assert is_at_home(host, NAMES) is home


@pytest.mark.parametrize(
    ("origin", "foreign"),
    [
        (b"http://localhost:3000", False),
        (b"https://proxy.example", False),
        (b"chrome-extension://abcdef", False),
        (b"https://evil.example", True),
        (b"http://127.0.0.1.evil.example:8080", True),
        (b"null", True),
        (b"", True),
    ],
)
def test_which_pages_are_foreign(origin: bytes, foreign: bool) -> None:
    assert is_foreign(origin, NAMES) is foreign


@given(st.ip_addresses())
def test_an_address_can_be_nobodys_name(address: object) -> None:
    text = f"[{address}]" if ":" in str(address) else str(address)
    assert is_at_home(f"{text}:80".encode(), NONE)


@given(st.binary(max_size=40))
def test_any_bytes_are_judged(host: bytes) -> None:
    assert is_at_home(host, NONE) in {True, False}
    assert is_foreign(host, NONE) in {True, False}


@pytest.mark.parametrize(
    ("address", "loopback"), [("127.0.0.1", True), ("::1", True), ("0.0.0.0", False), ("10.0.0.7", False)]
)
def test_loopback(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback


def called(name: str, extra: str = "") -> bytes:
    return chat(extra).replace(b"host: x", f"host: {name}".encode())


@pytest.mark.parametrize("data", [called("evil.example:8080"), called("localhost", "origin: https://evil.example\r\n")])
async def test_a_strangers_page_is_refused_recorded_and_reaches_no_engine(data: bytes) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        raw = await served.raw(data)
        assert raw.startswith(b"HTTP/1.1 403 ")
        assert b"evil.example" in raw
        assert b"--allow-host" in raw
        assert engine.requests == []
        assert (await served.call())[0].error == "not_allowed"


async def test_a_name_that_was_allowed_is_served_and_so_is_no_name_at_all() -> None:
    async with FakeEngine() as engine, serving(engine, names=("Proxy.Example",)) as served:
        for data in (called("proxy.example"), chat().replace(b"host: x\r\n", b"")):
            assert (await served.ask(data)).status == 200
        assert (await served.raw(called("evil.example"))).startswith(b"HTTP/1.1 403 ")


async def test_a_gateway_that_others_reach_may_be_called_what_they_like() -> None:
    async with FakeEngine() as engine, serving(engine, host="0.0.0.0") as served:
        assert (await served.ask(called("gateway.example", "origin: https://chat.example\r\n"))).status == 200
