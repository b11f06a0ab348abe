from datetime import UTC, datetime
from itertools import pairwise

import pytest
from chunks import CHARACTERS, MEASURES, check_chunks, parts_of
from hypothesis import given
from hypothesis import strategies as st
from unhurried import UNHURRIED

from headway.core.errors import BadInputError
from headway.runtime.chunking import ESTIMATE, Document, Measure, Stamps, by_time

HOUR = 1_796_040_000
"""2026-11-30 12:00:00 UTC, a multiple of 60."""


def at(second: int) -> str:
    return datetime.fromtimestamp(HOUR + second, UTC).strftime("%Y-%m-%d %H:%M:%S")


def log(path: str, *lines: tuple[int | None, str]) -> Document:
    return Document(path, "".join(f"{'' if second is None else f'{at(second)} '}{text}\n" for second, text in lines))


LOGS = st.lists(
    st.lists(
        st.tuples(st.none() | st.integers(0, 300), st.sampled_from(["ok", "it fails " * 20, "  at x", "y" * 150, ""]))
    ),
    max_size=4,
).map(lambda logs: [log(f"{number}.log", *lines) for number, lines in enumerate(logs)])


@UNHURRIED
@given(LOGS, st.sampled_from([1.0, 7.5, 60.0, 1000.0]), st.integers(80, 600), MEASURES)
def test_nothing_is_lost_and_windows_are_in_order(
    logs: list[Document], window: float, budget: int, measure: Measure
) -> None:
    chunks = by_time(logs, window, budget, measure=measure)
    for document in logs:  # clocks may jump, so lines of a log need not be in the order of time
        parts = sorted(parts_of(chunks, document.path), key=lambda part: part.start)
        assert "".join(part.text for part in parts) == document.text
        assert all(one.end == other.start for one, other in pairwise(parts))
    ends = [float("inf") if chunk.window is None else chunk.window[0] for chunk in chunks]
    assert ends == sorted(ends)
    for chunk in chunks:
        assert chunk.tokens == measure.count(chunk.text) <= budget
        for part in chunk.parts:
            times = [time for line in part.text.splitlines() if (time := Stamps()(line)) is not None]
            if chunk.window is not None:
                assert all(chunk.window[0] <= time < chunk.window[1] for time in times)


@UNHURRIED
@given(st.lists(st.integers(0, 300)), st.integers(80, 600))
def test_a_log_in_order_stays_in_order(seconds: list[int], budget: int) -> None:
    logs = [log("a.log", *((second, f"event {n}") for n, second in enumerate(sorted(seconds))))]
    check_chunks(by_time(logs, 60, budget), logs, budget, ESTIMATE)


def test_logs_of_one_window_are_side_by_side() -> None:
    logs = [
        log("web.log", (5, "GET /"), (59, "500"), (61, "GET /")),
        log("db.log", (2, "slow"), (58, "dead"), (None, "  stack"), (121, "up")),
    ]
    chunks = by_time(logs, 60, 1000)
    assert [chunk.window for chunk in chunks] == [(HOUR, HOUR + 60), (HOUR + 60, HOUR + 120), (HOUR + 120, HOUR + 180)]
    assert chunks[0].text == (
        f"=== db.log, lines 1 to 3 ===\n{at(2)} slow\n{at(58)} dead\n  stack\n"
        f"=== web.log, lines 1 to 2 ===\n{at(5)} GET /\n{at(59)} 500\n"
    )
    assert [str(chunk.parts[0].origin) for chunk in chunks[1:]] == ["web.log, line 3", "db.log, line 4"]


def test_a_window_that_does_not_fit_is_several_chunks_in_the_order_of_time() -> None:
    logs = [log("a.log", (0, "a0"), (2, "a2")), log("b.log", (1, "b1"), (3, "b3"))]
    # Two records of two logs: two headers of 23 characters and two lines of 23.
    chunks = by_time(logs, 60, 92, measure=CHARACTERS)
    assert [[part.text[20:22] for part in chunk.parts] for chunk in chunks] == [["a0", "b1"], ["a2", "b3"]]
    assert {chunk.window for chunk in chunks} == {(HOUR, HOUR + 60)}


def test_what_has_no_time_is_kept() -> None:
    logs = [log("a.log", (None, "banner"), (5, "go")), log("b.log", (None, "no times"), (None, "at all"))]
    first, last = by_time(logs, 60, 1000)
    assert first.parts[0].text == f"banner\n{at(5)} go\n"
    assert (last.window, last.parts[0].text) == (None, "no times\nat all\n")


def test_a_record_that_does_not_fit_is_cut() -> None:
    logs = [log("a.log", (0, "x" * 200))]
    chunks = by_time(logs, 60, 100, measure=CHARACTERS)
    check_chunks(chunks, logs, 100, CHARACTERS)
    # The header and a line end take 23 characters; the time is a word, and 200 are 77 + 77 + 46.
    assert [len(chunk.parts[0].text) for chunk in chunks] == [20, 77, 77, 47]


def test_lines_of_a_clock_that_was_set_back_are_in_their_windows() -> None:
    logs = [log("a.log", (70, "late"), (5, "early"), (71, "late again"))]
    early, late = by_time(logs, 60, 1000)
    assert early.parts[0].text == f"{at(5)} early\n"
    assert [part.text for part in late.parts] == [f"{at(70)} late\n", f"{at(71)} late again\n"]


def test_a_caller_may_read_times_otherwise() -> None:
    chunks = by_time([Document("t", "7 a\n70 b\n")], 60, 100, stamp=lambda line: float(line.split()[0]))
    assert [chunk.window for chunk in chunks] == [(0, 60), (60, 120)]


def test_a_time_without_a_year_says_where_it_is() -> None:
    with pytest.raises(BadInputError, match=r"syslog, line 2: The time in 'Nov 30 12:00:01' names no year"):
        by_time([Document("syslog", "boot\nNov 30 12:00:01 host x\n")], 60, 100)


@pytest.mark.parametrize("window", [0, -1.0, float("nan"), float("inf")])
def test_a_window_that_is_none_is_refused(window: float) -> None:
    with pytest.raises(BadInputError, match="no stretch of time"):
        by_time([], window, 100)
