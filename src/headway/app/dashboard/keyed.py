"""Where callers need keys these pages do too: they show every tenant's tasks."""

import base64
import binascii
from typing import Final

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.gateway.access import Access
from headway.gateway.responses import Failure
from headway.wire.openai import error_body

_UNKNOWN: Final = 401
_BASIC: Final = b"basic "
_IN_BROWSERS: Final = "In a browser, give any user name, and the key as the password."


class Keyed:
    """Lets those in whose key may see every tenant's tasks; what it refuses goes to the audit, never with a key.

    Args:
        app: who answers them.
        access: recognises keys.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        problem = self._problem(scope)
        answer = self._app if problem is None else _refusal(problem, scope["path"])
        await answer(scope, receive, send)

    def _problem(self, scope: Scope) -> Failure | None:
        fields = dict[bytes, bytes](scope["headers"])
        password = _password(fields.get(b"authorization", b""))
        if password is not None:
            fields[b"authorization"] = b"Bearer " + password
        caller = self._access.recognise(fields, scope["client"][0])
        return caller if isinstance(caller, Failure) else self._access.forbidden(caller, "read_all")


def _password(authorization: bytes) -> bytes | None:
    """The password of HTTP Basic (RFC 7617); ``None``: the header is something else."""
    if authorization[: len(_BASIC)].lower() != _BASIC:
        return None
    try:
        return base64.b64decode(authorization[len(_BASIC) :]).partition(b":")[2]
    except binascii.Error:
        return b""


def _refusal(problem: Failure, path: str) -> Response:
    message = f"{problem.message} {_IN_BROWSERS}" if problem.status == _UNKNOWN else problem.message
    if path.startswith("/api/"):
        answer = Response(
            error_body(message, type="invalid_request_error", code=problem.error),
            problem.status,
            media_type="application/json",
        )
    else:
        answer = PlainTextResponse(message, problem.status)
    if problem.status == _UNKNOWN:
        answer.headers.append("www-authenticate", 'Basic realm="Headway", charset="UTF-8"')  # so that a browser asks
    for name, value in problem.headers:
        answer.headers.append(name.decode(), value.decode())
    return answer
