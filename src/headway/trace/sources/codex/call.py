"""A response in a Codex rollout, which comes in items, with a count of its tokens behind it."""

from msgspec import Struct, field

from headway.core.prompt import Part
from headway.core.span import ModelCall, ToolCallRef
from headway.core.usage import Usage
from headway.trace.sources.digests import part
from headway.trace.sources.session.draft import Entry


class Call(Struct, eq=False):
    """One request to the model."""

    entry: Entry
    model: str
    provider: str | None
    prompt: tuple[Part, ...] | None
    attempts: int | None
    usage: Usage | None = None
    first_token: float | None = None
    first_visible: float | None = None
    said: list[str] = field(default_factory=list[str])
    tools: list[ToolCallRef] = field(default_factory=list[ToolCallRef])

    def reach(self, at: float | None) -> None:
        """Something of it came at this time."""
        if at is not None and (self.entry.end is None or self.entry.end < at):
            self.entry.end = at

    def ask(self, name: str, call_id: str | None, arguments: str) -> None:
        """It asks for a tool."""
        self.said.append(f"{name}({arguments})")
        self.tools.append(ToolCallRef(call_id or "", name))

    def began(self, at: float) -> None:
        """Its first token came then, if that lies within it."""
        if self.entry.start <= at <= (self.entry.end or at):
            self.first_token = at

    def settle(self) -> Part | None:
        """Put what is known into the span; returns the answer as part of later prompts."""
        answer = part("assistant", "\n".join(self.said)) if self.said else None
        self.entry.name = f"chat {self.model}"
        self.entry.work = ModelCall(
            model=self.model,
            provider=self.provider,
            first_token=self.first_token,
            first_visible=self.first_visible,
            shown=self.first_visible is not None,
            usage=self.usage or Usage(),
            attempts=self.attempts,
            tool_calls=tuple(self.tools),
            prompt=self.prompt,
            answer=answer,
        )
        return answer
