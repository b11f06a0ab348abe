"""What a tool answered, as text that a model can be told: of what is no text, what it is and how large."""

from base64 import b64decode
from binascii import Error as NotBase64
from typing import assert_never

import msgspec
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from headway.runtime.tools import ToolResult


def told(result: CallToolResult) -> ToolResult:
    """The blocks of an answer one below the other; structured content where there is nothing else."""
    texts = [_text(block) for block in result.content]
    if not texts and result.structured_content is not None:
        texts = [msgspec.json.encode(result.structured_content).decode()]
    return ToolResult(text="\n".join(texts), failed=result.is_error)


def _text(block: TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=kind) | AudioContent(data=data, mime_type=kind):
            return f"[{kind}, {_size(data)}]"
        case ResourceLink(name=name, uri=uri, mime_type=kind):
            return f"[{name}: {uri}{f', {kind}' if kind else ''}]"
        case EmbeddedResource(resource=TextResourceContents(text=text, uri=uri)):
            return f"[{uri}]\n{text}"
        case EmbeddedResource(resource=BlobResourceContents(blob=blob, uri=uri, mime_type=kind)):
            return f"[{uri}, {kind or 'of unknown kind'}, {_size(blob)}]"
        case EmbeddedResource():
            raise AssertionError(block)
        case _:
            assert_never(block)


def _size(base64: str) -> str:
    try:
        return f"{len(b64decode(base64, validate=True)):,} bytes"
    except (NotBase64, ValueError):
        return "which cannot be read"
