"""Another model in a request's body, and nothing else."""

from typing import Final

import msgspec
from msgspec import Raw

_decoder: Final = msgspec.json.Decoder(dict[str, Raw])


def with_model(body: bytes, model: str) -> bytes:
    """``body``, a JSON object, that asks for ``model``: every other value keeps its bytes, known to us or not."""
    fields = _decoder.decode(body)
    fields["model"] = Raw(msgspec.json.encode(model))
    return msgspec.json.encode(fields)
