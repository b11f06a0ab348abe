import re

from accounts import accounted
from msgspec.structs import replace
from pages import EVIL, Page

from headway.app.report.html import html_task
from headway.core.money import MicroUsd
from headway.core.span import ErrorType, ModelCall, Receipt, Span
from headway.core.task import SessionId, SpanId, TaskId
from headway.trace.anatomy import Anatomy, dissect
from headway.trace.findings import Finding
from headway.trace.levers import Lever
from headway.trace.path import Phase, Segment
from headway.trace.sources.intake import Refused
from headway.trace.sources.skips import Skip
from headway.trace.sources.verdict import judge
from headway.trace.waterfall import Bar
from headway.trace.whatif import Outcome

Levers = tuple[Lever, ...]


def evil(anatomy: Anatomy) -> Anatomy:
    """Every string that a stranger can choose, hostile."""
    route = Receipt(policy=EVIL, winner=EVIL, reason=EVIL)
    span = Span(
        task=TaskId(EVIL),
        id=SpanId(EVIL),
        parent=None,
        name=EVIL,
        start=0.0,
        end=1.0,
        work=ModelCall(model=EVIL, replica=EVIL, route=route, provider=EVIL),
        error=ErrorType(EVIL),
    )
    bar = Bar(
        span=span,
        depth=0,
        start=0.0,
        end=1.0,
        pieces=(Segment(span.id, Phase.MODEL, 0.0, 1.0),),
        on_path=1.0,
        slack=0.0,
    )
    return replace(
        anatomy,
        task=TaskId(EVIL),
        session=SessionId(EVIL),
        bars=(bar,),
        iterations=tuple(replace(it, model=EVIL) for it in anatomy.iterations),
        unknowns=(EVIL,),
    )


def test_the_page_holds_everything_the_terminal_shows(anatomy: Anatomy, levers: Levers) -> None:
    page = Page(html_task(accounted(anatomy, levers)))
    text = " ".join(page.text.split())
    assert "38.20 s end to end, 73 % of it decode" in text
    assert "38.20 s = 0.66 hop + 0.67 queue + 6.15 prefill + 27.80 decode + 2.92 tools" in text
    for expected in (
        "one iteration fewer",
        "saves 10.42 s (27.3 %), 2,711 tokens, cost unknown",
        "57.8 %",
        "$0.000412",
    ):
        assert expected in text
    assert "has no public price" in text
    assert len(page.all("details")) == 9


def test_what_is_wrong_and_what_to_change_come_before_the_details(anatomy: Anatomy, levers: Levers) -> None:
    page = html_task(accounted(anatomy, levers))
    places = [
        page.index(f'<h2 id="{name}">') for name in ("findings", "levers", "waterfall", "formula", "path", "unknown")
    ]
    assert places == sorted(places)


def test_nothing_is_fetched_and_nothing_runs(anatomy: Anatomy, levers: Levers) -> None:
    html = html_task(accounted(anatomy, levers))
    page = Page(html)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "base", "form"}
    assert not re.search(r"https?:|@import|@font-face|\bsrc=", html)
    places = {attributes.get("id") for _, attributes in page.elements}
    assert all((a["href"] or "")[1:] in places for a in page.all("a")), "links lead to places in the page alone"
    assert all((a["href"] or "").startswith("#") for a in page.all("a"))
    assert set(re.findall(r"url\(([^)]*)\)", html)) <= {f"#{phase.value}" for phase in Phase}
    assert page.all("meta", content="default-src 'none'; style-src 'unsafe-inline'")


def test_everything_that_a_stranger_can_name_is_escaped(anatomy: Anatomy, levers: Levers) -> None:
    hostile = tuple(replace(lever, name=EVIL, how=EVIL, rule=EVIL, assumes=EVIL) for lever in levers)
    html = html_task(accounted(evil(anatomy), hostile))
    page = Page(html)
    assert "<script" not in html
    assert "<img" not in html
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert page.text.count("{{ 7*7 }}") > 8, "shown as it is, neither dropped nor evaluated"


