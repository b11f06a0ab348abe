"""What a request wants its answer to be: JSON, of a schema perhaps."""

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from headway.wire.openai import NULL


class _Schema(Struct):
    schema: Raw = NULL


class _ChatForm(Struct):
    type: Literal["text", "json_object", "json_schema"] = "text"
    json_schema: _Schema | None = None


class _Form(Struct):
    type: Literal["text", "json_object", "json_schema"] = "text"
    schema: Raw = NULL


class _Formed(Struct):
    format: _Form | None = None


class _Wanted(Struct):
    """Where each dialect says what the answer has to be; here, too, names do not meet."""

    response_format: _ChatForm | None = None
    text: _Formed | None = None
    output_config: _Formed | None = None
    output_format: _Form | None = None


def form_of(body: bytes) -> bytes | None:
    """The JSON schema, as JSON text, that a request of any dialect asks its answer to keep.

    Returns:
        ``null`` where any JSON will do; ``None``: it asks for none.
    """
    try:
        wanted = msgspec.json.decode(body, type=_Wanted)
    except msgspec.DecodeError:
        return None
    chat = wanted.response_format
    if chat is not None:
        form = _Form(chat.type, NULL if chat.json_schema is None else chat.json_schema.schema)
    else:
        holders = (wanted.text, wanted.output_config)
        form = next((one.format for one in holders if one is not None and one.format is not None), wanted.output_format)
    return None if form is None or form.type == "text" else bytes(form.schema)
