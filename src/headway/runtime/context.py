"""What of an agent's conversation its model is sent: the oldest results of tools go when the prompt is too long.

A prefix cache helps as long as a prompt begins as the one before it did. So nothing that was sent changes, until the
prompt is too long; then so much is taken out at once that it does not happen again soon. What is taken out is kept, and
the model can have it back.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError
from headway.runtime.models import Message
from headway.runtime.run import Run
from headway.runtime.tools import Tool, brief

RECALL: Final = "recall"
_BYTES_A_TOKEN: Final = 3.0
"""Until an answer has told how many tokens a prompt has; low, so that a prompt is taken for longer than it is."""
_LEAST_BYTES: Final = 1.0
_MOST_BYTES: Final = 8.0
"""Bounds of what an endpoint is believed about its tokens."""
_WORTH_IT: Final = 400
"""Bytes from which on a result is taken out: what stands in its place has about half of that."""
_SUMMARY_TOKENS: Final = 200
_SUMMARISE: Final = (
    "You read a result of a tool that has to be put away. Say in at most five sentences what of it is needed to "
    "answer the question; keep names, numbers and places as they are. Question: "
)


class Context(Struct, frozen=True, kw_only=True):
    """How long an agent's prompts may get, and what goes when they are too long.

    Raises:
        BadInputError: a number makes no sense.
    """

    tokens: int = 32_000
    """Of a prompt, tools and all; half of it is the most that the results of one response may have."""
    trim_to: float = 0.5
    """Share of ``tokens`` that is left when results were taken out: lower is rarer."""
    summarise: bool = False
    """Whether the model is asked what to keep in mind of each result that is taken out; that is a call each."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.tokens < 1 or not 0 < self.trim_to < 1:
            raise BadInputError(
                f"tokens={self.tokens}, trim_to={self.trim_to} make no sense.",
                fix="tokens is 1 or more, trim_to above 0 and below 1.",
            )


class Dropped(Struct, frozen=True, kw_only=True):
    """A result that was taken out of the prompt, or the rest of one that did not fit into it."""

    id: str
    tool: str
    turn: int
    """Before which it was."""
    text: str
    """All of the result."""


class Result(Struct, frozen=True):
    """A tool's result as it goes into a conversation."""

    call_id: str
    tool: str
    text: str


