"""What the words mean that dialects have for what a span did; their names for attributes are in `attributes`."""

from typing import Final, Literal

Role = Literal["call", "tool", "agent", "step", "retrieval", "human"]
"""What kind of work a span did."""

OPERATIONS: Final[dict[str, Role]] = {
    # OTel
    "chat": "call",
    "generate_content": "call",
    "text_completion": "call",
    "embeddings": "retrieval",
    "retrieval": "retrieval",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "create_agent": "step",
    "plan": "step",
    "fetch_response": "step",
    "execute_tool": "tool",
    # OpenInference, MLflow, Traceloop
    "llm": "call",
    "chat_model": "call",
    "completion": "call",
    "tool": "tool",
    "agent": "agent",
    "workflow": "agent",
    "retriever": "retrieval",
    "embedding": "retrieval",
    "reranker": "retrieval",
    "rerank": "retrieval",
    "chain": "step",
    "task": "step",
    "guardrail": "step",
    "evaluator": "step",
    "prompt": "step",
    "parser": "step",
    "memory": "step",
    # Vercel AI SDK
    "ai.generatetext": "agent",
    "ai.streamtext": "agent",
    "ai.generateobject": "agent",
    "ai.streamobject": "agent",
    "ai.generatetext.dogenerate": "call",
    "ai.streamtext.dostream": "call",
    "ai.generateobject.dogenerate": "call",
    "ai.streamobject.dostream": "call",
    "ai.toolcall": "tool",
    "agent_step": "step",
    "ai.embed": "retrieval",
    "ai.embedmany": "retrieval",
    "ai.embed.doembed": "retrieval",
    "ai.embedmany.doembed": "retrieval",
    # Gemini CLI, Claude Code
    "llm_call": "call",
    "llm_request": "call",
    "tool_call": "tool",
    "tool.execution": "step",
    "tool.blocked_on_user": "human",
    "agent_call": "agent",
    "user_prompt": "agent",
    "interaction": "agent",
    "hook": "step",
    # Sentry
    "gen_ai.chat": "call",
    "gen_ai.generate_content": "call",
    "gen_ai.invoke_agent": "agent",
    "gen_ai.execute_tool": "tool",
}
"""What each dialect's word for an operation means; in lower case, for they differ in that too."""

NAMES: Final[dict[str, Role]] = {
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "execute_tool": "tool",
    "call_llm": "call",  # Google ADK
    "agent_run": "agent",  # Google ADK
    "agent run": "agent",  # Pydantic AI
    "running tool": "tool",  # Pydantic AI
    "human_wait": "human",  # Headway
}
"""What a span's name means, whole or up to its first space, where no attribute says what it did."""

PROVIDERS: Final[dict[str, str]] = {
    "az.ai.inference": "azure.ai.inference",
    "az.ai.openai": "azure.ai.openai",
    "gemini": "gcp.gemini",
    "vertex_ai": "gcp.vertex_ai",
}
"""Names of providers that OTel has renamed."""
