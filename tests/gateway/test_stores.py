"""What names a file, what a server, and what neither: an address that was misspelt makes no file of that name."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadInputError
from headway.gateway.stores import (
    intents_directory,
    keys_on_server,
    limits_on_server,
    open_book,
    open_registry,
)


@pytest.mark.parametrize("name", ["access.db", "/k/access.db", "postgresql", "redis:", "a:/b", "C:\\k.db", ""])
def test_what_is_no_address_is_a_file(name: str) -> None:
    assert not keys_on_server(name)
    assert not limits_on_server(name)


def test_servers_are_known_by_how_their_addresses_begin() -> None:
    assert keys_on_server("postgresql://u@h/d")
    assert keys_on_server("postgres://u@h/d")
    for address in ("redis://h/1", "rediss://h/1", "unix:///run/redis.sock"):
        assert limits_on_server(address)
        with pytest.raises(BadInputError):
            keys_on_server(address)
    with pytest.raises(BadInputError):
        limits_on_server("postgresql://u@h/d")


@pytest.mark.parametrize("opening", [open_registry, open_book, intents_directory])
@pytest.mark.parametrize("address", ["mysql://u:secretpw@h/d", "reddis://:secretpw@h/1", "u:secretpw@redis://h"])
def test_any_other_address_is_refused_without_its_password_and_makes_no_file(
    opening: Callable[[str], Any], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInputError, match=r"cannot be kept at .*Give a file, or an address that begins with") as told:
        opening(address)
    assert "secretpw" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


@given(st.from_regex(r"[a-z]{1,9}://[a-z]{0,9}", fullmatch=True))
def test_an_address_never_names_a_file(address: str) -> None:
    for on_server in (keys_on_server, limits_on_server):
        with suppress(BadInputError):
            assert on_server(address)
