import json
from itertools import pairwise

import pytest

from rig.traffic import MARKER, agent_traffic, event_stream, question_traffic, stream_events, stream_traffic


@pytest.mark.parametrize("size", [27_000, 221_000])
def test_an_agents_requests_have_the_size_asked_for_on_average(size: int) -> None:
    bodies = agent_traffic(size, conversations=3).bodies

    assert sum(map(len, bodies)) / len(bodies) == pytest.approx(size, rel=0.001)


def test_each_step_repeats_the_one_before_and_adds_the_engines_answer_and_its_tools_result() -> None:
    traffic = agent_traffic(27_000, conversations=2, steps=4)
    steps = [json.loads(body)["messages"] for body in traffic.bodies[4:]]
    answer = json.loads(traffic.answer)["choices"][0]["message"]

    assert len(traffic.bodies) == 8
    for before, after in pairwise(steps):
        assert after[: len(before)] == before
        said, result = after[len(before) :]
        assert said == answer
        assert result["tool_call_id"] == answer["tool_calls"][0]["id"]
        assert len(result["content"]) > 500
        assert result["content"] not in {message["content"] for message in before}


def test_conversations_differ_from_each_other() -> None:
    bodies = agent_traffic(27_000, conversations=3, steps=2).bodies

    assert len(set(bodies)) == 6


def test_questions_have_exactly_the_size_asked_for_and_one_marker() -> None:
    plain = question_traffic(306, conversations=5)
    streamed = stream_traffic(306, conversations=5, tokens=2)

    for body in (*plain.bodies, *streamed.bodies):
        assert len(body) == 306
        assert body.decode().count(MARKER) == 1
    assert "stream" not in json.loads(plain.bodies[0])
    assert json.loads(streamed.bodies[0])["stream"] is True


def test_a_stream_has_role_tokens_finish_usage_and_end() -> None:
    *chunks, end = stream_events(3)
    decoded = [json.loads(chunk) for chunk in chunks]

    assert end == b"[DONE]"
    assert decoded[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all(chunk["choices"][0]["delta"]["content"] for chunk in decoded[1:4])
    assert decoded[4]["choices"][0]["finish_reason"] == "stop"
    assert (decoded[5]["choices"], decoded[5]["usage"]["completion_tokens"]) == ([], 64)


def test_the_mark_stands_after_the_first_token() -> None:
    traffic = stream_traffic(306, conversations=1, tokens=3)

    assert traffic.answer == event_stream(stream_events(3))
    assert traffic.answer[: traffic.mark].count(b"data: ") == 2
    assert traffic.answer[traffic.mark :].startswith(b"data: ")
