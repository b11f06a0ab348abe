"""JSON of any shape, made of the words that formats are recognised by: nothing raises, and what is read is sound."""

from collections.abc import Callable

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import document

from headway.trace.sources.langfuse.export import Langfuse
from headway.trace.sources.langsmith.export import LangSmith
from headway.trace.sources.openai_agents.export import OpenAIAgents
from headway.trace.sources.openhands.conversation import OpenHands
from headway.trace.sources.openhands.logs import OpenHandsLlm
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Source
from headway.trace.sources.swe_agent.mini import MiniSweAgent
from headway.trace.sources.swe_agent.trajectory import SweAgent

WORDS = [
    "id",
    "trace_id",
    "traceId",
    "type",
    "startTime",
    "start_time",
    "endTime",
    "end_time",
    "timestamp",
    "metadata",
    "attributes",
    "scope",
    "input",
    "output",
    "usageDetails",
    "observations",
    "trace",
    "data",
    "run_type",
    "inputs",
    "outputs",
    "events",
    "dotted_order",
    "parent_run_id",
    "child_runs",
    "post",
    "patch",
    "runs",
    "extra",
    "object",
    "span_data",
    "started_at",
    "ended_at",
    "error",
    "$schemaVersion",
    "model_responses",
    "generated_items",
    "original_input",
    "context",
    "kind",
    "source",
    "action",
    "observation",
    "args",
    "message",
    "tool_call_metadata",
    "key",
    "value",
    "stats",
    "usage_to_metrics",
    "agent",
    "workspace",
    "messages",
    "response",
    "latency_sec",
    "cost",
    "history",
    "role",
    "content",
    "trajectory",
    "info",
    "replay_config",
    "trajectory_format",
    "tool_calls",
    "llm_response_id",
    "tool_call_id",
    "llm_message",
    "usage",
    "choices",
]
VALUES = st.sampled_from(
    ["GENERATION", "TOOL", "llm", "trace.span", "trace", "agent", "generation", "ActionEvent", "MessageEvent", "user",
     "assistant", "message", "2026-01-05T10:00:00Z", "2026-01-05T10:00:09Z", "mini-swe-agent-1", "{}", "[]", 5, 0, 1.5]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=8),
    max_leaves=20,
)


SOURCES: tuple[Callable[[], Source], ...] = (
    Langfuse,
    LangSmith,
    MiniSweAgent,
    OpenAIAgents,
    OpenHands,
    OpenHandsLlm,
    SweAgent,
)


@given(value=JSON)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_raises(value: object) -> None:
    found = document(msgspec.json.encode(value), "any.json")
    for make in SOURCES:
        source = make()
        source.claims(found.sample())
        for piece in source.read([found], Skips()):
            assert piece.spans
            assert {span.task for span in piece.spans} == {piece.task}
