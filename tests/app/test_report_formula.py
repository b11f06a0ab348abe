from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tasks import call

from headway.app.report.figures import per_cent
from headway.app.report.formula import formula
from headway.app.report.headline import headline
from headway.core.span import HumanWait, ModelCall, Retrieval, Span, Step, ToolUse, Work
from headway.core.task import SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.account import recorded as account_of_recorded
from headway.trace.anatomy import Anatomy, Iteration, dissect
from headway.trace.path import Phase

ANY = Usage()


def iteration(seconds: float) -> Iteration:
    return Iteration(
        span=SpanId("s"),
        model="m",
        hop=seconds,
        queue=0.0,
        prefill=seconds,
        decode=seconds,
        model_unsplit=0.0,
        tools=0.0,
        ttft=None,
        tpot=None,
        usage=ANY,
    )


def test_the_table_of_the_task_worked_out_by_hand(anatomy: Anatomy) -> None:
    table = formula(anatomy, limit=10)
    assert table.decimals == 2
    assert table.e2e == 3820
    assert table.used == ("hop", "queue", "prefill", "decode", "tools")
    assert table.totals == {
        "hop": 66,
        "retry": 0,
        "queue": 67,
        "prefill": 615,
        "decode": 2780,
        "unsplit": 0,
        "tools": 292,
    }
    assert [(row.label, row.model, row.total, row.share) for row in table.rows] == [
        ("", "before call 1", 21, 6),
        ("1", "qwen2.5-0.5b-instruct", 1074, 281),
        ("2", "qwen2.5-0.5b-instruct", 1425, 373),
        ("3", "qwen2.5-0.5b-instruct", 1300, 340),
    ]
    assert table.rows[1].terms == {
        "hop": 7, "retry": 0, "queue": 67, "prefill": 300, "decode": 450, "unsplit": 0, "tools": 250,
    }  # fmt: skip
    assert list(table.phases.items()) == [
        (Phase.DECODE, 2780),
        (Phase.PREFILL, 615),
        (Phase.TOOL, 250),
        (Phase.QUEUE, 67),
        (Phase.HOP, 66),
        (Phase.RETRIEVAL, 42),
    ]


def test_shares_of_a_task_of_a_few_milliseconds_are_those_of_its_headline_and_findings() -> None:
    # 5.4 ms: .4 to send, 1.4 to read, 3.6 to write. In whole milliseconds that would be 0, 1 and 4 of 5: 0, 20 and 80 %
    account = account_of_recorded([call("a", 0, 0.0054, marks=(0.0004, 0.0018, 0.0054))])
    table = formula(account.anatomy, limit=10)
    assert (table.decimals, table.e2e) == (5, 540)
    assert [table.shares[name] for name in ("hop", "prefill", "decode")] == [74, 259, 667]
    assert [row.share for row in table.rows] == [1000]
    assert table.phase_shares == {Phase.DECODE: 667, Phase.PREFILL: 259, Phase.HOP: 74}
    assert "67 % of it decode" in headline(account)
    assert account.findings[0].title.startswith("Writing takes 67 % of the ")
    lever = next(lever for lever in account.levers if lever.key == "half-the-output")
    assert per_cent(lever.share) == "33.3 %"


def test_awkward_thirds_still_add_up(anatomy: Anatomy) -> None:
    third = 1 / 3
    odd = replace(
        anatomy,
        e2e=9 * third,
        lead_in=0.0,
        path=(),
        iterations=(iteration(third),) * 3,
        phases={Phase.HOP: 1.0, Phase.PREFILL: 1.0, Phase.DECODE: 1.0},
    )
    table = formula(odd, limit=10)
    assert table.e2e == 3000
    assert list(table.totals.values()) == [1000, 0, 0, 1000, 1000, 0, 0]
    assert [list(row.terms.values()) for row in table.rows] == [
        [334, 0, 0, 334, 334, 0, 0],
        [333, 0, 0, 333, 333, 0, 0],
        [333, 0, 0, 333, 333, 0, 0],
    ]
    assert [row.share for row in table.rows] == [334, 333, 333]


def test_many_iterations_share_rows_and_the_sums_stay(anatomy: Anatomy) -> None:
    seconds = [1.0] * 50
    seconds[10], seconds[30] = 5.0, 7.0
    long = replace(
        anatomy,
        e2e=180.0,
        lead_in=0.0,
        path=(),
        iterations=tuple(map(iteration, seconds)),
        phases={Phase.HOP: 60.0, Phase.PREFILL: 60.0, Phase.DECODE: 60.0},
    )
    table = formula(long, limit=4)
    assert [(row.label, row.model, row.total) for row in table.rows] == [
        ("1-10", "10 calls", 300),
        ("11", "m", 150),
        ("12-30", "19 calls", 570),
        ("31", "m", 210),
        ("32-50", "19 calls", 570),
    ]
    assert sum(row.total for row in table.rows) == table.e2e == 1800


def test_a_task_of_no_length_has_a_formula(anatomy: Anatomy) -> None:
    table = formula(dissect(()), limit=10)
    assert (table.e2e, table.rows, table.phases) == (0, (), {})
    assert table.used == ("hop",)
    assert formula(replace(anatomy, iterations=(), phases={}, lead_in=0.0, e2e=0.0), 5).e2e == 0


@st.composite
def recorded(draw: st.DrawFn) -> tuple[Span, ...]:
    """Spans of any kind in any order, some inside others, some overlapping, with whatever marks."""
    ticks = st.integers(0, 4000).map(lambda tick: tick / 7)
    spans: list[Span] = []
    for number in range(draw(st.integers(1, 10))):
        start = draw(ticks)
        length, first = draw(ticks), draw(ticks)
        calls = ModelCall(model="m", sent=start, first_token=start + min(first, length), last_token=start + length)
        kinds: list[Work] = [calls, ModelCall(model="m"), ToolUse(name="t"), Retrieval(), Step(), HumanWait()]
        parent = draw(st.none() | st.integers(0, number - 1)) if number else None
        spans.append(
            Span(
                task=TaskId("t"),
                id=SpanId(str(number)),
                parent=None if parent is None else SpanId(str(parent)),
                name="n",
                start=start,
                end=start + length,
                work=draw(st.sampled_from(kinds)),
            )
        )
    return tuple(spans)


@settings(deadline=None)
@given(spans=recorded(), limit=st.integers(2, 12))
def test_whatever_was_recorded_the_printed_terms_sum_to_e2e(spans: tuple[Span, ...], limit: int) -> None:
    anatomy = dissect(spans)
    table = formula(anatomy, limit)
    assert abs(table.e2e - anatomy.e2e * 10**table.decimals) <= 0.5 + 1e-6
    assert sum(table.totals.values()) == sum(table.phases.values()) == sum(row.total for row in table.rows) == table.e2e
    assert all(sum(row.terms[column] for row in table.rows) == total for column, total in table.totals.items())
    if table.e2e:
        assert sum(table.phase_shares.values()) == sum(table.shares.values()) == 1000
