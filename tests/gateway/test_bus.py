"""News within a process, and on to others."""

import logging

import pytest

from headway.gateway.bus import Bus


def test_news_is_heard_here_by_those_who_listen_to_its_topic() -> None:
    bus, heard = Bus(), list[bytes]()
    bus.on("a", heard.append)
    bus.on("b", lambda _: heard.append(b"never"))
    bus.publish("a", b"1")
    bus.publish("c", b"2")
    assert heard == [b"1"]


def test_news_goes_to_other_workers_once_and_theirs_is_not_sent_back() -> None:
    mine, theirs = Bus(), Bus()
    heard = list[tuple[str, bytes]]()
    mine.join(theirs.hear)
    theirs.join(mine.hear)
    mine.on("a", lambda payload: heard.append(("mine", payload)))
    theirs.on("a", lambda payload: heard.append(("theirs", payload)))
    mine.publish("a", b"1")
    assert heard == [("mine", b"1"), ("theirs", b"1")]


def test_one_who_cannot_bear_the_news_does_not_keep_it_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = Bus(), list[bytes]()

    def broken(_: bytes) -> None:
        raise ValueError

    bus.on("a", broken)
    bus.on("a", heard.append)
    with caplog.at_level(logging.ERROR):
        bus.publish("a", b"1")
    assert heard == [b"1"]
    assert "news of a" in caplog.text
