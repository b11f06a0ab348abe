"""Recordings of any size, made up: OTLP as a collector's file exporter writes it, and folders of Claude Code sessions.

The shapes are those of real recordings: OTel's GenAI conventions with an agent, calls, tools and the HTTP requests
below them; rows of sessions with their blocks, counts so far, tool results twice over and sub-agents' files. Ids,
times, counts and texts come from seeded dice, so that the same seed gives the same bytes.
"""

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

EPOCH: Final = 1_790_000_000.0
SPANS_PER_TASK: Final = 20
_BATCH: Final = 512
"""Spans of one export: the SDKs' own limit."""
_AT_ONCE: Final = 25
"""Tasks that run at the same time: an export holds pieces of all of them."""
_TOOLS: Final = ("search", "fetch", "read_file", "run_tests", "sql", "calendar")
_MODELS: Final = (("anthropic", "claude-sonnet-4-5"), ("anthropic", "claude-haiku-4-5"), ("openai", "gpt-5-mini"))
_WORDS: Final = ("parse", "queue", "the", "of", "error", "index", "retry", "value", "is", "node", "cache", "line", "\n")

Json = dict[str, object]


def write_otlp(path: Path, tasks: int, seed: int = 1) -> int:
    """Write ``tasks`` traces as JSON lines, one export a line; the number of spans."""
    dice = random.Random(seed)
    encode = msgspec.json.encode
    waiting: list[Json] = []
    count = 0
    with path.open("wb") as file:
        for first in range(0, tasks, _AT_ONCE):
            ended: list[tuple[int, Json]] = []
            for number in range(first, min(first + _AT_ONCE, tasks)):
                ended += _Trace(dice, EPOCH + 40.0 * number).ended
            waiting += [span for _, span in sorted(ended, key=lambda one: one[0])]
            while len(waiting) >= _BATCH or (waiting and first + _AT_ONCE >= tasks):
                file.write(encode(_export(waiting[:_BATCH])) + b"\n")
                count += len(waiting[:_BATCH])
                del waiting[:_BATCH]
    return count


class _Trace:
    """One task of `SPANS_PER_TASK` spans."""

    def __init__(self, dice: random.Random, start: float) -> None:
        self._dice = dice
        self._trace = f"{dice.getrandbits(128):032x}"
        self.ended: list[tuple[int, Json]] = []
        root, now, left = self._id(), start, SPANS_PER_TASK - 1
        provider, model = dice.choice(_MODELS)
        session = f"{dice.getrandbits(64):016x}"
        read, known = dice.randrange(2_000, 8_000), 0
        while left:
            last = left <= 2
            began, ttft = now, dice.uniform(0.2, 1.5)
            now += ttft + dice.uniform(0.3, 4.0)
            said = dice.randrange(30, 600)
            self._add(root, f"chat {model}", began, now, 3, self._call(provider, model, ttft, (read, known, said)))
            known, read = read, read + said + dice.randrange(100, 3_000)
            left -= 1
            now += dice.uniform(0.001, 0.02)
            tools = 0 if last and left == 0 else min(dice.choice((1, 1, 1, 2, 3)), max(left - 1, 1))
            ends = [now]
            for _ in range(tools):
                requests = 1 if left > 3 and dice.random() < 0.4 else 0
                ends.append(self._tool(root, now, requests))
                left -= 1 + requests
                if not left:
                    break
            now = max(ends) + dice.uniform(0.001, 0.02)
        about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "assistant"}
        about |= {"gen_ai.provider.name": provider, "gen_ai.conversation.id": session}
        self._add(None, "invoke_agent assistant", start, now, 1, about, root)

    def _tool(self, parent: str, start: float, requests: int) -> float:
        dice = self._dice
        name = dice.choice(_TOOLS)
        end = start + dice.lognormvariate(-0.5, 1.0)
        about: dict[str, str | float | bool] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": f"call_{dice.getrandbits(64):016x}",
            "gen_ai.tool.type": "function",
        }
        if dice.random() < 0.03:
            about["error.type"] = "timeout"
        span = self._add(parent, f"execute_tool {name}", start, end, 1, about)
        if requests:
            http = {"http.request.method": "GET", "server.address": "tools.internal", "http.response.status_code": 200}
            self._add(span, "GET", start + (end - start) / 10, end - (end - start) / 10, 3, http)
        return end

    def _call(
        self, provider: str, model: str, ttft: float, tokens: tuple[int, int, int]
    ) -> Mapping[str, str | float | bool]:
        read, known, said = tokens
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.response.id": f"msg_{self._dice.getrandbits(64):016x}",
            "gen_ai.request.stream": True,
            "gen_ai.response.time_to_first_chunk": round(ttft, 6),
            "gen_ai.usage.input_tokens": read,
            "gen_ai.usage.cache_read.input_tokens": known,
            "gen_ai.usage.output_tokens": said,
            "server.address": "api.example.com",
            "server.port": 443,
        }

    def _id(self) -> str:
        return f"{self._dice.getrandbits(64) | 1 << 60:016x}"

    def _add(
        self,
        parent: str | None,
        name: str,
        start: float,
        end: float,
        kind: int,
        about: Mapping[str, str | float | bool],
        own: str | None = None,
    ) -> str:
        span = own or self._id()
        until = int(end * 1e9)
        fields: Json = {"traceId": self._trace, "spanId": span}
        if parent is not None:
            fields["parentSpanId"] = parent
        fields |= {
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(int(start * 1e9)),
            "endTimeUnixNano": str(until),
        }
        fields["attributes"] = [{"key": key, "value": _value(value)} for key, value in about.items()]
        fields["status"] = {"code": 2} if "error.type" in about else {}
        self.ended.append((until, fields))
        return span


