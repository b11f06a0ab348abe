"""One conversation with a model: messages that only ever grow, so that every call shares the prefix of the last."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from headway.agents.knowledge.model import Heard, Message, Model
from headway.core.usage import Usage


class CallRecord(Struct, frozen=True, kw_only=True):
    """One call to the model as the agent saw it; seconds by its own clock."""

    step: str
    seconds: float
    ttft: float | None
    """From the request to the first text; unknown where the answer came whole."""
    usage: Usage
    finish_reason: str | None


class Conversation:
    """Keeps the messages and an account of the calls.

    Args:
        model: who is asked.
        messages: the opening, up to and including the first user message.
    """

    def __init__(self, model: Model, messages: list[Message]) -> None:
        self._model = model
        self.messages = messages
        self.calls: list[CallRecord] = []

    def used(self, tool: str, about: str, result: str) -> None:
        """Put a step that the agent took on its own into the history, as a tool call and its result.

        So the history reads as that of any agent with tools, and a server that follows conversations sees the task go
        on: a new user message would look like a person's next question.
        """
        call = f"step_{sum(message['role'] == 'tool' for message in self.messages) + 1}"
        function = {"name": tool, "arguments": json.dumps({"about": about}, ensure_ascii=False)}
        self.messages += [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call, "content": result},
        ]

    async def reply(self, step: str, *, max_tokens: int, response_format: Mapping[str, Any] | None = None) -> str:
        """Ask for the next message, whole; it joins the conversation.

        Raises:
            RefusedError: the endpoint will not answer this, perhaps for its ``response_format``; nothing has changed.
            UpstreamError: the endpoint cannot be reached, or broke the protocol.
        """
        started = time.perf_counter()
        heard = await self._model.whole(self.messages, max_tokens=max_tokens, response_format=response_format)
        return self._keep(step, started, heard)

    async def stream(self, step: str, *, max_tokens: int, on_text: Callable[[str], None]) -> str:
        """Ask for the next message and hand its text on piece by piece as it arrives; it joins the conversation.

        Raises:
            UpstreamError: as `reply`, or the stream ended before the answer did.
        """
        started = time.perf_counter()
        heard = await self._model.streamed(self.messages, max_tokens=max_tokens, on_text=on_text)
        return self._keep(step, started, heard)

    def _keep(self, step: str, started: float, heard: Heard) -> str:
        self.messages.append({"role": "assistant", "content": heard.text})
        self.calls.append(
            CallRecord(
                step=step,
                seconds=time.perf_counter() - started,
                ttft=heard.ttft,
                usage=heard.usage,
                finish_reason=heard.finish_reason,
            )
        )
        return heard.text
