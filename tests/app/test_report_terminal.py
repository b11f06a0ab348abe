import io
import re

import pytest
from accounts import accounted
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from headway.app.report.layout import Page, console
from headway.app.report.tasks import TaskTable
from headway.app.report.terminal import render_task
from headway.core.money import MicroUsd
from headway.core.span import Span
from headway.core.spent import Spent, Sum
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.anatomy import Anatomy, dissect
from headway.trace.levers import Lever
from headway.trace.task_row import TaskRow

Levers = tuple[Lever, ...]
SECTIONS = ("WATERFALL", "FORMULA", "CRITICAL PATH", "TOKENS AND MONEY", "LEVERS", "NOT KNOWN")


def printed(page: Page, width: int = 100, *, colour: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=colour, color_system="truecolor" if colour else None).print(page)
    return out.getvalue()


def section(text: str, title: str) -> list[str]:
    """The lines of one section, without its title."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith(title))
    end = next((i for i in range(start + 1, len(lines)) if lines[i].strip().startswith(SECTIONS)), len(lines))
    return [line.strip() for line in lines[start + 1 : end] if line.strip()]


@pytest.mark.parametrize("width", [100, 80, 72])
def test_no_line_is_wider_than_the_terminal(anatomy: Anatomy, levers: Levers, width: int) -> None:
    text = printed(render_task(accounted(anatomy, levers), why=True), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    text = " ".join(text.split())
    for number in ("27.80 s", "72.8 %", "38.20", "10.42 s", "7,411", "57.8 %", "26.10 s", "12.85", "1.80"):
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d)", text), f"{number} was cut"


def test_a_wide_terminal_gets_the_same_calm_page(anatomy: Anatomy, levers: Levers) -> None:
    text = printed(render_task(accounted(anatomy, levers)), 240)
    assert max(cell_len(line.rstrip()) for line in text.splitlines()) <= 100


def test_the_sections_come_in_the_order_of_the_question(anatomy: Anatomy, levers: Levers) -> None:
    text = printed(render_task(accounted(anatomy, levers)))
    at = [text.index("38.20 s end to end"), *(text.index(title) for title in SECTIONS)]
    assert at == sorted(at)
    assert "HOW IT WAS MEASURED" not in text
    assert "HOW IT WAS MEASURED" in printed(render_task(accounted(anatomy, levers), why=True))


def test_the_printed_terms_add_up(anatomy: Anatomy, levers: Levers) -> None:
    lines = section(printed(render_task(accounted(anatomy, levers))), "FORMULA")
    assert lines[0] == "38.20 s = 0.66 hop + 0.67 queue + 6.15 prefill + 27.80 decode + 2.92 tools"
    rows = [re.findall(r"(?<![\w.-])\d+\.\d\d(?!\w)", line) for line in lines[2:6]]
    assert sum(round(float(row[-1]) * 100) for row in rows) == 3820
    total = re.findall(r"\d+\.\d\d", next(line for line in lines if line.startswith("E2E, ")))
    assert sum(round(float(term) * 100) for term in total[:-1]) == round(float(total[-1]) * 100) == 3820
    path = section(printed(render_task(accounted(anatomy, levers))), "CRITICAL PATH")
    seconds = [re.search(r"(\d+\.\d\d) s", line) for line in path]
    assert sum(round(float(found[1]) * 100) for found in seconds if found) == 3820
    shares = [re.search(r"(\d+\.\d) %", line) for line in path]
    assert sum(round(float(found[1]) * 10) for found in shares if found) == 1000


@pytest.mark.parametrize("width", [100, 80])
def test_no_head_or_foot_of_the_formula_is_cut(anatomy: Anatomy, width: int) -> None:
    slow = replace(anatomy, iterations=tuple(replace(it, model_unsplit=it.decode) for it in anatomy.iterations))
    table = section(printed(render_task(accounted(slow, ())), width), "FORMULA")
    heads = next(line for line in table if line.startswith("call"))
    assert heads.split()[:9] == ["call", "hop", "queue", "prefill", "decode", "unsplit", "tools", "total", "%"]
    assert next(line for line in table if "before" in line).startswith("before call 1  ")
    assert [line.split("  ")[0] for line in table[-3:-1]] == ["E2E, seconds", "% of E2E"]
    missing = [name for name in ("ms/token", "in", "out") if name not in heads.split()]
    assert table[-1] == f"No room for {', '.join(missing)} here: --json and --html have them."


def test_the_waterfall_tells_tree_time_path_and_failure(anatomy: Anatomy, levers: Levers) -> None:
    lines = section(printed(render_task(accounted(anatomy, levers))), "WATERFALL")
    rows = [line for line in lines if line.startswith(("●", "○"))]
    assert len(rows) == 9
    assert rows[0].startswith("● invoke_agent planner")
    assert rows[0].endswith("0.00  38.20")
    assert re.match(r"●   tool search +▚+ +8\.40   2\.50$", rows[2])
    assert re.match(r"○   ✗ tool calculator +▚+ +8\.40   0\.70   1\.80$", rows[3])
    assert re.match(r"○     chat judge +▓+ +12\.20   6\.80      ∞$", rows[6])
    assert "first output ▾" in lines[1]
    assert any("1 x tool_error" in line for line in lines)
    assert "░░ queue   ▒▒ prefill   ██ decode" in " ".join(lines)


def test_no_phase_is_told_by_its_colour_alone(anatomy: Anatomy, levers: Levers) -> None:
    coloured = printed(render_task(accounted(anatomy, levers)), colour=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == printed(render_task(accounted(anatomy, levers)))


def test_ascii_terminals_get_letters(anatomy: Anatomy, levers: Levers) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", errors="replace")
    Console(file=out, width=100).print(render_task(accounted(anatomy, levers)))
    out.flush()
    assert re.search(r"chat qwen2.5-0.5b-instruct +qpppddddd", raw.getvalue().decode("ascii"))


def test_what_is_unknown_is_said_and_never_0(anatomy: Anatomy) -> None:
    told = Sum(0, 0, 4)
    spent = Spent(input_tokens=told, output_tokens=told, tokens=told, cache_read=told, cost=told)
    bare = replace(anatomy, usage=Usage(), spent=spent, cached_share=None, task_ttft=None)
    lines = section(printed(render_task(accounted(bare, ()))), "TOKENS AND MONEY")
    assert re.match(r"tokens +unknown +unknown in, unknown out$", lines[0])
    assert re.match(r"from the cache +unknown", lines[1])
    assert re.match(r"cost +unknown$", lines[2])
    assert "None of the known changes would shorten this task noticeably." in printed(render_task(accounted(bare, ())))


def test_a_known_cost_is_printed_to_the_last_micro_dollar(anatomy: Anatomy) -> None:
    assert "$0.000412" in printed(
        render_task(accounted(replace(anatomy, spent=replace(anatomy.spent, cost=Sum(412, 4, 4)))))
    )


def test_levers_are_ranked_and_explained(anatomy: Anatomy, levers: Levers) -> None:
    lines = section(printed(render_task(accounted(anatomy, levers * 4))), "LEVERS")
    assert lines[0] == "1  one iteration fewer  saves 10.42 s (27.3 %), 2,711 tokens, cost unknown"
    assert re.match(r"how +give the result's format up front", lines[1])
    assert "2  the whole prefix from the cache  saves 4.10 s (10.7 %), tokens unknown, $0.000412" in lines
    assert lines[-1] == "2 more changes save less than the last of these."


def test_a_lever_that_saves_nothing_but_time_says_so(anatomy: Anatomy, levers: Levers) -> None:
    quick = replace(levers[0], name="no hop", tokens=0, cost=MicroUsd(0))
    assert "1  no hop  saves 10.42 s (27.3 %), same tokens and cost" in printed(
        render_task(accounted(anatomy, (quick,)))
    )


def test_a_step_around_the_critical_path_is_not_off_it(anatomy: Anatomy) -> None:
    idle = (replace(anatomy.bars[0], on_path=0.0), *anatomy.bars[1:])
    lines = section(printed(render_task(accounted(replace(anatomy, bars=idle), ()))), "WATERFALL")
    assert next(line for line in lines if "planner" in line).startswith("●")
    assert next(line for line in lines if "critic" in line).startswith("○"), "holds nothing that is on it"


def test_levers_that_hardly_save_are_counted_and_not_shown(anatomy: Anatomy, levers: Levers) -> None:
    hardly = replace(levers[0], name="no queue", seconds=0.19, share=0.005)
    text = printed(render_task(accounted(anatomy, (*levers, hardly))))
    assert "no queue" not in text
    assert "1 more change saves less than 1 %." in text


def test_a_task_that_names_its_session_is_the_first_of_it(anatomy: Anatomy) -> None:
    named = replace(anatomy, session=SessionId(anatomy.task))
    title = printed(render_task(accounted(named, ()))).splitlines()[1]
    assert title.split("   ")[:2] == [f"  task {anatomy.task}", "first of its session"]


def test_hostile_names_cannot_steer_the_terminal(anatomy: Anatomy, levers: Levers) -> None:
    hostile = "\x1b]0;owned\x07[bold red]x[/]\n\u202e" + "长" * 80
    first = anatomy.bars[0]
    span = Span(
        task=TaskId(hostile),
        id=SpanId("x"),
        parent=None,
        name=hostile,
        start=first.span.start,
        end=first.span.end,
        work=first.span.work,
    )
    terms = tuple(replace(term, model=hostile) for term in anatomy.iterations)
    odd = replace(
        anatomy,
        task=TaskId(hostile),
        bars=(replace(first, span=span), *anatomy.bars[1:]),
        iterations=terms,
        unknowns=(hostile,),
    )
    text = printed(render_task(accounted(odd, levers)))
    assert not set("\x1b\x07\u202e") & set(text)
    assert "[bold red]x[/]" in text
    assert max(cell_len(line) for line in text.splitlines()) <= 100


def test_a_long_task_is_folded_not_poured_out(long_spans: tuple[Span, ...], levers: Levers) -> None:
    text = printed(render_task(accounted(dissect(long_spans), levers)))
    lines = text.splitlines()
    assert len(lines) < 180
    assert max(cell_len(line) for line in lines) <= 100
    folded = re.findall(r"⋯ ([\d,]+) spans?", text)
    shown = [line for line in section(text, "WATERFALL") if line.startswith(("●", "○")) and "⋯" not in line]
    assert len(shown) + sum(int(number.replace(",", "")) for number in folded) == 20_000


def test_a_task_without_spans_is_a_page_too() -> None:
    assert "Nothing took any time." in printed(render_task(accounted(dissect(()))))


def test_a_pipe_gets_the_full_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert console().width == 100


def row(task: str, **changes: object) -> TaskRow:
    known = TaskRow(
        task=TaskId(task),
        session=None,
        started_at=1_800_000_000.0,
        ended_at=1_800_000_012.5,
        spans=3,
        calls=2,
        errors=0,
        tokens=Sum(1234, 2, 2),
        models=("m1", "m2"),
    )
    return replace(known, **changes)


def test_tasks_are_listed_one_to_a_line() -> None:
    out = io.StringIO()
    rows = [
        row("ab" * 16),
        row("nightly-" + "x" * 60, tokens=Sum(0, 0, 2), errors=2, failed=True, ended_at=None),
        row("\x1b[2J", models=("\x07" + "m" * 90,)),
    ]
    Console(file=out, width=100).print(TaskTable(rows))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert len(lines) == 4
    assert re.match(r"abababab +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +12\.50 s +2 +1,234 +ok +m1, m2$", lines[1])
    assert re.match(r"nightly-x+… +\d{4}-.* unknown +2 +unknown +2 errors +m1, m2$", lines[2])
    assert "\x1b" not in out.getvalue()
    assert max(map(cell_len, lines)) <= 100


# 56 columns are taken: when 19, took 7, calls 5, tokens 7, status 6, and six gaps of 2
@pytest.mark.parametrize(("width", "name", "models"), [(100, 20, 24), (80, 16, 8), (72, 16, 0)])
def test_long_ids_and_long_models_share_what_room_there_is(width: int, name: int, models: int) -> None:
    out = io.StringIO()
    Console(file=out, width=width).print(TaskTable([row("n" * 60, models=("m" * 60,), tokens=Sum(123_456, 2, 2))]))
    line = out.getvalue().splitlines()[1].rstrip()
    assert (line.index("…") + 1, line.count("m") + line.endswith("…")) == (name, models)


def test_no_tasks_at_all_is_said() -> None:
    out = io.StringIO()
    Console(file=out, width=100).print(TaskTable([]))
    assert out.getvalue() == "No task matches.\n"