def _value(value: str | float | bool) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}


def _export(spans: list[Json]) -> Json:
    names = {"service.name": "agent", "service.version": "1.4.2", "host.name": "worker-7", "telemetry.sdk.name": "otel"}
    resource = {"attributes": [{"key": key, "value": {"stringValue": value}} for key, value in names.items()]}
    scope = {"name": "opentelemetry.instrumentation.genai", "version": "2.1"}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def write_claude_code(folder: Path, size: int, seed: int = 1) -> int:
    """Write sessions of two megabytes until ``size`` bytes are there; the bytes written."""
    dice = random.Random(seed)
    written = 0
    while written < size:
        session = _uuid(dice)
        project = folder / f"-home-user-project-{dice.randrange(6)}"
        project.mkdir(parents=True, exist_ok=True)
        made = _Session(dice, session, EPOCH + written / 100)
        written += made.write(project, min(2_000_000, size - written))
    return written


class _Session:
    """One session's file, and those of its sub-agents beside it."""

    def __init__(self, dice: random.Random, session: str, start: float) -> None:
        self._dice = dice
        self._session = session
        self._now = start
        self._parent: str | None = None
        self._agents: dict[str, list[bytes]] = {}

    def write(self, project: Path, size: int) -> int:
        """Write tasks until the session has ``size`` bytes."""
        written = 0
        with (project / f"{self._session}.jsonl").open("wb") as file:
            while written < size:
                for line in self._task(None, self._dice.choice((1, 3, 6, 6, 12, 30))):
                    written += file.write(line)
        for agent, lines in self._agents.items():
            beside = project / self._session / "subagents"
            beside.mkdir(parents=True, exist_ok=True)
            written += (beside / f"agent-{agent}.jsonl").write_bytes(b"".join(lines))
        return written

    def _task(self, agent: str | None, turns: int) -> Iterator[bytes]:
        dice = self._dice
        self._now += dice.uniform(5, 120)
        yield self._row("user", agent, {"role": "user", "content": words(dice, dice.randrange(40, 900))})
        known = dice.randrange(9_000, 20_000)
        for turn in range(turns):
            self._now += dice.uniform(2, 12)
            last = turn == turns - 1
            blocks: list[Json] = [{"type": "text", "text": words(dice, dice.randrange(60, 1_200))}]
            if not last:
                tool = dice.choice(("Read", "Bash", "Grep", "Edit", "Glob"))
                given = {"file_path": f"/src/{dice.randrange(300)}.py", "command": words(dice, 80)}
                blocks.append(
                    {"type": "tool_use", "id": f"toolu_{dice.getrandbits(96):024x}", "name": tool, "input": given}
                )
            fresh, said = dice.randrange(200, 4_000), dice.randrange(60, 700)
            yield from self._answer(
                agent, blocks, {"read": known, "fresh": fresh, "said": said}, "end_turn" if last else "tool_use"
            )
            known += fresh + said
            if not last:
                yield from self._result(agent, str(blocks[-1]["id"]))

    def _answer(self, agent: str | None, blocks: list[Json], tokens: dict[str, int], stop: str) -> Iterator[bytes]:
        message, request = f"msg_{self._dice.getrandbits(96):024x}", f"req_{self._dice.getrandbits(96):024x}"
        for number, block in enumerate(blocks, 1):
            usage = {
                "input_tokens": 4,
                "cache_creation_input_tokens": tokens["fresh"],
                "cache_read_input_tokens": tokens["read"],
                "cache_creation": {"ephemeral_5m_input_tokens": tokens["fresh"], "ephemeral_1h_input_tokens": 0},
                "output_tokens": tokens["said"] if number == len(blocks) else 2,
                "service_tier": "standard",
            }
            said: Json = {"id": message, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929"}
            said |= {"content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage}
            yield self._row("assistant", agent, said, requestId=request)
            self._now += self._dice.uniform(0.1, 1.0)

    def _result(self, agent: str | None, tool: str) -> Iterator[bytes]:
        dice = self._dice
        if agent is None and dice.random() < 0.02:
            helper, caller = f"{dice.getrandbits(64):016x}", self._parent
            self._parent = None
            self._agents[helper] = list(self._task(helper, dice.choice((3, 8))))
            self._parent = caller
            outcome: object = {"agentId": helper, "status": "completed", "totalDurationMs": 4_000}
        else:
            outcome = None
        self._now += dice.lognormvariate(-0.5, 1.2)
        text = words(dice, int(min(dice.lognormvariate(7.3, 1.3), 40_000)))
        content = {"tool_use_id": tool, "type": "tool_result", "content": text, "is_error": dice.random() < 0.05}
        seen = outcome or {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        yield self._row("user", agent, {"role": "user", "content": [content]}, toolUseResult=seen)

    def _row(self, kind: str, agent: str | None, message: Json, **more: object) -> bytes:
        own = _uuid(self._dice)
        row: Json = {"parentUuid": self._parent, "isSidechain": agent is not None, "userType": "external"}
        row |= {"cwd": "/home/user/project", "sessionId": self._session, "version": "2.1.7", "gitBranch": "main"}
        if agent is not None:
            row["agentId"] = agent
        when = datetime.fromtimestamp(self._now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        row |= {"type": kind, "message": message, "uuid": own, "timestamp": when} | more
        self._parent = own
        return msgspec.json.encode(row) + b"\n"


def words(dice: random.Random, size: int) -> str:
    """Prose of about ``size`` characters."""
    return " ".join(dice.choices(_WORDS, k=max(size // 5, 1)))


def _uuid(dice: random.Random) -> str:
    text = f"{dice.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
