"""When the tokens of a streamed answer came, out of the events that LangSmith keeps of it."""

from collections.abc import Iterator
from typing import cast

from msgspec import Struct

from headway.trace.sources.fields.instants import instant
from headway.trace.sources.langsmith.runs import Event

Fields = dict[str, object]


class Stream(Struct, frozen=True):
    """Marks of a stream, in epoch seconds; ``None`` where no such chunk came."""

    first: float | None = None
    """The first chunk with text, reasoning or a piece of a tool call in it; the first of all is often an empty one."""
    visible: float | None = None
    last: float | None = None


def stream(events: list[Event]) -> Stream:
    """The marks of a stream; none where its chunks were not kept."""
    first = visible = last = None
    for event in events:
        if event.name != "new_token" or (when := instant(event.time)) is None:
            continue
        seen, thought = _weight(event.kwargs)
        if not seen and not thought:
            continue
        first = when if first is None else min(first, when)
        last = when if last is None else max(last, when)
        if seen:
            visible = when if visible is None else min(visible, when)
    return Stream(first, visible, last)


def _weight(kwargs: object) -> tuple[bool, bool]:
    """Whether a chunk holds text that a user sees, and whether it holds anything else of the answer."""
    if not isinstance(kwargs, dict):
        return False, False
    kwargs = cast("Fields", kwargs)
    token = kwargs.get("token")
    if isinstance(token, str) and token:
        return True, False
    seen = thought = False
    for delta in _deltas(kwargs.get("chunk") if token is None or token == "" else token):
        seen = seen or any(isinstance(delta.get(key), str) and delta[key] for key in ("content", "text"))
        thought = thought or any(
            delta.get(key) for key in ("reasoning_content", "reasoning", "thinking", "tool_calls", "partial_json")
        )
    return seen, thought


def _deltas(chunk: object) -> Iterator[Fields]:
    """The pieces of an answer in a chunk: OpenAI's choices, Anthropic's delta, LangChain's message."""
    if not isinstance(chunk, dict):
        return
    held = cast("Fields", chunk)
    choices = held.get("choices")
    for choice in cast("list[object]", choices) if isinstance(choices, list) else [held]:
        if isinstance(choice, dict):
            inside = cast("Fields", choice)
            for key in ("delta", "message", "kwargs"):
                if isinstance(inside.get(key), dict):
                    yield cast("Fields", inside[key])
            yield inside
