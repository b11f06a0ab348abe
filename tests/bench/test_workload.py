from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.bench.graph import Call, checked
from headway.bench.lengths import length
from headway.bench.shapes import SHAPES, Sizes
from headway.bench.workload import of_file, of_shape
from headway.core.errors import BadInputError


def sizes(steps: str = "4", width: int = 3) -> Sizes:
    return Sizes(
        system=3,
        input=length("10..20", "input"),
        output=length("8", "output"),
        tool=length("0.1", "tool"),
        think=length("1", "think"),
        steps=length(steps, "steps"),
        width=width,
    )


@pytest.mark.parametrize(
    ("shape", "tasks", "calls", "steps"),
    [
        ("single", 1, 1, 1),
        ("chat", 4, 4, 4),
        ("react", 1, 4, 7),
        ("plan", 1, 6, 6),
        ("scatter", 1, 4, 4),
        ("pipeline", 1, 4, 4),
        ("sub-agents", 1, 14, 23),
    ],
)
def test_shapes_have_the_steps_that_their_names_say(shape: str, tasks: int, calls: int, steps: int) -> None:
    """With 4 steps and width 3; sub-agents: a lead, three loops of 4 calls and 3 tools, an answer."""
    session = next(of_shape(shape, sizes(), 1).sessions())
    assert len(session.tasks) == tasks
    assert sum(len(task.calls) for task in session.tasks) == calls
    assert sum(len(task.steps) for task in session.tasks) == steps


@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 12))
def test_every_session_of_every_shape_can_be_played(shape: str, seed: int, width: int, steps: int) -> None:
    made = of_shape(shape, sizes(width=width, steps=f"1..{steps}"), seed)
    for session in islice(made.sessions(), 3):
        checked(session, shape)
        for task in session.tasks:
            assert all(10 <= call.input_tokens <= 20 for call in task.calls)


def test_the_same_seed_makes_the_same_sessions_and_another_does_not() -> None:
    one, same, other = (of_shape("react", sizes(steps="~5x2"), seed) for seed in (1, 1, 2))
    assert one.digest == same.digest != other.digest
    first, second, third = (list(islice(made.sessions(), 5)) for made in (one, same, other))
    assert first == second != third


SESSION = '{"tasks": [{"steps": [{"kind": "call", "id": "a", "input_tokens": 3, "output_tokens": 2}]}]}'


def written(folder: Path, schema: str, sessions: str) -> Path:
    path = folder / "w.json"
    path.write_text(f'{{"schema": "{schema}", "sessions": {sessions}}}')
    return path


def test_a_file_is_played_again_and_again(tmp_path: Path) -> None:
    made = of_file(written(tmp_path, "headway.workload/1", f"[{SESSION}]"))
    first, second = islice(made.sessions(), 2)
    assert first == second
    assert first.tasks[0].steps == (Call(id="a", input_tokens=3, output_tokens=2),)


@pytest.mark.parametrize(
    ("schema", "sessions", "said"),
    [
        ("headway.workload/2", f"[{SESSION}]", "schema 'headway.workload/2'"),
        ("headway.workload/1", "[]", "0 sessions"),
        ("headway.workload/1", "7", "Expected `array`, got `int` - at `$.sessions`"),
        ("headway.workload/1", '[{"tasks": [], "extra": 1}]', "unknown field `extra`"),
        ("headway.workload/1", '[{"tasks": [{"steps": [{"kind": "nap"}]}]}]', "Invalid value 'nap'"),
        ("headway.workload/1", '[{"tasks": [{"steps": []}]}]', "sessions[0], tasks[0] has no call"),
        ("headway.workload/1", "[", "JSON is malformed"),
    ],
)
def test_a_file_that_cannot_be_played_says_what_and_where(
    tmp_path: Path, schema: str, sessions: str, said: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        of_file(written(tmp_path, schema, sessions))
    assert said in caught.value.what
    assert "w.json" in caught.value.what


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        of_file(tmp_path / "ghost.json")