def test_control_and_direction_characters_do_not_reach_the_page(anatomy: Anatomy) -> None:
    hidden = replace(anatomy, task=TaskId("a\x00b\u202ec"), unknowns=("x\x1by",))
    html = html_task(accounted(hidden, ()))
    assert not set("\x00\x1b\u202e") & set(html)


def test_every_row_is_spoken_and_can_be_reached_by_keyboard(anatomy: Anatomy, levers: Levers) -> None:
    page = Page(html_task(accounted(anatomy, levers)))
    spoken = [attributes["aria-label"] for attributes in page.all("summary")]
    assert spoken[3] == "tool calculator: starts at 8.40 s, takes 0.70 s, off the critical path, failed: tool_error"
    strip = page.all("svg", role="img")[0]["aria-label"]
    assert strip is not None
    assert strip.startswith("The critical path by phase: decode 27.80 seconds, prefill 6.15 seconds")
    assert page.all("html", lang="en")
    assert "Headway: task 3f2a9c1e" in page.text


def test_numbers_say_on_hover_how_they_were_measured(anatomy: Anatomy, levers: Levers) -> None:
    page = Page(html_task(accounted(anatomy, levers)))
    numbers = [a for a in page.all("td") if "text" not in (a.get("class") or "") and "colspan" not in a]
    with_reason = [a for a in numbers if a.get("title")]
    assert len(with_reason) > 40
    cards = [a for a in page.all("div") if a.get("title")]
    assert len(cards) == 7
    assert page.text.count("from the first token received to the last") >= 4, "bars carry titles"


def test_the_engines_pace_is_said_to_be_derived(anatomy: Anatomy) -> None:
    first, *others = anatomy.iterations
    marked = replace(anatomy, iterations=(replace(first, tpot_by_engine=True), *others))
    titles = [
        a["title"] or ""
        for a in Page(html_task(accounted(marked, ()))).all("td")
        if (a.get("title") or "")[:4] == "TPOT"
    ]
    assert [title.split(" ", 2)[1] for title in titles] == ["derived", "from", "from"]


def test_a_step_around_the_critical_path_is_not_off_it(anatomy: Anatomy) -> None:
    idle = replace(anatomy, bars=(replace(anatomy.bars[0], on_path=0.0), *anatomy.bars[1:]))
    spoken = [attributes["aria-label"] or "" for attributes in Page(html_task(accounted(idle, ()))).all("summary")]
    assert spoken[0].endswith("takes 38.20 s, on the critical path")
    assert spoken[5].endswith("takes 8.00 s, off the critical path")


def test_a_task_that_names_its_session_is_the_first_of_it(anatomy: Anatomy) -> None:
    text = Page(html_task(accounted(replace(anatomy, session=SessionId(anatomy.task))))).text
    assert "first of its session" in text
    assert f"session {anatomy.task}" not in text


def test_light_dark_and_print_are_all_there(anatomy: Anatomy) -> None:
    html = html_task(accounted(anatomy, ()))
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html


def test_bars_lie_where_their_times_say(anatomy: Anatomy) -> None:
    rects = [a for a in Page(html_task(accounted(anatomy, ()))).all("rect") if a.get("height") == "18" and a.get("x")]
    tool = next(a for a in rects if a["fill"] == "url(#tool)")
    assert (tool["x"], tool["width"]) == ("21.990%", "6.545%")  # 8.4 / 38.2 and 2.5 / 38.2


def test_what_is_unknown_is_said(anatomy: Anatomy) -> None:
    html = Page(html_task(accounted(replace(anatomy, cached_share=None, task_ttft=None), ()))).text
    assert "first outputunknown" in html
    assert "from the cacheunknown" in html
    assert "costunknown" in html
    assert "None of the known changes" in html


