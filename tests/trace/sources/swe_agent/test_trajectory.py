"""Expected values are read by hand from the files: steps, commands, seconds, sums."""

import json

from claims import calls_of, claimed, extent, files_of, length, tools_of
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample

from headway.core.money import MicroUsd
from headway.core.span import Step
from headway.core.usage import Usage
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.trace.sources.swe_agent.trajectory import SweAgent

HISTORY = [
    {"role": "system", "content": "You help.", "agent": "main"},
    {"role": "user", "content": "An example of how to do it", "agent": "main", "is_demo": True},
    {"role": "user", "content": "Here is the issue:\nISSUE:\nIt crashes\nat night", "agent": "main"},
    {"role": "assistant", "content": "I look.", "action": "open a.py", "agent": "main"},
    {"role": "user", "content": "x = 1", "agent": "main"},
    {"role": "assistant", "content": "I run.", "action": "python a.py", "agent": "main"},
    {"role": "user", "content": "ok", "agent": "main"},
]
STEPS = [
    {"action": "open a.py\n", "observation": "x = 1", "response": "I look.", "execution_time": 0.5, "state": "{}"},
    {"action": "python a.py\n", "observation": "ok", "response": "I run.", "execution_time": 2.25, "state": "{}"},
]
RUN: dict[str, object] = {
    "history": HISTORY,
    "trajectory": STEPS,
    "info": {
        "exit_status": "exit_cost",
        "model_stats": {"api_calls": 3, "tokens_sent": 5000, "tokens_received": 70, "instance_cost": 0.25},
    },
    "replay_config": json.dumps({"agent": {"model": {"name": "claude-x"}}}),
}


def _one(value: object) -> Piece:
    (piece,), skips = read(SweAgent(), document(json.dumps(value).encode(), "x.traj"))
    assert not skips.all()
    return piece


def _real(name: str) -> Piece:
    path = sample(f"traces/swe_agent/{name}.traj")
    (piece,), skips = read(SweAgent(), document(path.read_bytes(), path.name))
    assert not skips.all()
    return piece


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(SweAgent()) == files_of("swe_agent")


def test_messages_alone_tell_the_loop() -> None:
    piece = _real("function_calling_simple")
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert (piece.timing, len(calls)) == ("none", 5)
    assert [use.name for _, use in tools] == ["find_file", "open", "edit", "bash", "submit"]
    assert [len(call.prompt or ()) for _, call in calls] == [2, 4, 6, 8, 10]
    assert tools[0][1].call_id == "call_PbWErNIge3YTrli3fiVvmIid"


def test_commands_of_version_1_have_their_own_durations() -> None:
    piece = _real("marshmallow-code__marshmallow-1867")
    tools = tools_of(piece.spans)
    assert (piece.timing, len(calls_of(piece.spans)), extent(piece)) == ("durations", 11, 4.3394)
    assert [(use.name, length(span)) for span, use in tools] == [
        ("create", 0.2396),
        ("edit", 0.5635),
        ("bash", 0.3303),
        ("bash", 0.2166),
        ("find_file", 0.2208),
        ("open", 0.2393),
        ("edit", 0.7886),
        ("edit", 0.9785),
        ("bash", 0.3215),
        ("bash", 0.2168),
        ("submit", 0.2238),
    ]
    assert not any(use.inferred for _, use in tools)
    assert any("How long the model took is not recorded" in remark for remark in piece.remarks)
    assert piece.title is not None
    assert piece.title.startswith("TimeDelta serialization precision")


def test_a_run_of_thirteen_steps_with_a_slow_installation() -> None:
    piece = _real("replace_from_source_marshmallow-code__marshmallow-1867")
    tools = tools_of(piece.spans)
    assert (len(calls_of(piece.spans)), len(tools), extent(piece)) == (13, 13, 4.4778)
    assert max(length(span) for span, _ in tools) == 1.9514


def test_version_0_has_no_times_and_only_the_sum_of_its_tokens() -> None:
    piece = _real("pydicom__pydicom-1458")
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert (piece.timing, len(calls), {(span.start, span.end) for span in piece.spans}) == ("none", 12, {(0.0, 0.0)})
    assert [use.name for _, use in tools] == [
        "create", "edit", "bash", "find_file", "open", "edit", "edit", "edit", "edit", "bash", "bash", "submit",
    ]  # fmt: skip
    assert {call.usage.input_tokens for _, call in calls} == {None}
    (root,) = [span.work for span in piece.spans if span.parent is None]
    assert root == Step(
        agent="SWE-agent", used=Usage(input_tokens=122_612, output_tokens=1_369), cost=MicroUsd(1_267_190)
    )
    assert not piece.remarks
    assert calls[0][1].prompt is not None
    assert [part.chars for part in calls[0][1].prompt] == [4877, 19388, 4591]  # the demonstration is sent too


def test_steps_are_laid_one_after_the_other() -> None:
    piece = _one(RUN)
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert [(span.start, span.end) for span, _ in tools] == [(0.0, 0.5), (0.5, 2.75)]
    assert [(span.start, span.end, call.model) for span, call in calls] == [
        (0.0, None, "claude-x"),  # how long the model took is not in the record
        (0.5, None, "claude-x"),
    ]
    assert [(use.name, use.issued_by) for _, use in tools] == [("open", calls[0][0].id), ("bash", calls[1][0].id)]
    assert (piece.title, piece.spans[0].error) == ("It crashes at night", "exit_cost")
    assert piece.remarks[-1] == "It made 3 calls, of which the file keeps 2."


def test_what_was_sent_is_taken_where_a_step_keeps_it() -> None:
    sent = [{"role": "system", "content": "s"}, {"role": "user", "content": "elided"}]
    piece = _one(RUN | {"trajectory": [STEPS[0] | {"query": sent}, STEPS[1]]})
    prompts = [call.prompt for _, call in calls_of(piece.spans)]
    assert [[part.chars for part in prompt or ()] for prompt in prompts] == [[1, 6], [9, 26, 45, 7, 5]]


def test_an_answer_without_a_command_is_a_call_without_a_tool() -> None:
    piece = _one(RUN | {"trajectory": [STEPS[0] | {"action": ""}, STEPS[1]]})
    assert (len(calls_of(piece.spans)), len(tools_of(piece.spans))) == (2, 1)


def test_what_cannot_be_used_is_counted() -> None:
    broken = json.dumps(RUN).encode() + b'\n{"history": [7'
    silent = json.dumps({"history": HISTORY[:3]}).encode()
    pieces, skips = read(SweAgent(), document(broken, "a"), document(silent, "b"))
    assert len(pieces) == 1
    assert {skip.reason for skip in skips.all()} == {
        "a trajectory that is broken or in no known shape",
        "a trajectory without an answer of the model",
    }


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_damage_raises(data: st.DataObject) -> None:
    found = document(data.draw(damaged([json.dumps(RUN).encode()])))
    SweAgent().claims(found.sample())
    for piece in SweAgent().read([found], Skips()):
        assert {span.task for span in piece.spans} == {piece.task}


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_no_damage_to_real_files_raises(data: st.DataObject) -> None:
    folder = sample("traces/swe_agent")
    names = ["function_calling_simple.traj", "pydicom__pydicom-1458.traj"]
    found = document(data.draw(damaged([(folder / name).read_bytes() for name in names])))
    for piece in SweAgent().read([found], Skips()):
        assert {span.task for span in piece.spans} == {piece.task}
