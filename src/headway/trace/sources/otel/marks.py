"""What Headway knows of a call beyond what OpenTelemetry has names for, carried in one attribute of its own."""

import msgspec
from msgspec import Struct, structs

from headway.core.span import GivenAgain, ModelCall, Setback, ToolCallRef
from headway.core.usage import EngineTimings


class Marks(Struct, frozen=True, omit_defaults=True):
    """Epoch seconds, as in `ModelCall`."""

    queued: float | None = None
    sent: float | None = None
    setbacks: tuple[Setback, ...] = ()
    given_again: GivenAgain | None = None
    sent_before: int | None = None
    first_visible: float | None = None
    visible_by: float | None = None
    shown: bool = False
    last_token: float | None = None
    engine: EngineTimings | None = None
    tool_calls: tuple[ToolCallRef, ...] = ()
    """What its answer asked for, of which a tool's span tells only where that tool ran."""


_NONE = Marks()


def written(call: ModelCall) -> str | None:
    """The marks of a call as JSON; ``None`` where it has none."""
    marks = msgspec.convert(call, Marks, from_attributes=True)
    return None if marks == _NONE else msgspec.json.encode(marks).decode()


def restored(call: ModelCall, told: object) -> ModelCall:
    """The call with the marks that were written; as it is where they are not those."""
    try:
        marks = msgspec.json.decode(told if isinstance(told, str) else b"", type=Marks)
    except msgspec.DecodeError:
        return call
    told_of = {name: value for name, value in structs.asdict(marks).items() if value != getattr(_NONE, name)}
    return structs.replace(call, **told_of)
