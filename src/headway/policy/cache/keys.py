"""When two requests are the same question, to the byte."""

from hashlib import sha256
from typing import Final, NewType

import msgspec
from msgspec import Raw

CacheKey = NewType("CacheKey", bytes)

_ANSWER_NEUTRAL: Final = frozenset(
    {"user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "store", "service_tier"}
)
"""Fields that say who asks or how it is kept and billed, and never what the answer is to be."""
_BODY: Final = msgspec.json.Decoder(dict[str, Raw])
_DIGEST_BYTES: Final = 16
"""Of SHA-256, for which processors have instructions: by chance two of 2**64 requests meet, and nobody can make two
meet on purpose."""


def fields_of(body: bytes) -> dict[str, Raw] | None:
    """A request's fields, each as it was written; ``None``: the body is no JSON object."""
    try:
        return _BODY.decode(body)
    except (msgspec.DecodeError, ValueError):
        return None


def exact_key(tenant: str, route: str, fields: dict[str, Raw]) -> CacheKey:
    """The key under which a request's answer is kept; equal for equal questions of one tenant on one route.

    The order of a body's fields does not matter, nor what says only who asks; everything else does, to the byte.
    The tenant is part of what is hashed, so that no two tenants ever share an answer.

    Args:
        tenant: whose answers these are.
        route: the path and the model that was asked for, after aliases.
        fields: the request's, as `fields_of` reads them.
    """
    names = sorted(fields.keys() - _ANSWER_NEUTRAL)
    values = [bytes(fields[name]) for name in names]
    told = repr((tenant, route, names, list(map(len, values))))  # no two of these are written alike
    return CacheKey(sha256(b"".join([told.encode(), *values])).digest()[:_DIGEST_BYTES])
