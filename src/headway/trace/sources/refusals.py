"""Why a document is no trace that can be explained: one sentence that says what it is, or what is missing."""

import re
from typing import Final

import msgspec

from headway.trace.sources.document import Sample

_LOOKED_AT: Final = 32 * 1024
"""Bytes of a text by which its kind is told."""
_SHOWN: Final = 8
_FORMS: Final = "traces are read from JSON or OTLP protobuf"
_NEITHER: Final = "It is neither JSON nor OTLP protobuf, the forms in which traces are exported."
_REQUESTS: Final = (
    "It lists single requests by arrival and length: what ties them to a session or a task is missing, and how long"
    " they took."
)
_TYPED: Final = "It lists what was typed into an agent: the answers are missing, and so are calls, tools and tokens."
_JSON: Final = (
    ({"timestamp", "input_length", "output_length"}, _REQUESTS),
    ({"arrival_time_ns", "input_toks", "output_toks"}, _REQUESTS),
    (
        {"request_id", "queued_ts", "first_token_ts", "last_token_ts"},
        "It holds single requests of a load test, each timed by its engine, but nothing that ties them to a task.",
    ),
    (
        {"engine_kwargs", "num_requests"},
        "It describes a load test of an engine: what was run, not the requests, and no task.",
    ),
    ({"num_nodes", "nodes"}, "It is the configuration of a cluster, not a record of anything that was run."),
    (
        {"benchmark", "task_id", "expected_score"},
        "It says what score is expected of a benchmark's task, not what was done for it.",
    ),
    (
        {"success", "score", "steps", "details"},
        "It holds the result of a run, with sums of its steps and costs: the steps themselves are missing.",
    ),
    (
        {"task", "context", "actions"},
        "It describes a task and the actions that were allowed for it: what was done is missing.",
    ),
    (
        {"messages_display"},
        "Its conversations are flattened to one text each: what tools were called with is missing, and all times.",
    ),
    ({"agentType"}, "It says what kind of sub-agent a session had: what the agent did is in a file of its own."),
    ({"display", "pastedContents"}, _TYPED),  # Claude Code's history
    ({"session_id", "ts", "text"}, _TYPED),  # Codex's
    ({"sessionId", "messageId", "message"}, _TYPED),  # Gemini CLI's
)
"""What JSON of no trace is told by: keys that all must be there, and what is said of it."""
_COLUMNS: Final = (
    ({"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, _REQUESTS),
    ({"running", "waiting"}, "It is a time series of an engine's load: the requests themselves are missing."),
    (
        {"ttft_ms", "tpot_ms"},
        "It is a table of times by length and batch for planning: no request was recorded in it.",
    ),
)
_MAGIC: Final = (
    (b"PAR1", "It is a Parquet file"),
    (b"SQLite format 3\x00", "It is an SQLite database"),
    (b"\x28\xb5\x2f\xfd", "It is packed with Zstandard"),
    (b"BZh", "It is packed with bzip2"),
    (b"\xfd7zXZ", "It is packed with xz"),
    (b"\x89PNG", "It is a picture"),
    (b"%PDF", "It is a PDF"),
)
_TAR: Final = slice(257, 262)
_LICENCES: Final = ("Apache License", "Creative Commons", "Permission is hereby granted", "GNU GENERAL PUBLIC LICENSE")
_NOTICE: Final = "This product includes software developed"
_SUMMARY: Final = ("TTFT", "TPOT", "Mean", "P99")
_NAME: Final = re.compile(r"[\w ./%:-]{0,60}")
"""What a column may be called."""
_MARKS: Final = ("#", "|", "- ", "* ", "```", "> ")


def why_not(sample: Sample) -> str:
    """The sentence for a document that no importer claims."""
    if sample.shape == "binary":
        return _of_bytes(sample.head)
    objects = list(sample.objects())
    if not sample.values and sample.deep:
        return "Its JSON is nested too deeply to be read, far more so than in any known trace format."
    if not sample.values:
        return "It begins like JSON but cannot be read as such: it is cut off or damaged."
    keys = {key for value in objects for key in value}
    if not keys:
        return "It holds no JSON object, so there is nothing in it that could be a span, an event or a message."
    first = sample.first().keys()
    for known, why in _JSON:
        if known <= first:
            return why
    named = ", ".join(sorted(keys)[:_SHOWN])
    return f"Its JSON has the keys {named}, which no known trace format has."


def _of_bytes(head: bytes) -> str:
    if head[_TAR] == b"ustar":
        return "It is a tar archive, which is not opened here: unpack it and name the folder."
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return f"{what}: {_FORMS}, which gzip or zip may pack."
    try:
        text = head[: _LOOKED_AT + 3].decode()
    except UnicodeDecodeError as error:
        if error.start < min(len(head), _LOOKED_AT):  # further on it is a character that was cut in two
            return _NEITHER
        text = head[: error.start].decode()
    return _of_text(text)


def _of_text(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    columns = _columns(lines)
    held = _scalar(text)
    if not lines or "\0" in text:
        why = _NEITHER
    elif held is not None:
        why = (
            f"It is JSON, but no more than {held}: there is nothing in it that could be a span, an event or a message."
        )
    elif _NOTICE in text:
        why = "It is a legal notice, not a record of anything."
    elif any(licence in text for licence in _LICENCES):
        why = "It is the text of a licence, not a record of anything."
    elif columns:
        why = _of_table(columns)
    elif all(word in text for word in _SUMMARY):
        why = "It is the summary of a load test: the requests that its means and percentiles are of are missing."
    elif any(line.startswith(_MARKS) for line in lines):
        why = "It is a text for people to read, not a record."
    else:
        why = f"It is plain text: {_FORMS}."
    return why


def _scalar(text: str) -> str | None:
    """What JSON holds that is neither an object nor a list; none where the text is no such JSON."""
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if value is None:
        return "null"
    return "true or false" if isinstance(value, bool) else "a text" if isinstance(value, str) else "a number"


def _columns(lines: list[str]) -> list[str]:
    """The names in the head of a table; none where it is no table."""
    names = [name.strip() for name in lines[0].split(",")] if lines else []
    even = len({line.count(",") for line in lines[:3]}) == 1 and len(lines) > 1
    return names if even and len(names) > 1 and all(map(_NAME.fullmatch, names)) else []


def _of_table(columns: list[str]) -> str:
    for known, why in _COLUMNS:
        if known <= set(columns):
            return why
    if any(column.startswith("time_stats.") for column in columns):
        return "It is a profile of an engine's operations by size: no request was recorded in it."
    return f"It is a table with the columns {', '.join(columns[:_SHOWN])}: {_FORMS}."
