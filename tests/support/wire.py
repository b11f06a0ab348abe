"""What tests of several dialects share: any JSON, streams that are cut anywhere, events."""

import itertools
import json
from typing import Any

from hypothesis import strategies as st

from headway.wire.sse import EventScanner

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)


def encode(value: Any) -> bytes:  # noqa: ANN401 - any JSON
    """JSON text."""
    return json.dumps(value).encode()


def stream(*events: dict[str, Any] | str) -> bytes:
    """Server-sent events; those with a type are named by it."""
    return b"".join([_event(event) for event in events])


def _event(event: dict[str, Any] | str) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def data_of(sent: bytes) -> list[bytes]:
    """The data of each event of a whole stream."""
    scanner = EventScanner()
    found = scanner.feed(sent)
    assert scanner.tail == b""
    return found


@st.composite
def cuts(draw: st.DrawFn, whole: bytes) -> list[bytes]:
    """``whole`` in pieces."""
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    return [whole[start:end] for start, end in itertools.pairwise([0, *places, len(whole)])]


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:  # noqa: ANN401 - any JSON
    """``value`` with something in it replaced by any JSON, or taken out."""
    whole: Any = json.loads(json.dumps(value))
    keys = _keys(whole)
    if not keys or draw(st.integers(0, 3)) == 0:
        return draw(JSON)
    key = draw(st.sampled_from(keys))
    if draw(st.integers(0, 5)) == 0:
        del whole[key]
    else:
        whole[key] = draw(damaged(whole[key]))
    return whole


def _keys(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON
    match value:
        case dict():
            return list(value)  # pyright: ignore[reportUnknownArgumentType] - JSON
        case list():
            return list(range(len(value)))  # pyright: ignore[reportUnknownArgumentType] - JSON
        case _:
            return []
