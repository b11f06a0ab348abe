"""Trajectories of mini-swe-agent: the messages of one run, of which newer versions say when each was complete."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from headway.core.prompt import Part
from headway.core.span import ModelCall, ToolCallRef, ToolUse
from headway.core.task import SpanId
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest, digest, span_id, task_id
from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.completions import Response, micro_usd, tool_calls
from headway.trace.sources.fields.decoding import decode
from headway.trace.sources.fields.failures import failure
from headway.trace.sources.fields.messages import Parts
from headway.trace.sources.session.draft import Draft, first_words
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.trace.sources.swe_agent.mini_messages import Action, Info, ModelStats, Said, trajectory

_AGENT: Final = "mini-swe-agent"
_FENCE: Final = "```mswea_bash_command"
_COMMAND: Final = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)
_RETURNED: Final = re.compile(r"<returncode>(-?\d{1,9})</returncode>")
_LONGEST: Final = 3600.0
"""Seconds by which a whole second of the server's may precede an answer and still be the time that its call began."""
_TOOLS: Final = "A command's time runs from the answer that asked for it to its output."
_STARTED: Final = (
    "The first call's start is the whole second in which its API says that it began; no other is recorded."
)


class MiniSweAgent:
    """Importer of ``*.traj.json``."""

    name = _AGENT
    title = "mini-swe-agent trajectory"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By the format's name in the file; messages alone by the fence that only this agent has around commands."""
        if len(sample.values) == 1 and isinstance(sample.values[0], list):
            said = list(sample.objects())
            spoken = [str(one.get("content")) for one in said if one.get("role") == "assistant"]
            plain = all(one.keys() <= {"role", "content"} for one in said)
            return plain and any(_FENCE in text for text in spoken)
        found = sample.first()
        kept = str(found.get("trajectory_format", ""))
        return kept.startswith(_AGENT) and isinstance(found.get("messages"), list)

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each file."""
        for document in documents:
            for record in document.records(skips):
                whole = trajectory(record, skips)
                if whole is None:
                    continue
                run = _Run(digest(record.data.decode(errors="replace")), whole.info)
                for number, message in enumerate(whole.messages, 1):
                    run.hear(Record(bytes(message), f"{record.where}: message {number}"), skips)
                if run.draft.entries:
                    yield run.piece()
                else:
                    skips.add("a trajectory without an answer of the model", record.where)


_SAID: Final = msgspec.json.Decoder(Said)
_RESPONSE: Final = msgspec.json.Decoder(Response)


class _Wanted(Struct, frozen=True):
    """A command that an answer asked for."""

    action: Action
    by: SpanId
    since: float | None


class _Run:
    """One run while its messages are heard."""

    def __init__(self, key: str, info: Info) -> None:
        self.draft = Draft(span_id(key, "run"), _AGENT, 0.0)
        self._key = key
        self._info = info
        self._parts = Parts()
        self._heard: list[Part] = []
        self._wanted: list[_Wanted] = []
        self._now: float | None = None
        self._began: float | None = None
        self._answers = 0

    def hear(self, record: Record, skips: Skips) -> None:
        """The next message."""
        said = decode(_SAID, record, skips, "a message of unknown shape")
        if said is None or said.role == "exit":
            return
        message = said.message
        if said.answers:
            kept = decode(_RESPONSE, record, skips, "a message of unknown shape") if said.thing else said.extra.response
            self._answer(said, kept or Response())
        else:
            self._now = said.time or self._now
            if self._wanted and (said.extra.timestamp is None or said.extra.returncode is not None):
                self._result(said)
            elif message.role == "user" and self.draft.title is None:
                self.draft.title = first_words(message.text)
        self._heard.append(self._parts.of(message))

    def _answer(self, said: Said, response: Response) -> None:
        self._give_up()
        self._answers += 1
        span = span_id(self._key, "call", str(self._answers))
        answered = said.time
        end = answered or self._now
        start = self._start(end, response)
        actions = said.extra.actions
        if actions is None:
            actions = [Action(found.strip()) for found in _COMMAND.findall(said.message.text)[:1]]
        calls = tool_calls(response.said()) or tuple(
            ToolCallRef(action.tool_call_id or f"{span}-{number}", "bash") for number, action in enumerate(actions)
        )
        name = self._info.config.model.model_name if self._info.config and self._info.config.model else None
        work = ModelCall(
            model=response.model or name or "unknown",
            provider=name.partition("/")[0] if name and "/" in name else None,
            usage=Usage() if response.usage is None else response.usage.usage(),
            tool_calls=calls,
            cost=micro_usd(said.extra.cost or None),
            prompt=tuple(self._heard),
            answer=self._parts.of(said.message),
        )
        self.draft.call(span, start or 0.0, answered, work)
        self._now = end
        self._wanted = [_Wanted(action, span, end) for action in actions]

    def _start(self, end: float | None, response: Response) -> float | None:
        """When a call began: with the message before it; the first of all where its API says so."""
        if end is None or self._began is not None:
            return self._now
        began = self._now
        if began is None:
            created = response.created or response.created_at
            if created is not None and 0 <= end - created < _LONGEST:
                began = created
                self.draft.remarks.append(_STARTED)
        self._began = self.draft.start = end if began is None else began
        return self._began

    def _result(self, said: Said) -> None:
        answered = said.tool_call_id or said.call_id
        at = next((i for i, one in enumerate(self._wanted) if answered and one.action.tool_call_id == answered), 0)
        self._used(self._wanted.pop(at), said)

    def _used(self, wanted: _Wanted, said: Said | None) -> None:
        code = None if said is None else _returned(said)
        broken = None if said is None else said.extra.exception_info
        failed = True if broken else None if code is None else code != 0
        work = ToolUse(
            name="bash",
            call_id=wanted.action.tool_call_id,
            issued_by=wanted.by,
            inferred=True,
            failed=failed,
            arguments=arguments_digest({"command": wanted.action.command}),
            result=None if said is None else self._parts.of(msgspec.structs.replace(said.message, role="tool")),
        )
        end = None if said is None else said.time
        error = failure(broken) if broken else "exit_code" if failed else None
        self.draft.tool(span_id(self._key, "tool", str(len(self.draft.entries))), wanted.since or 0.0, end, work, error)

    def _give_up(self) -> None:
        """Commands whose output was never heard."""
        for wanted in self._wanted:
            self._used(wanted, None)
        self._wanted = []

    def piece(self) -> Piece:
        """The run as a task."""
        self._give_up()
        draft = self.draft
        stats = self._info.model_stats or ModelStats()
        made = stats.api_calls
        draft.cost = micro_usd(stats.instance_cost or None)
        if made is not None and made > self._answers:
            draft.remarks.append(
                f"The run made {made:,} calls, of which the file keeps {self._answers:,}: answers that the agent could"
                " not use are left out by it."
            )
        if self._began is None:
            return draft.piece(task_id(self._key), None, "none")
        for entry in draft.entries:  # what came before the first time that is known
            entry.start = max(entry.start, draft.start)
        draft.remarks.append(_TOOLS)
        return draft.piece(task_id(self._key), None, "messages")


def _returned(said: Said) -> int | None:
    if said.extra.returncode is not None:
        return said.extra.returncode
    found = _RETURNED.search(said.content, 0, 200) if isinstance(said.content, str) else None
    return int(found[1]) if found else None