def test_twenty_thousand_spans_stay_one_readable_file(long_spans: tuple[Span, ...], levers: Levers) -> None:
    html = html_task(accounted(dissect(long_spans), levers))
    assert len(html.encode()) < 500_000
    page = Page(html)
    folded = sum(int(number.replace(",", "")) for number in re.findall(r"([\d,]+) spans? folded", page.text))
    shown = len([a for a in page.all("details") if "fold" not in (a["class"] or "")])
    assert shown == 150
    assert shown + folded == 20_000


def test_a_bar_of_many_pieces_is_drawn_on_a_grid(anatomy: Anatomy) -> None:
    first = anatomy.bars[1]
    pieces = tuple(
        Segment(first.span.id, Phase.DECODE if n % 2 else Phase.PREFILL, n * 0.001, (n + 1) * 0.001)
        for n in range(38_000)
    )
    many = replace(anatomy, bars=(replace(first, pieces=pieces),))
    assert html_task(accounted(many, ())).count('height="18"') < 300


def test_a_task_without_spans_is_a_page_too() -> None:
    assert "0.000 s end to end" in Page(html_task(accounted(dissect(())))).text


def test_the_waterfall_zooms_by_keyboard_without_a_script(anatomy: Anatomy) -> None:
    html = html_task(accounted(anatomy, ()))
    page = Page(html)
    zooms = page.all("input", type="radio", name="zoom-task")
    assert [a["class"] for a in zooms] == ["zoom z1", "zoom z2", "zoom z5", "zoom z10", "zoom z25"]
    assert ["checked" in a for a in zooms] == [True, False, False, False, False]
    assert {a["for"] for a in page.all("label")} == {a["id"] for a in zooms}
    for factor in (2, 5, 10, 25):
        assert f".z{factor}:checked ~ .fall {{ --zoom: {factor}; }}" in html
    assert page.all("div", tabindex="0", role="region")
    # 38.2 s in 40 parts of 0.955 s: five marks always there, the 36 between them when it is zoomed
    assert len(page.all("i")) == 5 + 36
    assert "0.96 s" in page.text


def test_what_was_asked_left_out_and_replayed_is_there(anatomy: Anatomy) -> None:
    outcome = Outcome(before=38.2, after=19.1, partly=True, tokens=100, cost=None, notes=("One guess.",))
    account = replace(accounted(anatomy, ()), title="Why so slow?")
    skipped = (Skip(reason="a broken line", count=3, first="x.jsonl:7"),)
    text = " ".join(Page(html_task(account, outcome, skipped, (Refused("y.txt", "No record."),))).text.split())
    assert "asked Why so slow?" in text
    assert "What if E2E 38.20 s to 19.10 s (-50.0 %), without what cannot be told" in text
    assert "100 tokens saved, cost unknown" in text
    assert "One guess." in text
    assert "Skipped 3: a broken line (first at x.jsonl:7)." in text
    assert "Not read: y.txt. No record." in text


def test_a_task_without_times_has_no_waterfall_and_no_seconds(anatomy: Anatomy) -> None:
    account = accounted(anatomy, ())
    verdict = judge([bar.span for bar in anatomy.bars], "made", "none")
    page = Page(html_task(replace(account, verdict=verdict)))
    assert not page.all("details")
    assert "Formula" not in page.text
    assert "Levers" not in page.text
    assert "38.2" not in page.text
    assert "how long anything took is not in this record" in page.text


def test_findings_say_how_sure_they_are_and_what_they_cost(anatomy: Anatomy) -> None:
    found = Finding(
        name="tools-dominate",
        title="It is the tools.",
        seconds=2.5,
        cost=MicroUsd(20_000),
        tokens=None,
        confidence="likely",
        evidence=("One.", "Two."),
        check="Look.",
        remedy="Act.",
    )
    text = " ".join(Page(html_task(replace(accounted(anatomy, ()), findings=(found,)))).text.split())
    assert "It is the tools. likely2.50 s$0.0200 shows inOne.Two.checkLook.doAct." in text
