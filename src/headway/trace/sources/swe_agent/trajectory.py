"""Trajectories of SWE-agent: newer versions tell how long each command took, older ones no times at all."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

import msgspec
from msgspec import Struct

from headway.core.prompt import Part
from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest, digest, span_id, task_id
from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.completions import micro_usd
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.fields.messages import Message, Parts, messages, plain
from headway.trace.sources.fields.scalars import count
from headway.trace.sources.session.draft import Draft, first_words
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

_AGENT: Final = "SWE-agent"
_ISSUE: Final = "ISSUE:\n"
_COMMANDS: Final = frozenset(
    {"create", "edit", "find_file", "goto", "insert", "open", "scroll_down", "scroll_up", "search_dir", "search_file",
     "str_replace_editor", "submit"}
)  # fmt: skip
"""Commands that the agent itself brings; all others are the shell's."""
_ALONE: Final = "How long the model took is not recorded: the seconds are those of the commands alone."


class _Function(Struct):
    name: str = "unknown"
    arguments: object = None


class _ToolCall(Struct):
    id: str | None = None
    function: _Function = msgspec.field(default_factory=_Function)


class _Heard(Struct):
    """A message."""

    role: str
    content: object = None
    agent: str | None = None
    is_demo: bool | None = None
    action: object = None
    tool_calls: list[_ToolCall] | None = None


class _Step(Struct):
    """An answer of the model, and the command that it came to."""

    action: object = None
    observation: object = None
    response: object = None
    execution_time: float | None = None
    query: object = None


class _Stats(Struct):
    """Sums over the run."""

    instance_cost: float | None = None
    tokens_sent: int | None = None
    tokens_received: int | None = None
    api_calls: int | None = None


class _Info(Struct):
    model_stats: _Stats | None = None
    exit_status: str | None = None


class _Trajectory(Struct):
    history: list[_Heard] = msgspec.field(default_factory=list[_Heard])
    trajectory: list[_Step] | None = None
    info: _Info = msgspec.field(default_factory=_Info)
    replay_config: object = None


_WHOLE: Final = msgspec.json.Decoder(_Trajectory)


class SweAgent:
    """Importer of ``*.traj``."""

    name = "swe-agent"
    title = "SWE-agent trajectory"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By a history whose messages say which agent they are of."""
        found = sample.first()
        history = found.get("history")
        if len(sample.values) != 1 or not isinstance(history, list) or not history:
            return False
        first = cast("list[object]", history)[0]
        return isinstance(first, dict) and {"role", "content", "agent"} <= cast("dict[str, object]", first).keys()

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each file."""
        for document in documents:
            for record in document.records(skips):
                whole = decode(_WHOLE, record, skips, "a trajectory that is broken or in no known shape")
                if whole is None:
                    continue
                piece = _run(whole, record)
                if piece is None:
                    skips.add("a trajectory without an answer of the model", record.where)
                else:
                    yield piece


def _run(whole: _Trajectory, record: Record) -> Piece | None:
    key = digest(record.data.decode(errors="replace"))
    draft = Draft(span_id(key, "run"), _AGENT, 0.0)
    parts = Parts()
    answers = [i for i, one in enumerate(whole.history) if one.role == "assistant" and not one.is_demo]
    steps = whole.trajectory or _steps(whole.history, answers)
    if not steps:
        return None
    heard = [parts.of(Message(one.role, _text(one.content, one.role))) for one in whole.history]
    model = _model(whole.replay_config)
    now = 0.0
    for number, step in enumerate(steps):
        at = answers[number] if len(answers) == len(steps) else None
        asked = _asked(step, parts) or (None if at is None else tuple(heard[:at]))
        calls = whole.history[at].tool_calls or [] if at is not None else []
        now = _take(draft, step, calls, asked, model, now, parts)
    title = next((one for one in whole.history if one.role == "user" and not one.is_demo), None)
    words = "" if title is None else _text(title.content, "user")
    draft.title = first_words(words.partition(_ISSUE)[2] or words)
    if whole.info.exit_status is not None and whole.info.exit_status.startswith("exit_"):
        draft.error = whole.info.exit_status
    timed = any(step.execution_time is not None for step in steps)
    stats = whole.info.model_stats or _Stats()
    if stats.tokens_sent or stats.tokens_received:
        draft.used = Usage(input_tokens=count(stats.tokens_sent or None), output_tokens=count(stats.tokens_received))
    draft.cost = micro_usd(stats.instance_cost or None)
    draft.remarks += [*([_ALONE] if timed else []), *_missing(stats, len(steps))]
    return draft.piece(task_id(key), None, "durations" if timed else "none")


def _take(
    draft: Draft,
    step: _Step,
    calls: list[_ToolCall],
    asked: tuple[Part, ...] | None,
    model: str,
    now: float,
    parts: Parts,
) -> float:
    """One step, from ``now`` on; when it was over."""
    number = str(len(draft.entries))
    span = span_id(draft.root, "call", number)
    action = plain(step.action).strip()
    names = [(call.id or f"{span}-{i}", call.function) for i, call in enumerate(calls)]
    if not names and action:
        first = action.split(maxsplit=1)[0]
        names = [(f"{span}-0", _Function(first if first in _COMMANDS else "bash", {"command": action}))]
    said = _text(step.response, "assistant")
    work = ModelCall(
        model=model,
        tool_calls=tuple([ToolCallRef(call, function.name) for call, function in names]),
        prompt=asked,
        answer=parts.of(Message("assistant", said)) if said else None,
    )
    draft.call(span, now, None, work)
    if not names:
        return now
    call, function = names[0]
    end = None if step.execution_time is None else now + max(step.execution_time, 0.0)
    use = ToolUse(
        name=function.name,
        call_id=call,
        issued_by=span,
        inferred=step.execution_time is None,
        arguments=arguments_digest(function.arguments),
        result=None if step.observation is None else parts.of(Message("tool", _text(step.observation, "tool"))),
    )
    draft.tool(span_id(draft.root, "tool", number), now, end, use)
    return now if end is None else end


def _steps(history: list[_Heard], answers: list[int]) -> list[_Step]:
    """The steps of a file that keeps messages alone: each answer, and the message after it."""
    return [
        _Step(
            action=history[i].action,
            response=history[i].content,
            observation=history[i + 1].content if i + 1 < len(history) else None,
        )
        for i in answers
    ]


def _asked(step: _Step, parts: Parts) -> tuple[Part, ...] | None:
    """What was sent to the model, where the step keeps it."""
    return tuple([parts.of(message) for message in messages(step.query, "user")]) or None


def _missing(stats: _Stats, steps: int) -> list[str]:
    made = stats.api_calls or 0
    return [f"It made {made:,} calls, of which the file keeps {steps:,}."] if made > steps else []


def _model(config: object) -> str:
    """The model that the run was set up with; ``replay_config`` is JSON in a string in some versions."""
    if isinstance(config, str):
        try:
            config = msgspec.json.decode(config)
        except (msgspec.DecodeError, RecursionError):
            return "unknown"
    for key in ("agent", "model", "name"):
        config = cast("dict[str, object]", config).get(key) if isinstance(config, dict) else None
    return config if isinstance(config, str) and config else "unknown"


def _text(content: object, role: str) -> str:
    return "\n".join(message.text for message in messages(content, role) if message.text)
