"""The target of a request as proxies send it: a whole URL, which servers have to take like a path (RFC 9112, 3.2.2)."""

from headway.gateway.front import Request


def to_origin_form(request: Request) -> None:
    """Where the target is a URL, make it the path in it; the host that it names goes before the Host header."""
    scheme, separator, rest = request.path.partition(b"://")
    if not separator or scheme.lower() not in {b"http", b"https"}:
        return
    cut = min((at for mark in (b"/", b"?") if (at := rest.find(mark)) >= 0), default=len(rest))
    path = rest[cut:]
    request.path = path if path.startswith(b"/") else b"/" + path
    request.fields[b"host"] = rest[:cut].rpartition(b"@")[2]
