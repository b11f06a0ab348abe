import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.app.report import figures
from headway.core.money import MicroUsd
from headway.core.span import Span, Step, ToolUse
from headway.core.spent import Sum
from headway.core.task import SpanId, TaskId

SECONDS = st.floats(min_value=0.0, max_value=1e6)
A, B = TaskId("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), TaskId("aaaaaaaaaabbbbbbbbbbbbbbbbbbbbbb")


def test_the_largest_remainders_are_rounded_up() -> None:
    assert figures.apportion([1.5, 2.25, 3.25], 7) == [2, 2, 3]
    assert figures.apportion([0.4, 0.4, 0.2, 0.0], 1) == [1, 0, 0, 0]
    assert figures.apportion([0.0, 0.0], 0) == [0, 0]
    assert figures.apportion([], 0) == []


def test_a_total_that_the_values_do_not_reach_is_still_reached() -> None:
    assert figures.apportion([1.0, 2.0], 6) == [3, 3]
    assert figures.apportion([3.0, 2.0], 3) == [1, 2]
    with pytest.raises(ValueError, match="1 cannot be shared among 2 values that are all 0"):
        figures.apportion([0.0, 0.0], 1)


@settings(deadline=None)
@given(values=st.lists(SECONDS, max_size=30))
def test_rounded_parts_sum_to_the_rounded_whole(values: list[float]) -> None:
    total = round(sum(values))
    units = figures.apportion(values, total)
    assert sum(units) == total
    assert all(abs(unit - value) < 1 + 1e-6 for unit, value in zip(units, values, strict=True))
    assert all(unit == 0 for unit, value in zip(units, values, strict=True) if value == 0)


def test_precision_follows_the_length() -> None:
    assert [figures.decimals_for(e2e) for e2e in (0.0, 9.99, 10.0, 99.9, 100.0, 5000.0)] == [3, 3, 2, 2, 1, 1]
    assert [figures.decimals_for(e2e) for e2e in (0.1, 0.0999, 0.0054, 0.00054)] == [3, 4, 5, 6], "so short are few"


def test_figures_read_as_people_write_them() -> None:
    assert figures.fixed(5230, 2) == "52.30"
    assert figures.fixed(1_234_567, 1) == "123,456.7"
    assert figures.seconds(1234.5, 1) == "1,234.5 s"
    assert figures.per_cent(0.57784) == "57.8 %"
    assert [figures.milliseconds(value) for value in (0.0123, 0.00123, 1.234)] == ["12.3", "1.23", "1,234"]
    assert [figures.plural(number, "call") for number in (0, 1, 1200)] == ["0 calls", "1 call", "1,200 calls"]


def test_money_never_rounds_to_nothing() -> None:
    amounts = (0, 1, 412, 10_000, 123_456, 1_000_000, 1_234_567_890)
    assert [figures.money(MicroUsd(amount)) for amount in amounts] == [
        "$0",
        "$0.000001",
        "$0.000412",
        "$0.0100",
        "$0.1235",
        "$1.00",
        "$1,234.57",
    ]


def test_half_of_the_last_digit_is_rounded_up() -> None:
    assert figures.money(MicroUsd(10_050)) == "$0.0101"
    assert figures.money(MicroUsd(1_005_000)) == "$1.01"
    assert figures.money(MicroUsd(-412)) == "-$0.000412"
    assert [figures.dollars(value) for value in (0.0, 0.2, 0.5, 2.5, 3.4)] == [
        *("$0", "< $0.000001", "$0.000001", "$0.000003", "$0.000003")
    ]


def test_means_of_counts_keep_a_decimal_while_they_are_small() -> None:
    means = (0.0, 0.04, 0.05, 3.0, 3.4, 99.96, 1234.5)
    assert [figures.amount(mean) for mean in means] == ["0", "< 0.1", "0.1", "3", "3.4", "100.0", "1,234"]


def test_seconds_that_are_not_0_do_not_read_so() -> None:
    assert [figures.seconds(value, 2) for value in (0.0, 0.004, 0.005, 0.0051)] == [
        *("0.00 s", "< 0.01 s", "0.01 s", "0.01 s")
    ]
    assert figures.seconds(0.0004, 3) == "< 0.001 s"


def test_what_is_unknown_is_never_0() -> None:
    unknown = [figures.seconds(None, 2), figures.per_cent(None), figures.milliseconds(None)]
    assert [*unknown, figures.count(None), figures.money(None)] == ["unknown"] * 5


def test_a_moment_without_a_date_says_how_far_into_the_record_it_is() -> None:
    assert figures.moment(0.0) == "date not recorded"
    assert figures.moment(1234.4) == "1,234 s into its record"
    assert figures.moment(1_790_000_000.0).startswith("2026-09-2")


def test_a_lower_bound_says_how_much_of_it_is_known() -> None:
    assert figures.told(Sum(5, 1, 3)) == "1 of 3 calls reports it"
    assert figures.told(Sum(5, 0, 3)) == "no call reports all of it"  # yet a part of it is known
    assert not figures.told(Sum(5, 3, 3))
    assert not figures.told(Sum(0, 0, 3))


def test_a_pace_that_is_an_upper_bound_is_marked() -> None:
    assert figures.pace(0.01234, to_end=False) == "12.3"
    assert figures.pace(0.01234, to_end=True) == "≤ 12.3"
    assert figures.pace(None, to_end=False) == "unknown"


def test_nothing_that_steers_a_terminal_is_printable() -> None:
    assert figures.printable("plain, ünïcode 漢字 ok") == "plain, ünïcode 漢字 ok"
    assert figures.printable("\x1b[31mred\x07\n\u202egnol") == "\ufffd[31mred\ufffd\ufffd\ufffdgnol"


def test_an_id_is_shortened_as_far_as_it_stays_unique() -> None:
    assert figures.short_id(A, [A]) == "aaaaaaaa"
    assert figures.short_id(A, [A, B]) == "aaaaaaaaaaa"
    assert figures.short_id(TaskId("nightly-build-2026"), []) == "nightly-build-2026"


def test_rows_are_called_by_what_matters() -> None:
    tool = Span(
        task=A, id=SpanId("1"), parent=None, name="execute_tool find", start=0.0, end=None, work=ToolUse(name="find\n")
    )
    step = Span(task=A, id=SpanId("2"), parent=None, name="invoke_agent x", start=0.0, end=None, work=Step())
    root = Span(task=A, id=SpanId("3"), parent=None, name=f"task {A}", start=0.0, end=None, work=Step())
    assert [figures.label(span) for span in (tool, step, root)] == ["tool find\ufffd", "invoke_agent x", "task"]
