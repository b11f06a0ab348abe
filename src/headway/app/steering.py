"""Asking a gateway that runs to change something: what its commands call over HTTP under ``/admin/…``."""

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError, HeadwayError, NotFoundError

URL: Final = "http://127.0.0.1:8080"
_PATIENCE_SECONDS: Final = 60.0
_NOT_FOUND: Final = 404
_REFUSED: Final = 400


def steer(
    url: str,
    key: str | None,
    method: str,
    path: str,
    *,
    query: dict[str, str] | None = None,
    body: object = None,
) -> Any:  # noqa: ANN401 - any JSON
    """What the gateway at ``url`` answers.

    Args:
        url: where it listens; a path such as /v1 in it is passed over.
        key: one that may do this, where the gateway asks for keys.
        method: e.g. POST.
        path: e.g. /admin/reload.
        query: to be put behind the path.
        body: to be sent as JSON; ``None``: none.

    Raises:
        BadInputError: ``url`` is none.
        NotFoundError: what was named is not there.
        HeadwayError: the gateway cannot be reached, or says no; with what it says.
    """
    address = urlsplit(url)
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise BadInputError(f"{url!r} is no URL of a gateway.", fix=f"It looks like {URL}.")
    connect = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = connect(address.hostname, address.port, timeout=_PATIENCE_SECONDS)
    headers = {"content-type": "application/json", **({} if key is None else {"authorization": f"Bearer {key}"})}
    target = f"{path}?{urlencode(query)}" if query else path
    try:
        connection.request(method, target, None if body is None else msgspec.json.encode(body), headers)
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
    except (OSError, HTTPException) as error:
        raise HeadwayError(
            f"The gateway at {address.scheme}://{address.netloc} cannot be reached: {error}.",
            fix="Check that it runs, and name its address with --url.",
        ) from error
    finally:
        connection.close()
    return _read(status, text, address.netloc)


class _Told(Struct, frozen=True):
    message: str = ""


class _Error(Struct, frozen=True):
    error: _Told = _Told()


def _read(status: int, text: bytes, where: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        if status < _REFUSED:
            return msgspec.json.decode(text)
        message = msgspec.json.decode(text, type=_Error).error.message
    except msgspec.DecodeError as error:
        raise HeadwayError(
            f"{where} answered with status {status}, not as a gateway does.", fix="Check what --url names."
        ) from error
    kind = NotFoundError if status == _NOT_FOUND else HeadwayError
    raise kind(message or f"{where} answered with status {status}.")
