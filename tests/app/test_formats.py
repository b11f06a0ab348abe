import json
from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


def test_every_installed_format_is_listed_once(headway: Run) -> None:
    known = json.loads(headway("formats", "--json").out)["formats"]
    assert {"otlp", "langfuse", "claude-code", "codex", "jaeger"} <= set(known)
    assert len(set(known.values())) == len(known)
    assert [line.split()[0] for line in headway("formats").out.splitlines()] == sorted(known)
