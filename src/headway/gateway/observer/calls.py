"""The log of calls: one line for each call that the gateway served or refused; never what was asked or answered."""

from datetime import datetime
from typing import Final

from headway.core.log_lines import LogFormat, json_line
from headway.core.span import ModelCall, Span

_DIGITS: Final = 6
"""Decimals of seconds: microseconds."""


def is_call(span: Span) -> bool:
    """Whether the gateway served or refused it; calls that agents report of themselves have no place in this log."""
    work = span.work
    return isinstance(work, ModelCall) and (work.route is not None or work.identity is not None or work.attempts == 0)


def call_line(span: Span, call: ModelCall, form: LogFormat) -> str:
    """The line of one call, without its end; what is unknown is left out."""
    end = span.start if span.end is None else span.end
    first = call.first_token
    said: dict[str, object] = {
        "task": span.task,
        "span": span.id,
        "session": span.session,
        "tenant": span.tenant,
        "model": call.model,
        "replica": call.replica,
        "status": "ok" if span.error is None else "error",
        "error": span.error,
        "seconds": round(end - span.start, _DIGITS),
        "ttft": None if first is None or call.sent is None else round(first - call.sent, _DIGITS),
        "queued": call.queued or None,
        "stream": call.stream,
        "attempts": call.attempts,
        "cache": None if call.given_again is None else call.given_again.source,
        "input_tokens": call.usage.input_tokens,
        "cached_tokens": call.usage.cache_read,
        "output_tokens": call.usage.output_tokens,
        "finish": call.finish_reason,
    }
    known = {name: value for name, value in said.items() if value is not None}
    if form == "json":
        return json_line(end, "info" if span.error is None else "warning", "call", known)
    when = datetime.fromtimestamp(end).astimezone().strftime("%H:%M:%S")
    return f"{when}  call     " + " ".join(f"{name}={_plain(value)}" for name, value in known.items())


def _plain(value: object) -> str:
    """A value without blanks and breaks: names may come from callers."""
    if isinstance(value, str):
        return value if value.isprintable() and " " not in value else repr(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
