import pytest

from headway.bench.graph import Call, Graph, Session, Shared, Step, Tool, checked, in_order
from headway.core.errors import BadInputError


def call(name: str, *after: str, extends: str | None = None, tokens: int = 5, shared: Shared | None = None) -> Call:
    return Call(id=name, input_tokens=tokens, output_tokens=5, after=after, extends=extends, shared=shared)


def one(*steps: Step) -> Session:
    return Session((Graph(steps),))


@pytest.mark.parametrize(
    ("session", "said"),
    [
        (Session(()), "has no task"),
        (Session((Graph((call("a"),)), Graph((call("b"),)))), "2 tasks and 0 think times"),
        (Session((Graph((call("a"),)), Graph((call("b"),))), (-1.0,)), "think[0]: seconds is -1.0"),
        (one(Tool(id="t", seconds=1)), "tasks[0] has no call"),
        (one(call("a"), call("a")), "two steps are called 'a'"),
        (one(call("a", "ghost")), "waits for 'ghost'"),
        (one(call("a", extends="ghost")), "extends 'ghost'"),
        (one(call("a"), Tool(id="t", seconds=float("nan"))), "step 't': seconds is nan"),
        (one(call("a", tokens=-1)), "input_tokens is -1"),
        (one(Call(id="a", input_tokens=1, output_tokens=0)), "output_tokens is 0"),
        (one(call("a"), call("b", extends="a", shared=Shared("s", 1))), "both extends a call and begins with 's'"),
        (one(call("a", "b"), call("b", "a"), call("c")), "'a', 'b' wait for each other in a circle"),
        (one(call("a", extends="a")), "'a' wait for each other in a circle"),
    ],
)
def test_what_cannot_be_played_is_refused_by_name_and_place(session: Session, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        checked(session, "file: sessions[3]")
    assert said in caught.value.what
    assert caught.value.what.startswith("file: sessions[3]")
    assert caught.value.fix


def test_a_later_task_may_go_on_from_an_earlier_one() -> None:
    session = Session((Graph((call("a"),)), Graph((call("b", extends="a"),))), (1.0,))
    assert checked(session, "here") is session


def test_steps_come_after_all_that_they_wait_for() -> None:
    graph = Graph((call("answer", "left", "right"), call("left", extends="root"), call("right", "root"), call("root")))
    assert [step.id for step in in_order(graph, "here")] == ["root", "left", "right", "answer"]
