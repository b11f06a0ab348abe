from findings import told
from msgspec import structs
from tasks import T0, call, step

from headway.core.span import HumanWait, ModelCall, Span
from headway.trace.anatomy import dissect
from headway.trace.sources.otel.inbox import Inbox
from headway.trace.sources.otel.reading import Reading
from headway.trace.sources.otel.whole import whole
from headway.wire.otel import RawSpan

ASKED, SAID = ("user", "What is it?"), ("assistant", "A lamp.")


def conversation(parent: str | None = None) -> list[Span]:
    """Two turns of 4 and 3 s, a minute apart; the second is told what the first had answered."""
    return [
        step("turn-1", 0, 4, parent, agent="helper"),
        told(call("a", 0, 4, "turn-1"), ASKED, answer="A lamp."),
        step("turn-2", 64, 67, parent, agent="helper"),
        told(call("b", 64, 67, "turn-2"), ASKED, SAID, ("user", "And that?"), answer="A chair."),
    ]


def taken(spans: list[Span]) -> tuple[list[Span], tuple[str, ...]]:
    found = whole([Reading(span) for span in spans])
    return list(found.spans), found.remarks


def test_the_time_between_two_turns_is_a_person_s() -> None:
    spans, remarks = taken(conversation())
    (wait,) = [span for span in spans if isinstance(span.work, HumanWait)]
    assert (wait.start - T0, (wait.end or 0) - T0, wait.parent) == (4, 64, None)
    account = dissect(spans)
    assert (account.e2e, account.human, account.n) == (7, 60, 2)
    assert any("several turns of a conversation" in remark for remark in remarks)


def test_it_is_also_below_a_span_that_covers_the_conversation() -> None:
    spans, _ = taken([step("chat", 0, 67), *conversation("chat")])
    assert dissect(spans).e2e == 7


def test_runs_that_do_not_go_on_from_each_other_are_steps_of_one_task() -> None:
    spans = conversation()
    spans[3] = told(spans[3], ("user", "Something else."))
    assert taken(spans) == (spans, ())
    others = [
        structs.replace(span, work=structs.replace(span.work, agent="other")) if span.id == "turn-2" else span
        for span in conversation()
    ]
    assert taken(others) == (others, ())
    overlapping = [structs.replace(span, start=span.start - 62) for span in conversation()[2:]]
    assert not any(isinstance(span.work, HumanWait) for span in taken([*conversation()[:2], *overlapping])[0])


def raw(name: str, start: float, end: float, parent: str | None, **attributes: object) -> RawSpan:
    return RawSpan(trace="1" * 32, id=name * 16, parent=parent, name="x", start=start, end=end, attributes=attributes)


def test_live_spans_too() -> None:
    def turn(agent: str, chat: str, start: float, prompt: str, answer: str) -> list[RawSpan]:
        asked = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": prompt}
        run = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
        return [
            raw(agent, start, start + 4, None, **run),
            raw(chat, start, start + 4, agent * 16, **asked, **{"gen_ai.output.messages": answer}),
        ]

    one = '{"role": "user", "parts": [{"type": "text", "content": "What is it?"}]}'
    two = '{"role": "assistant", "parts": [{"type": "text", "content": "A lamp."}]}'
    inbox = Inbox()
    first = inbox.take(turn("a", "b", 10, f"[{one}]", f"[{two}]")).spans
    assert not any(isinstance(span.work, HumanWait) for span in first)
    then = inbox.take(turn("c", "d", 100, f"[{one}, {two}, {one}]", f"[{two}]")).spans
    (wait,) = [span for span in then if isinstance(span.work, HumanWait)]
    assert (wait.start, wait.end) == (14, 100)
    assert sum(isinstance(span.work, ModelCall) for span in then) == 1
