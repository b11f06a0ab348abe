"""Bodies that would take seconds to read are told apart by counting, and nothing of a usual size is."""

import json

import pytest

from headway.wire.crowded import MOST, crowded
from headway.wire.responses.request import read_request


def messages(count: int, text: str = "a") -> bytes:
    return json.dumps([{"role": "user", "content": text}] * count, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("said", "so"),
    [
        (messages(MOST), False),
        (messages(MOST + 1), True),
        (messages(1_000, "x" * 10_000), False),  # long, not many
        (b"[" + b"{" * (MOST + 1), False),  # too short to be many
        (messages(1, "{" * 600_000), True),  # code of this kind is given up, too
    ],
)
def test_many_objects_are_too_many(said: bytes, so: bool) -> None:
    assert crowded(said) is so


def test_input_of_too_many_items_is_no_messages() -> None:
    items = messages(MOST + 1)
    request = read_request(b'{"model":"m","input":%b}' % items)
    assert bytes(request.messages) == items
