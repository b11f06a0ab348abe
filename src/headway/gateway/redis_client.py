"""How Redis or Valkey is reached: each exchange within a bound and asked once: what is done twice may count twice."""

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from headway.core.errors import BadInputError, MissingExtraError

if TYPE_CHECKING:
    from redis import Redis

SCHEMES: Final = ("redis://", "rediss://", "unix://")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}")
_DATABASE: Final = re.compile(r"/?|/[0-9]{1,5}/?")
_WRITE: Final = "write e.g. redis://127.0.0.1:6379/1, for Valkey too"
_FIX: Final = "Correct it in the configuration, or in the environment variable that it names."


def redis_url(text: str) -> str:
    """``text``, which is the address of a Redis or Valkey.

    Raises:
        ValueError: it is none; the message holds nothing of it that may be a password.
    """
    if not text.startswith(SCHEMES):
        scheme, there, _ = text.partition("://")
        shown = f"{scheme}://…" if there and _SCHEME.fullmatch(scheme) else "an address of this kind"
        raise ValueError(f"{shown} is no address of a Redis; {_WRITE}")
    try:
        url = urlsplit(text)
        reachable = bool(url.path) if url.scheme == "unix" else bool(url.hostname) and url.port != 0
    except ValueError:
        raise ValueError(f"the address has no host and port that there can be; {_WRITE}") from None
    if not reachable:
        raise ValueError(f"the address names no host and port, or no socket; {_WRITE}")
    if url.scheme != "unix" and not _DATABASE.fullmatch(url.path):
        raise ValueError(f"the address ends in no number of a database; {_WRITE}")
    return text


def checked(url: str, what: str) -> None:
    """Refuse what is no address of a Redis; see `open_redis`.

    Raises:
        BadInputError: it is none.
    """
    try:
        redis_url(url)
    except ValueError as error:
        raise BadInputError(f"{what} cannot be reached: {error}.", fix=_FIX) from error


def open_redis(url: str, seconds: float, what: str) -> "Redis":
    """A client; it connects when it is first used.

    Args:
        url: e.g. ``redis://127.0.0.1:6379/0``.
        seconds: for connecting, and for each exchange.
        what: is kept there, for the error where the client is not installed.

    Raises:
        MissingExtraError: the client is not installed.
        BadInputError: the URL is none.
    """
    checked(url, what)
    try:
        from redis import Redis  # noqa: PLC0415 - only where it is used
        from redis.backoff import NoBackoff  # noqa: PLC0415 - as above
        from redis.retry import Retry  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingExtraError(what, "redis") from error
    return Redis.from_url(  # pyright: ignore[reportUnknownMemberType] - its options are untyped
        url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=Retry(NoBackoff(), 0)
    )
