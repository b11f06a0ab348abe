"""An answer, told in the dialect of OpenAI's Responses API."""

from typing import Any, Final

import msgspec
from msgspec import Raw

from headway.wire.responses.answer import usage_document
from headway.wire.translate.conversation import Call, Conversation, Text, Thought
from headway.wire.translate.from_responses import FreeText
from headway.wire.translate.said import (
    Argued,
    Began,
    Called,
    Counted,
    Ended,
    Event,
    Faulted,
    Hidden,
    Reply,
    Said,
    Signed,
    Thinking,
)

_INCOMPLETE: Final = {"length": "max_output_tokens", "refused": "content_filter"}
_DEFAULTS: Final[dict[str, Any]] = {
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}
Item = dict[str, Any]


class ResponsesTelling:
    """As `Telling`. A block is an item of its own: words a message, thought a reasoning item, a call a call.

    Args:
        asked: the request.
        created: when it was asked; whole seconds since the epoch.
    """

    def __init__(self, asked: Conversation, created: int) -> None:
        self._asked = asked
        self._created = created
        self._reply = Reply()
        self._output: list[Item] = []
        self._open: Item | None = None
        self._ended = False
        self._sequence = 0

    def whole(self, reply: Reply) -> bytes:
        """As `Telling.whole`."""
        self._reply = reply
        shown = [part for part in reply.parts if not isinstance(part, Thought) or part.text]
        self._output = [self._item(part, number) for number, part in enumerate(shown)]
        return msgspec.json.encode(self._final())

    def tell(self, event: Event) -> bytes:
        """As `Telling.tell`. Signatures and encrypted thoughts have no place here."""
        told = b""
        if isinstance(event, Signed | Hidden):
            return told
        if isinstance(event, Said | Thinking | Called) and not self._goes_on(event):
            told = self._close()
        opened = len(self._reply.parts)
        self._reply.hear(event)
        if len(self._reply.parts) > opened:
            told += self._begin(self._reply.parts[-1])
        match event:
            case Began():
                told = self._lifecycle("response.created") + self._lifecycle("response.in_progress")
            case Said():
                told += self._delta("response.output_text.delta", event.text, content_index=0, logprobs=[])
            case Thinking():
                told += self._delta("response.reasoning_text.delta", event.text, content_index=0)
            case Argued() if self._open is not None and self._open["type"] == "function_call":
                told += self._delta("response.function_call_arguments.delta", event.piece)
            case Ended():
                told += self._close()
                self._ended = True
            case Argued() | Called() | Counted() | Faulted():
                pass
        return told

    def end(self) -> bytes:
        """As `Telling.end`."""
        if not self._ended:
            return b""
        final = self._final()
        return self._event(f"response.{final['status']}", response=final)

    def _goes_on(self, event: Said | Thinking | Called) -> bool:
        """Whether ``event`` belongs to the item that is open."""
        kind = None if self._open is None else self._open["type"]
        return kind == ("message" if isinstance(event, Said) else "reasoning" if isinstance(event, Thinking) else "")

    def _begin(self, part: Text | Thought | Call) -> bytes:
        """An item begins."""
        item = self._item(part, len(self._output))
        self._open = item
        index = len(self._output)
        empty: Item = item | {"status": "in_progress"}
        if isinstance(part, Call):
            field = "input" if item["type"] == "custom_tool_call" else "arguments"
            return self._event("response.output_item.added", output_index=index, item=empty | {field: ""})
        added = self._event("response.output_item.added", output_index=index, item=empty | {"content": []})
        begun = {"item_id": item["id"], "output_index": index, "content_index": 0}
        return added + self._event("response.content_part.added", **begun, part=item["content"][0] | {"text": ""})

    def _close(self) -> bytes:
        """The open item ends, with all that it came to hold."""
        if self._open is None:
            return b""
        part = self._reply.finish().parts[-1]
        index = len(self._output)
        item = self._item(part, index)
        self._open = None
        self._output.append(item)
        place: Item = {"item_id": item["id"], "output_index": index}
        match part:
            case Call():
                told = self._called(item, place)
            case Text():
                done = self._event("response.output_text.done", **place, content_index=0, text=part.text, logprobs=[])
                told = done + self._part_done(item, place)
            case Thought():
                done = self._event("response.reasoning_text.done", **place, content_index=0, text=part.text)
                told = done + self._part_done(item, place)
        return told + self._event("response.output_item.done", output_index=index, item=item)

    def _called(self, item: Item, place: Item) -> bytes:
        if item["type"] == "function_call":
            fields = {"name": item["name"], "arguments": item["arguments"]}
            return self._event("response.function_call_arguments.done", **place, **fields)
        delta = self._event("response.custom_tool_call_input.delta", **place, delta=item["input"])
        return delta + self._event("response.custom_tool_call_input.done", **place, input=item["input"])

    def _part_done(self, item: Item, place: Item) -> bytes:
        return self._event("response.content_part.done", **place, content_index=0, part=item["content"][0])

    def _delta(self, kind: str, delta: str, **fields: Any) -> bytes:  # noqa: ANN401 - JSON
        item_id = "" if self._open is None else self._open["id"]
        return self._event(kind, item_id=item_id, output_index=len(self._output), delta=delta, **fields)

    def _item(self, part: Text | Thought | Call, number: int) -> Item:
        made = f"{self._reply.id}_{number}"
        match part:
            case Text():
                content: Item = {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}
                return {"type": "message", "id": f"msg_{made}", "role": "assistant"} | _done(content)
            case Thought():
                content = {"type": "reasoning_text", "text": part.text}
                return _done(content) | {"type": "reasoning", "id": f"rs_{made}", "summary": list[Any]()}
            case Call():
                free = part.name in self._asked.free_tools
                group, name = self._asked.grouped.get(part.name, (None, part.name))
                kind, mark = ("custom_tool_call", "ctc") if free else ("function_call", "fc")
                call: Item = {"type": kind, "id": f"{mark}_{made}", "call_id": part.id, "name": name}
                if group is not None:
                    call["namespace"] = group
                said = {"input": free_text(part.arguments)} if free else {"arguments": part.arguments or "{}"}
                return call | said | {"status": "completed"}

    def _lifecycle(self, kind: str) -> bytes:
        return self._event(kind, response=self._response("in_progress"))

    def _final(self) -> Item:
        incomplete = _INCOMPLETE.get(self._reply.reason or "")
        response = self._response("completed" if incomplete is None else "incomplete")
        if incomplete is not None:
            response["incomplete_details"] = {"reason": incomplete}
        response["output"] = self._output
        response["usage"] = usage_document(self._reply.usage)
        return response

    def _response(self, status: str) -> Item:
        answer_id = self._reply.id
        return {
            "id": answer_id if answer_id.startswith("resp_") else f"resp_{answer_id}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self._reply.model or self._asked.model,
            "output": [],
            "previous_response_id": None,
            "store": False,
            "usage": None,
            **_DEFAULTS,
            **_echoed(self._asked.echo),
        }

    def _event(self, kind: str, **fields: Any) -> bytes:  # noqa: ANN401 - JSON
        event = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(event))


def _done(content: Item) -> Item:
    return {"status": "completed", "content": [content]}


def _echoed(echo: dict[str, Raw]) -> dict[str, Raw]:
    """What the request said, but for what it left to the engine by ``null``."""
    return {name: value for name, value in echo.items() if bytes(value) != b"null"}


def free_text(arguments: str) -> str:
    """The text that a tool of free text was called with; a model that wrote no JSON wrote the text itself."""
    try:
        return msgspec.json.decode(arguments, type=FreeText).input
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments
