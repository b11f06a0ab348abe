"""URLs of HTTP servers, as a person writes them."""

from urllib.parse import SplitResult, urlsplit


def http_url(text: str, *, instead: str, example: str) -> SplitResult:
    """The parts of a URL that an HTTP server can be reached at, without what no server is ever sent (`#…`).

    Args:
        text: the URL; blanks around it are passed over.
        instead: what to do instead of writing credentials into it.
        example: of what is expected.

    Raises:
        ValueError: it is none, or holds credentials.
    """
    try:
        url = urlsplit(text.strip())
        port = url.port
    except ValueError as error:
        raise ValueError(f"{text!r} is no URL: {error}") from error
    if url.username is not None or url.password is not None:
        raise ValueError(f"credentials do not belong in a URL; {instead}")
    if url.scheme not in {"http", "https"} or not url.hostname or port == 0 or url.fragment or not text.isascii():
        raise ValueError(f"{text!r} is no URL of an HTTP server; write e.g. {example}")
    return url
