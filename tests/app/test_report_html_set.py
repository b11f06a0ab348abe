import re

from pages import EVIL, Page
from sets import hostile, imported, studied

from headway.app.report.html_set import html_set
from headway.trace.account import account_of
from headway.trace.phases import Phase
from headway.trace.set_study import SetStudy
from headway.trace.sources.intake import Imported, Refused
from headway.trace.sources.skips import Skip
from headway.trace.whatif_text import parse

TASKS = [imported(i, turns) for i, turns in enumerate((1, 2, 2, 3, 3, 3, 4, 9))]


def page_of(study: SetStudy, *slowest: Imported) -> str:
    accounts = [account_of(one.spans, one.verdict, one.title) for one in slowest]
    return html_set(study.report(), accounts, [row.e2e for row in study.rows if row.e2e is not None])


def words(page: str) -> str:
    return " ".join(Page(page).text.split())


def test_the_page_holds_the_whole_account() -> None:
    study = studied(*TASKS, changes=parse("tools parallel, tpot 0.5x"))
    text = words(page_of(study, TASKS[7]))
    # E2E of n turns is 3n - 1 s: 2, 5, 5, 8, 8, 8, 11, 26
    assert "8.000 s at p50 and 26.000 s at p95 (of 8 tasks: too few to be sure)" in text
    for title in (
        "Spread",
        "How long tasks take",
        "How many model calls a task takes",
        "Reading: what prompts cost",
        "Where the time goes",
        "By tool",
        "By model",
        "Findings",
        "Levers",
        "What if",
        "The slowest tasks",
        "How good the record is",
        "What to know of it",
        "How it was measured",
    ):
        assert title in text, title
    assert "Task task-7, asked: why?" in text
    assert "8.000 [2.000, 26.000]" in text.replace("8.000[", "8.000 ["), "p50 with its interval"
    # half the tpot takes 0.5 s off each of 3 and of 9 calls
    assert "E2E at p50 8.000 s to 6.500 s (-18.8 %)" in text
    assert "E2E at p95 26.000 s to 21.500 s (-17.3 %)" in text


def test_phases_show_a_typical_task_against_the_slowest_tenth() -> None:
    page = Page(page_of(studied(*TASKS)))
    pairs = [a["aria-label"] for a in page.all("svg", role="img") if (a.get("aria-label") or "").startswith("typical")]
    # the middle fifth of 8 has 3 turns: 3 s each of prefill and decode, 2 s of tools; the slowest 9, 9 and 8
    assert set(pairs[:3]) == {
        "typical 3.000 seconds, slowest tenth 9.000 seconds",
        "typical 2.000 seconds, slowest tenth 8.000 seconds",
    }


def test_nothing_is_fetched_and_nothing_runs() -> None:
    html = page_of(studied(*TASKS), TASKS[7])
    page = Page(html)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "base", "form"}
    assert not re.search(r"https?:|@import|@font-face|\bsrc=", html)
    places = {attributes.get("id") for _, attributes in page.elements}
    assert all((a["href"] or "")[1:] in places for a in page.all("a")), "links lead to places in the page alone"
    assert all((a["href"] or "").startswith("#") for a in page.all("a"))
    assert set(re.findall(r"url\(([^)]*)\)", html)) <= {"#part", *(f"#{phase.value}" for phase in Phase)}
    assert page.all("meta", content="default-src 'none'; style-src 'unsafe-inline'")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_everything_that_a_stranger_can_name_is_escaped() -> None:
    evil = hostile(TASKS[7], EVIL)
    study = studied(evil, imported(2, 2, name=EVIL))
    html = html_set(
        study.report(),
        [account_of(evil.spans, evil.verdict, evil.title)],
        [26.0, 5.0],
        skipped=(Skip(reason=EVIL, count=2, first=EVIL),),
        refused=(Refused(EVIL, EVIL),),
    )
    page = Page(html)
    assert "<script" not in html
    assert "<img" not in html
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert page.text.count("{{ 7*7 }}") > 8


def test_the_slowest_have_waterfalls_that_zoom_by_keyboard_without_a_script() -> None:
    page = Page(page_of(studied(*TASKS), TASKS[7], TASKS[6]))
    zooms = page.all("input", type="radio")
    assert [a["name"] for a in zooms] == ["zoom-slow1"] * 5 + ["zoom-slow2"] * 5
    assert [a["id"] for a in zooms if "checked" in a] == ["zoom-slow1-1", "zoom-slow2-1"]
    assert {a["for"] for a in page.all("label")} == {a["id"] for a in zooms}
    assert len(page.all("details")) >= 18 + 8, "a row for each span"
    assert len(page.all("div", tabindex="0")) == 2


def test_every_number_says_how_it_was_measured() -> None:
    page = Page(page_of(studied(*TASKS), TASKS[7]))
    numbers = [
        a for a in page.all("td") if "colspan" not in a and not {"text", "bars"} & {*(a.get("class") or "").split()}
    ]
    assert len(numbers) > 100
    assert all(a.get("title") for a in numbers)
    assert len(page.all("circle", r="2.6")) == 27, "a dot for each of the calls"


def test_without_times_the_page_says_so_and_shows_no_seconds() -> None:
    tasks = [imported(i, 2, timing="none") for i in range(3)]
    text = words(page_of(studied(*tasks)))
    assert "When things happened is not in this record: 3 tasks" in text
    assert "tasks failed" in text  # not their tools, whose failures stand beside each
    assert "E2E, snoneunknown" in text.replace(" ", "").replace("E2E,s", "E2E, s")
    assert "Where the time goes" not in text
    assert "How long tasks take" not in text
    assert "The slowest tasks" not in text


def test_what_was_left_out_is_told() -> None:
    study = studied(*TASKS)
    html = html_set(study.report(), [], [1.0], skipped=(Skip(reason="a broken line", count=3, first="x.jsonl:7"),))
    assert "Skipped 3: a broken line (first at x.jsonl:7)." in words(html)
