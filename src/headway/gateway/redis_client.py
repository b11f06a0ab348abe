"""How Redis or Valkey is reached: each exchange within a bound and asked once: what is done twice may count twice."""

from typing import TYPE_CHECKING, Final

from headway.core.errors import BadInputError, MissingExtraError

if TYPE_CHECKING:
    from redis import Redis

_FIX: Final = "Give e.g. redis://127.0.0.1:6379/0."


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
    try:
        from redis import Redis  # noqa: PLC0415 - only where it is used
        from redis.backoff import NoBackoff  # noqa: PLC0415 - as above
        from redis.retry import Retry  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingExtraError(what, "redis") from error
    try:
        return Redis.from_url(  # pyright: ignore[reportUnknownMemberType] - its options are untyped
            url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=Retry(NoBackoff(), 0)
        )
    except ValueError as error:
        raise BadInputError(f"{url.rpartition('@')[2]} is no address of a Redis: {error}.", fix=_FIX) from error
