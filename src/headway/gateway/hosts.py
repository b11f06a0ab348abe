"""By which names, and from which web pages, a gateway may be called that listens on loopback alone.

A page on the web can have a browser call 127.0.0.1 and spend the provider's key: by a name of its own that it lets
resolve to this machine (DNS rebinding), or outright, without being shown the answer. The browser says so in Host and
Origin, so names that anybody could own are refused there. An agent comes by an address or by a name that is no public
one, and sends no Origin.
"""

from functools import lru_cache
from ipaddress import ip_address
from typing import Final

_PRIVATE: Final = (".localhost", ".internal")
"""Reserved: nobody can register a name that ends so. Docker's name for its host is ``host.docker.internal``."""


def is_loopback(address: str) -> bool:
    """Whether nothing but this machine can reach ``address``."""
    return _is_address(address) and ip_address(address).is_loopback


@lru_cache(maxsize=256)
def is_at_home(host: bytes, names: frozenset[str]) -> bool:
    """Whether a Host header, whatever its port, is an address, no public name, or one of these lower-case names."""
    text = host.decode("latin-1").strip().lower()
    name = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0].rstrip(".")
    return "." not in name or name.endswith(_PRIVATE) or name in names or _is_address(name)


def is_foreign(origin: bytes, names: frozenset[str]) -> bool:
    """Whether an Origin header is that of a page from elsewhere, or of one that hides where it is from."""
    scheme, separator, host = origin.partition(b"://")
    if not separator:
        return True
    return scheme in {b"http", b"https"} and not is_at_home(host, names)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
