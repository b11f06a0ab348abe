"""What is put under load: a URL, a model, and how it is asked."""

from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError

_PORTS: Final = {"http": 80, "https": 443}


class Endpoint(Struct, frozen=True, kw_only=True):
    """An OpenAI-compatible endpoint for chat completions."""

    url: str
    """Up to and including ``/v1``."""
    model: str
    host: str
    port: int
    tls: bool
    head: bytes
    """Of a request, up to the value of its content-length."""
    stream: bool
    exact: bool
    """Whether engines are told to write as many tokens as a call may have (``ignore_eos``); not all know that."""

    def request(self, messages: list[dict[str, str]], output_tokens: int) -> bytes:
        """The bytes of a request."""
        fields: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "max_tokens": output_tokens,
            "stream": self.stream,
        }
        if self.stream:
            fields["stream_options"] = {"include_usage": True}
        if self.exact:
            fields["ignore_eos"] = True
        body = msgspec.json.encode(fields)
        return b"%b%d\r\n\r\n%b" % (self.head, len(body), body)


def endpoint(url: str, model: str, *, key: str | None = None, stream: bool = True, exact: bool = False) -> Endpoint:
    """What is at ``url``.

    Args:
        url: base URL up to and including ``/v1``.
        model: name to ask for.
        key: sent as the bearer token; never printed or kept in a report.
        stream: whether answers are to be streamed.
        exact: whether to ask for answers of exactly the length that a call says.

    Raises:
        BadInputError: the URL is none, or the key or the model cannot be sent.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadInputError(f"{url!r} is no URL: {error}.", fix="Give e.g. http://127.0.0.1:8080/v1.") from error
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None or parts.query:
        raise BadInputError(
            f"{url!r} is no base URL.", fix="Give scheme, host, port and path: http://127.0.0.1:8080/v1."
        )
    port = _PORTS[parts.scheme] if port is None else port
    path = f"{parts.path.rstrip('/')}/chat/completions"
    lines = [f"POST {path} HTTP/1.1", f"host: {parts.netloc}", "content-type: application/json", "accept: */*"]
    if key:
        lines.append(f"authorization: Bearer {key}")
    text = "\r\n".join([*lines, "content-length: "])
    if not text.isascii() or any(not line.isprintable() for line in lines):
        raise BadInputError("The URL or the key has characters that no header may have.", fix="Check both.")
    return Endpoint(
        url=url.rstrip("/"),
        model=model,
        host=parts.hostname,
        port=port,
        tls=parts.scheme == "https",
        head=text.encode(),
        stream=stream,
        exact=exact,
    )
