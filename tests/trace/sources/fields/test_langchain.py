import json

from hypothesis import given
from hypothesis import strategies as st

from headway.trace.sources.fields.langchain import ToolResult, plain_messages, tool_result

CALL = {"name": "search", "args": {"q": "x"}, "id": "call_1", "type": "tool_call"}


def _made(kind: str, **kwargs: object) -> dict[str, object]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


def test_three_spellings_of_one_answer_are_one() -> None:
    spellings: list[object] = [
        {"type": "ai", "content": "Hm", "tool_calls": [CALL]},
        {"type": "ai", "data": {"content": "Hm", "tool_calls": [CALL]}},
        _made("AIMessage", content="Hm", tool_calls=[CALL], type="ai"),
        {"role": "assistant", "content": "Hm", "additional_kwargs": {"tool_calls": [CALL]}},
    ]
    for spelled in spellings:
        found = plain_messages(json.dumps(spelled))
        assert found == {"role": "assistant", "content": "Hm", "tool_calls": [CALL], "tool_call_id": None}


def test_messages_are_found_inside_inputs_and_batches() -> None:
    asked = _made("HumanMessage", content="Why?")
    plain = {"role": "user", "content": "Why?", "tool_calls": None, "tool_call_id": None}
    assert plain_messages({"messages": [[asked]], "model": "m"}) == {"messages": [[plain]], "model": "m"}


def test_generations_become_choices() -> None:
    outputs = {"generations": [[{"text": "Yes", "generation_info": {"finish_reason": "stop"}}]]}
    choice = {"message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop"}
    assert plain_messages(outputs) == {"choices": [choice]}


def test_definitions_of_tools_among_messages_are_left_out() -> None:
    definition = {"role": "tool", "content": {"type": "function", "function": {"name": "search"}}}
    asked = {"role": "user", "content": "Why?"}
    found = plain_messages([asked, definition])
    assert isinstance(found, list)
    assert len(found) == 1  # pyright: ignore[reportUnknownArgumentType] - only counted


def test_the_message_of_a_tool_tells_which_and_for_which_call() -> None:
    message = {"type": "tool", "name": "search", "tool_call_id": "call_1", "content": "x", "status": "error"}
    expected = ToolResult("search", "call_1", failed=True)
    assert tool_result(json.dumps(message)) == tool_result({"output": message}) == expected
    made = {**{k: v for k, v in message.items() if k != "status"}, "status": "success"}
    assert tool_result(_made("ToolMessage", **made)) == ToolResult("search", "call_1", failed=False)
    assert tool_result({"type": "ai", "content": ""}) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "lc", "kwargs", "id", "data", "messages", "generations", "output"]
            ),
            inner | st.sampled_from(["ai", "tool", "human", 1]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_nothing_raises(value: object) -> None:
    plain_messages(value)
    tool_result(value)
