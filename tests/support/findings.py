"""What is found in small tasks, and what a span may be told about beside its times."""

from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec import structs
from savings import priced, unpriced
from tasks import forests

from headway.core.prompt import Part
from headway.core.span import ErrorType, ModelCall, Span, ToolUse
from headway.trace.findings import Finding, findings
from headway.trace.sources.digests import part
from headway.trace.sources.source import Timing
from headway.trace.sources.verdict import judge


def ranking(spans: Sequence[Span], timing: Timing = "spans", *, money: bool = False) -> list[Finding]:
    verdict = judge(spans, "made by hand", timing)
    return list(findings(spans, verdict, prices=priced if money else unpriced))


def found(spans: Sequence[Span], timing: Timing = "spans", *, money: bool = False) -> dict[str, Finding]:
    return {finding.name: finding for finding in ranking(spans, timing, money=money)}


def told(made: Span, *prompt: tuple[str, str], answer: str | None = None) -> Span:
    """A call with the messages that it was asked with (role and text), and what it answered."""
    assert isinstance(made.work, ModelCall)
    parts = tuple(part(role, text) for role, text in prompt)
    said = None if answer is None else part("assistant", answer)
    return structs.replace(made, work=structs.replace(made.work, prompt=parts, answer=said))


def used(
    made: Span, name: str, arguments: str | None = None, result: str | None = None, *, failed: bool | None = None
) -> Span:
    """A tool with its name, what it was called with and what it brought."""
    assert isinstance(made.work, ToolUse)
    brought = None if result is None else part("tool", result)
    work = structs.replace(made.work, name=name, arguments=arguments, result=brought, failed=failed)
    return structs.replace(made, name=f"execute_tool {name}", work=work)


def broken(made: Span, error: str = "timeout") -> Span:
    return structs.replace(made, error=ErrorType(error))


_parts = st.sampled_from([part("system", f"at 10:0{i}:00, be brief. " * 300) for i in range(3)]) | st.builds(
    Part,
    role=st.sampled_from(["user", "assistant", "tool"]),
    chars=st.integers(0, 100_000),
    digest=st.sampled_from("abcd"),
    shape=st.sampled_from("ab"),
)
_prompts = st.none() | st.lists(_parts, max_size=6).map(tuple)
_words = st.none() | st.sampled_from("ab")


@st.composite
def records(draw: st.DrawFn) -> list[Span]:
    """Forests of any kind whose spans also say what they were asked, what they brought, and whether they failed."""
    spans: list[Span] = []
    for span in draw(forests):
        work = span.work
        if isinstance(work, ModelCall):
            work = structs.replace(work, prompt=draw(_prompts), answer=draw(st.none() | _parts), replica=draw(_words))
        elif isinstance(work, ToolUse):
            failed = draw(st.none() | st.booleans())
            work = structs.replace(work, arguments=draw(_words), result=draw(st.none() | _parts), failed=failed)
        error = draw(st.none() | st.just(ErrorType("timeout")))
        spans.append(structs.replace(span, work=work, error=error))
    return spans