class Conversation:
    """Messages to and from one agent's model.

    Args:
        opening: its first messages.
        tools: what is sent beside them.
        context: how long it may get.
    """

    def __init__(self, opening: Sequence[Message], tools: Sequence[Message], context: Context) -> None:
        self.messages = list(opening)
        self.dropped: list[Dropped] = []
        self.cut = 0
        """Results that were cut as they came."""
        self.taken_out = 0
        """Results that were taken out."""
        self._context = context
        self._beside = _size(list(tools))
        self._bytes_a_token = _BYTES_A_TOKEN
        self._results: dict[int, Result] = {}
        """Those that can be taken out, by the place of their message."""
        self._latest = 0
        """Place from which on the model has seen nothing yet."""

    @property
    def tokens(self) -> float:
        """Of the prompt as it is now, by what the endpoint said of the last."""
        return (self._beside + sum(_size(message) for message in self.messages)) / self._bytes_a_token

    def add(self, message: Message) -> None:
        """Let it go on."""
        self.messages.append(message)

    def note(self, text: str) -> None:
        """Add to the last message, which has not been sent yet."""
        last = self.messages[-1]
        self.messages[-1] = {**last, "content": f"{last['content']}\n\n[{text}]"}

    def answered(self, input_tokens: int | None) -> None:
        """The model has seen all that there is; the endpoint counted so many tokens, or did not say."""
        if input_tokens:
            measured = self.tokens * self._bytes_a_token / input_tokens
            self._bytes_a_token = min(max(measured, _LEAST_BYTES), _MOST_BYTES)
        self._latest = len(self.messages)

    def add_results(self, results: Sequence[Result], turn: int) -> None:
        """Results of one response; those that would fill the prompt are cut, and the rest can be had by `recall`."""
        room = self._context.tokens / 2 * self._bytes_a_token
        most = [0.0] * len(results)
        by_size = sorted(range(len(results)), key=lambda at: len(results[at].text))
        for left, at in zip(range(len(results), 0, -1), by_size, strict=True):
            most[at] = min(room / left, _size(results[at].text))
            room -= most[at]
        for result, size in zip(results, most, strict=True):
            self._results[len(self.messages)] = result
            self.add(_message(result, self._fitting(result, int(size), turn)))

    def _fitting(self, result: Result, size: int, turn: int) -> str:
        if _size(result.text) <= size:
            return result.text
        name = self._put_away(result, turn)
        self.cut += 1
        head = result.text.encode()[:size].decode(errors="ignore")
        return (
            f"{head}\n[These are the first {len(head):,} of {len(result.text):,} characters. "
            f"{RECALL}(result={name!r}, start={len(head)}) gives more.]"
        )

    def due(self) -> list[int]:
        """Places of the results that have to go now, oldest first; none as long as the prompt fits."""
        tokens, most = self.tokens, self._context.tokens
        places: list[int] = []
        if tokens <= most:
            return places
        for place in sorted(self._results):
            size = _size(self.messages[place])
            if place >= self._latest or tokens <= most * self._context.trim_to:
                break
            if size >= _WORTH_IT:
                places.append(place)
                tokens -= (size - _WORTH_IT / 2) / self._bytes_a_token
        return places

    def take_out(self, place: int, turn: int, summary: str = "") -> None:
        """Put a few words in a result's place."""
        result = self._results.pop(place)
        name = self._put_away(result, turn)
        self.taken_out += 1
        text = f"[Taken out to save room: {len(result.text):,} characters. {RECALL}(result={name!r}) gives them again.]"
        self.messages[place] = _message(result, f"{text}\n{summary}".rstrip())

    def _put_away(self, result: Result, turn: int) -> str:
        for known in self.dropped:
            if known.text == result.text:
                return known.id
        name = f"r{len(self.dropped) + 1}"
        self.dropped.append(Dropped(id=name, tool=result.tool, turn=turn, text=result.text))
        return name

    def recall(self) -> Tool:
        """A tool by which the model has back what was taken out."""

        def read(arguments: dict[str, Any]) -> dict[str, Any]:
            wanted, start = arguments.get("result"), arguments.get("start", 0)
            found = next((dropped for dropped in self.dropped if dropped.id == wanted), None)
            if found is None or not isinstance(start, int) or start < 0:
                names = ", ".join(dropped.id for dropped in self.dropped) or "none"
                raise BadInputError(f"There is no result {wanted!r} from {start!r} on; those taken out: {names}.")
            return {"text": found.text[start:]}

        async def body(_run: Run, given: dict[str, Any]) -> object:
            return given["text"]

        return Tool(name=RECALL, description=_ABOUT, parameters=_PARAMETERS, body=body, read=read, purity="reads")


_ABOUT: Final = "Gives again what was taken out of this conversation to save room."
_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "result": {"type": "string", "description": "its name, such as r1"},
        "start": {"type": "integer", "description": "the character to begin at", "default": 0},
    },
    "required": ["result"],
}


async def trim(run: Run, conversation: Conversation, turn: int, *, model: str, question: str | None) -> None:
    """Take out of a prompt that has become too long what has to go.

    Args:
        run: whose conversation it is.
        conversation: is changed.
        turn: the turn before which that is.
        model: who is asked for summaries.
        question: what they are to help with; ``None``: there are to be none. One that cannot be had is left out.
    """
    places = conversation.due()

    async def summary(below: Run, place: int) -> tuple[int, str]:
        asked = [
            {"role": "system", "content": f"{_SUMMARISE}{question}"},
            {"role": "user", "content": conversation.messages[place]["content"]},
        ]
        return place, (await below.chat(asked, model=model, max_tokens=_SUMMARY_TOKENS)).text

    found: dict[int, str] = {}
    if places and question is not None:
        found = dict(await run.map(summary, places, tolerate=1))
    for place in places:
        conversation.take_out(place, turn, brief(found.get(place, "")))


def _message(result: Result, text: str) -> Message:
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def _size(value: object) -> int:
    """Bytes as JSON."""
    return len(msgspec.json.encode(value))
