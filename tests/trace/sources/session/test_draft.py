from hypothesis import given
from hypothesis import strategies as st
from sessions import agents, at, chats, tools, waits

from headway.core.span import ModelCall, Retrieval, ToolUse
from headway.core.task import SessionId, SpanId, TaskId
from headway.trace.sources.session.draft import Draft, first_words
from headway.trace.sources.source import Piece

CALL = ModelCall(model="m")


def draft(name: str = "root", start: float = 100.0) -> Draft:
    return Draft(SpanId(name), "agent", start)


def piece(made: Draft) -> Piece:
    return made.piece(TaskId("t"), SessionId("s"), "messages")


def use(issuer: str, *, inferred: bool = True) -> ToolUse:
    return ToolUse(name="ls", issued_by=SpanId(issuer), inferred=inferred)


def test_the_root_covers_all_that_is_known() -> None:
    made = draft()
    made.call(SpanId("c"), 101.0, 103.0, CALL)
    made.retrieval(SpanId("r"), 103.0, 104.0, Retrieval(source="docs"))
    made.tool(SpanId("t"), 105.0, None, ToolUse(name="ls"))
    found = piece(made)
    assert [(span.name, at(span, found)) for span in found.spans] == [
        ("invoke_agent agent", (0, 5)),
        ("chat m", (1, 3)),
        ("retrieval docs", (3, 4)),
        ("execute_tool ls", (5, None)),
    ]
    assert {span.parent for span in found.spans[1:]} == {SpanId("root")}
    made.until = 110.0
    assert at(piece(made).spans[0], piece(made)) == (0, 10)


def test_an_end_before_the_start_is_the_start() -> None:
    made = draft()
    made.call(SpanId("c"), 103.0, 101.0, CALL)
    assert at(chats(piece(made))[0], piece(made)) == (3, 3)


def test_people_are_waited_for_before_inside_and_between() -> None:
    made = draft()
    made.waited_before(SpanId("before"), 40.0)
    made.waited_before(SpanId("never"), 100.0)
    asked = made.tool(SpanId("t"), 101.0, 104.0, ToolUse(name="ask"))
    made.asked_a_person(SpanId("inside"), asked)
    made.waited(SpanId("between"), 104.0, 109.0)
    made.waited(SpanId("nothing"), 109.0, 109.0)
    found = piece(made)
    assert [(wait.id, wait.parent, at(wait, found)) for wait in waits(found)] == [
        ("inside", "t", (1, 4)),
        ("between", "root", (4, 9)),
        ("before", None, (-60, 0)),
    ]


def test_what_a_sub_agent_did_hangs_from_the_tool_that_waited_or_from_the_task() -> None:
    for under in (SpanId("t"), None):
        made, other = draft(), draft("inner", 102.0)
        made.tool(SpanId("t"), 101.0, 106.0, ToolUse(name="Task"))
        other.call(SpanId("c"), 102.0, 105.0, CALL)
        other.error, other.remarks = "interrupted", ["Something."]
        made.adopt(other, under)
        found = piece(made)
        (agent,) = agents(found)
        assert (agent.parent, agent.error, at(agent, found)) == (under or "root", "interrupted", (2, 5))
        assert chats(found)[0].parent == "inner"
        assert found.remarks == ("Something.",)


def test_tools_count_from_the_end_of_the_answer_that_asked_for_them_unless_they_ended_before() -> None:
    made = draft()
    made.call(SpanId("c"), 100.0, 104.0, CALL)
    made.tool(SpanId("over"), 101.0, 103.0, use("c"))
    made.tool(SpanId("with it"), 102.0, 104.0, use("c"))
    made.tool(SpanId("after"), 103.0, 107.0, use("c"))
    made.tool(SpanId("open"), 103.0, None, use("c"))
    made.tool(SpanId("measured"), 103.0, 107.0, use("c", inferred=False))
    made.tool(SpanId("nobody's"), 103.0, 107.0, use("x"))
    found = piece(made)
    assert [at(tool, found) for tool in tools(found)] == [(1, 3), (4, 4), (4, 7), (4, None), (3, 7), (3, 7)]
    assert any("count" in remark for remark in found.remarks)


def test_without_times_nothing_has_any() -> None:
    made = draft()
    made.waited_before(SpanId("before"), 40.0)
    made.call(SpanId("c"), 101.0, None, CALL)
    found = made.piece(TaskId("t"), None, "none")
    assert [(span.start, span.end) for span in found.spans] == [(0.0, 0.0)] * 2


@given(st.text())
def test_a_title_is_one_short_line(text: str) -> None:
    title = first_words(text)
    assert title is None or (0 < len(title) <= 80 and title == " ".join(title.split()))
    assert (title is None) == (not text[:640].split())
