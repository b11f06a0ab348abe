"""Trace files as a collector's file exporter writes them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_T0 = 1_790_000_000_000_000_000


def otlp_task(number: int, *, model: float = 1.0, tool: float = 0.5, turns: int = 2) -> str:
    """A line of OTLP JSON: an agent whose calls take ``model`` seconds, with a tool of ``tool`` seconds between."""
    trace = f"{number + 1:032x}"
    end = turns * model + (turns - 1) * tool
    spans = [_span(trace, 1, None, "invoke_agent helper", (0.0, end), {"gen_ai.operation.name": "invoke_agent"})]
    at = 0.0
    for turn in range(turns):
        call = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "tiny",
            "gen_ai.usage.input_tokens": 100 * (turn + 1),
            "gen_ai.usage.output_tokens": 10,
        }
        spans.append(_span(trace, 2 + 2 * turn, 1, "chat tiny", (at, at + model), call))
        at += model
        if turn < turns - 1:
            used = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
            spans.append(_span(trace, 3 + 2 * turn, 1, "execute_tool search", (at, at + tool), used))
            at += tool
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def written(path: Path, lines: Iterable[str]) -> Path:
    """The lines as a file."""
    path.write_text("\n".join(lines) + "\n")
    return path


def _span(
    trace: str, number: int, parent: int | None, name: str, times: tuple[float, float], attributes: dict[str, Any]
) -> dict[str, Any]:
    values = {key: {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v} for key, v in attributes.items()}
    start, end = (str(_T0 + round(time * 1e9)) for time in times)
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": "" if parent is None else f"{parent:016x}",
        "name": name,
        "startTimeUnixNano": start,
        "endTimeUnixNano": end,
        "attributes": [{"key": key, "value": value} for key, value in values.items()],
    }
