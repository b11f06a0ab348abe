"""One event, one line, in both forms; and what a line never tells."""

import json
import logging
import sys

import pytest

from headway.core.log_lines import LogFormat, formatter, json_line


def record(
    message: str, *arguments: object, name: str = "headway.gateway.engines", **extra: object
) -> logging.LogRecord:
    logger = logging.getLogger(name)
    made = logger.makeRecord(name, logging.WARNING, "f.py", 1, message, arguments, None, extra=extra)
    made.created = 1_790_000_000.25
    return made


def test_a_line_says_when_how_grave_what_and_of_whom() -> None:
    event = record(
        "replica %s is down: %s", "a", "refused", event="replica_down", replica="a", error="upstream_connect"
    )
    assert json.loads(formatter("json").format(event)) == {
        "time": "2026-09-21T14:13:20.250Z",
        "level": "warning",
        "event": "replica_down",
        "message": "replica a is down: refused",
        "replica": "a",
        "error": "upstream_connect",
    }


def test_without_a_word_of_its_own_an_event_is_called_by_where_it_comes_from() -> None:
    assert json.loads(formatter("json").format(record("stopped")))["event"] == "gateway.engines"
    assert json.loads(formatter("json").format(record("x", name="asyncio")))["event"] == "asyncio"


def test_an_exception_is_told_by_type_and_place_and_never_by_its_message() -> None:
    event = record("a span cannot be written")
    try:
        raise ValueError("the prompt said sk-secret")  # noqa: TRY301 - what is logged is a real exception
    except ValueError:
        event.exc_info = sys.exc_info()
    line = formatter("json").format(event)
    told = json.loads(line)
    assert told["error"] == "ValueError"
    assert told["where"][-1].endswith("in test_an_exception_is_told_by_type_and_place_and_never_by_its_message")
    assert "secret" not in line


@pytest.mark.parametrize("form", ["json", "text"])
def test_an_event_is_one_line(form: LogFormat) -> None:
    assert "\n" not in formatter(form).format(record("%s went down", "a b"))
    assert "\n" not in json_line(1.0, "info", "call", {"model": "a\nb"})
