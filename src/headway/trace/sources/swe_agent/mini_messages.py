"""A mini-swe-agent trajectory's file and its messages, in all versions, as far as it matters here."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from headway.trace.sources.document import Record
from headway.trace.sources.fields.completions import Response
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.fields.messages import Message, messages, plain
from headway.trace.sources.skips import Skips


class Action(Struct):
    """A command as it was taken out of an answer."""

    command: str = ""
    tool_call_id: str | None = None


class Extra(Struct):
    """What is known of a message besides its text."""

    timestamp: object = None
    cost: float | None = None
    response: Response | None = None
    returncode: int | None = None
    exception_info: str | None = None
    actions: list[Action] | None = None


class Said(Struct):
    """One message; version 2 keeps a response of the Responses API as it came, without a role."""

    role: str | None = None
    content: object = None
    thing: str | None = msgspec.field(default=None, name="object")
    output: object = None
    type: str | None = None
    call_id: str | None = None
    tool_call_id: str | None = None
    tool_calls: object = None
    timestamp: object = None
    extra: Extra = msgspec.field(default_factory=Extra)

    @property
    def time(self) -> float | None:
        """When it was complete, in epoch seconds."""
        return instant(self.timestamp) or instant(self.extra.timestamp)

    @property
    def answers(self) -> bool:
        """Whether the model said it."""
        return self.role == "assistant" or self.thing == "response"

    @property
    def message(self) -> Message:
        """In plain words."""
        if self.answers:
            held = {"output": self.output} if self.thing else {"content": self.content, "tool_calls": self.tool_calls}
            said = messages({"role": "assistant", **held}, "assistant")
            return Message("assistant", "\n".join(one.text for one in said if one.text))
        role = "tool" if self.type == "function_call_output" else self.role or "user"
        return Message(role, plain(self.output if self.content is None else self.content))


class ModelStats(Struct):
    """Sums over the run."""

    api_calls: int | None = None
    instance_cost: float | None = None


class Model(Struct):
    """How the model was set up."""

    model_name: str | None = None


class Setup(Struct):
    """How the run was set up."""

    model: Model | None = None


class Info(Struct):
    """The run as a whole."""

    model_stats: ModelStats | None = None
    config: Setup | None = None
    exit_status: str | None = None


class Trajectory(Struct):
    """A whole file; the oldest hold the messages alone."""

    messages: list[Raw]
    info: Info = msgspec.field(default_factory=Info)


def trajectory(record: Record, skips: Skips) -> Trajectory | None:
    """The file, its messages undecoded; nothing where it is no JSON, or in no known shape."""
    if record.data.lstrip()[:1] == b"[":
        found = decode(_MESSAGES, record, skips, _SHAPELESS)
        return None if found is None else Trajectory(found)
    return decode(_TRAJECTORY, record, skips, _SHAPELESS)


_MESSAGES: Final = msgspec.json.Decoder(list[Raw])
_TRAJECTORY: Final = msgspec.json.Decoder(Trajectory)
_SHAPELESS: Final = "a trajectory that is broken or in no known shape"
