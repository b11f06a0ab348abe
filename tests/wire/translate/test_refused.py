"""What would change the meaning if it were left out is refused, by name."""

from typing import Any

import pytest
from interpreting import CREATED

from headway.core.errors import BadInputError
from headway.wire.dialect import Dialect
from headway.wire.dialects import CHAT, MESSAGES, RESPONSES
from headway.wire.translate.exchange import Exchange
from wire import encode

HI: dict[str, Any] = {"role": "user", "content": "hi"}
MINIMAL: dict[Dialect, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [HI]},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [HI]},
    RESPONSES: {"model": "m", "input": [HI]},
}


@pytest.mark.parametrize(
    ("caller", "engine", "fields", "says"),
    [
        (MESSAGES, CHAT, {"container": {"id": "c"}}, "`container`"),
        (MESSAGES, CHAT, {"mcp_servers": [{"name": "x"}]}, "`mcp_servers`"),
        (MESSAGES, CHAT, {"tools": [{"type": "bash_20250124", "name": "bash"}]}, r"`tools\[0\]`.*bash_20250124"),
        (
            MESSAGES,
            CHAT,
            {"messages": [{"role": "user", "content": [{"type": "search_result"}]}]},
            r"'search_result'.*messages\[0\]\.content",
        ),
        (
            MESSAGES,
            CHAT,
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}
                ]
            },
            "'file'",
        ),
        (CHAT, MESSAGES, {"messages": [HI] * 60_001}, "more than 60,000 objects"),
        (RESPONSES, CHAT, {"input": [HI] * 60_001}, "more than 60,000 objects"),
        (CHAT, MESSAGES, {"n": 2}, "`n`"),
        (CHAT, MESSAGES, {"logprobs": True}, "`logprobs`"),
        (CHAT, MESSAGES, {"top_logprobs": 2}, "`top_logprobs`"),
        (CHAT, MESSAGES, {"logit_bias": {"1": 2}}, "`logit_bias`"),
        (CHAT, MESSAGES, {"modalities": ["text", "audio"]}, "`modalities`"),
        (CHAT, MESSAGES, {"response_format": {"type": "json_object"}}, "`response_format`"),
        (CHAT, MESSAGES, {"functions": [{"name": "f"}]}, "`functions`"),
        (CHAT, MESSAGES, {"messages": [{"role": "tool", "content": "x"}]}, r"`messages\[0\]\.tool_call_id`"),
        (CHAT, MESSAGES, {"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "'custom'"),
        (
            CHAT,
            MESSAGES,
            {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x"}}]}]},
            "'input_audio'",
        ),
        (
            CHAT,
            MESSAGES,
            {
                "messages": [
                    {"role": "user", "content": [{"type": "file", "file": {"file_data": "data:text/csv;base64,AA=="}}]}
                ]
            },
            "`file`.*text/csv",
        ),
        (RESPONSES, CHAT, {"previous_response_id": "r"}, "`previous_response_id`.*whole conversation"),
        (RESPONSES, CHAT, {"conversation": "c"}, "`conversation`"),
        (RESPONSES, CHAT, {"background": True}, "`background`"),
        (RESPONSES, CHAT, {"prompt": {"id": "p"}}, "`prompt`"),
        (RESPONSES, CHAT, {"top_logprobs": 2}, "`top_logprobs`"),
        (RESPONSES, CHAT, {"tools": [{"type": "web_search"}]}, "'web_search'"),
        (RESPONSES, CHAT, {"input": [HI, {"type": "web_search_call"}]}, r"`input\[1\]`.*'web_search_call'"),
        (RESPONSES, MESSAGES, {"text": {"format": {"type": "json_object"}}}, r"`text\.format`"),
    ],
)
def test_what_would_change_the_meaning_is_refused_by_name(
    caller: Dialect, engine: Dialect, fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInputError, match=says) as caught:
        Exchange(caller, engine, encode(MINIMAL[caller] | fields), created=CREATED)
    assert caught.value.fix
