"""One message to an OTLP endpoint over HTTP, and what became of it."""

import gzip
import http.client
import time
import urllib.error
import urllib.request
from email.message import Message
from typing import IO, Final, Protocol

from msgspec import Struct

from headway.core.errors import BadInputError
from headway.wire.otlp_answers import rejected_in

_TIMEOUT: Final = 10.0
"""Seconds that connecting, and each wait for a byte, may take."""
_ANSWER_SECONDS: Final = 30.0
_ANSWER_BYTES: Final = 1 << 16
_PACKING: Final = 3
"""Level of gzip: 6, its default, takes twice as long for 5 % less."""
_TOO_LARGE: Final = 413
_NEVER: Final = frozenset({400, 415, 422})
"""The endpoint has understood that it does not want this message; every other refusal may pass: a key that is missing,
an address that is wrong, a server that is busy."""
_LONGEST_WISH: Final = 600.0
"""Seconds; who asks for longer is asked again sooner."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where spans go."""

    url: str
    """In full, ``/v1/traces`` and all."""
    headers: dict[str, str] = {}
    """Sent with each message; may hold a key, so they are never told."""


class Taken(Struct, frozen=True):
    """The endpoint has it."""

    rejected: int = 0
    """Spans of it that it did not want."""


class Unwanted(Struct, frozen=True):
    """It will never be taken."""

    error: str
    """A short word: ``http_400``."""


class TooLarge(Struct, frozen=True):
    """It may be taken in pieces."""


class Later(Struct, frozen=True):
    """It was not taken, or nobody knows; to be sent again."""

    error: str
    """A short word: ``connect``, ``timeout``, ``http_503``."""
    after: float | None = None
    """Seconds, where the endpoint says how long it wants to be left alone."""


Delivery = Taken | Unwanted | TooLarge | Later


class Post(Protocol):
    """Delivers a message."""

    def __call__(self, message: bytes, /) -> Delivery:
        """What became of it; never raises."""
        ...


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Follow nothing: the status is the answer."""


class HttpPost:
    """Delivers over HTTP or HTTPS, through a proxy where the environment names one.

    Args:
        endpoint: where to.
        timeout: seconds that connecting, and each wait for a byte, may take.
    """

    def __init__(self, endpoint: Endpoint, timeout: float = _TIMEOUT) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    def __call__(self, message: bytes, /) -> Delivery:
        """Send one message, packed."""
        headers = {
            "user-agent": "headway",
            **self._endpoint.headers,
            "content-type": "application/x-protobuf",
            "content-encoding": "gzip",
        }
        body = gzip.compress(message, _PACKING)
        try:
            request = urllib.request.Request(self._endpoint.url, body, headers, method="POST")  # noqa: S310 - http(s), checked where it is configured
            with self._opener.open(request, timeout=self._timeout) as answer:
                return Taken(_rejected(answer))
        except urllib.error.HTTPError as error:
            with error:
                return _refused(error.code, error.headers)
        except TimeoutError:
            return Later("timeout")
        except urllib.error.URLError as error:
            return Later("timeout" if isinstance(error.reason, TimeoutError) else "connect")
        except (OSError, http.client.HTTPException):
            return Later("connection")


def _rejected(answer: http.client.HTTPResponse) -> int:
    """How many spans the answer says were not wanted; none where it breaks off, for the message was taken."""
    until, held = time.monotonic() + _ANSWER_SECONDS, b""
    try:
        while len(held) < _ANSWER_BYTES and time.monotonic() < until and (piece := answer.read1(_ANSWER_BYTES)):
            held += piece
        return rejected_in(held)
    except (OSError, http.client.HTTPException, BadInputError):
        return 0


def _refused(status: int, headers: Message) -> Delivery:
    if status == _TOO_LARGE:
        return TooLarge()
    if status in _NEVER:
        return Unwanted(f"http_{status}")
    wish = headers.get("retry-after", "").strip()
    return Later(f"http_{status}", min(float(wish), _LONGEST_WISH) if wish.isdecimal() else None)
