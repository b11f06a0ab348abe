import re

import pytest
from accounts import accounted
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace
from pages import EVIL
from sets import hostile, imported, studied

from headway.app.report.exports.markdown import escaped, markdown_set, markdown_task
from headway.trace.account import account_of
from headway.trace.anatomy import Anatomy
from headway.trace.findings import Finding
from headway.trace.levers import Lever
from headway.trace.sources.intake import Refused
from headway.trace.sources.skips import Skip
from headway.trace.whatif import Outcome
from headway.trace.whatif_text import parse

MARKS = "# h\n- [x](http://e.vil) ![i](j) `c` **b** _i_ ~~s~~ <b>&amp; | @ops $x$ \\ 1. one www.e.vil"


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        found += [token, *(token.children or ())]
    return found


def shown(text: str) -> str:
    return "".join(token.content for token in tokens(text) if token.type == "text")


def finding(number: int) -> Finding:
    return Finding(
        name=f"f{number}",
        title=f"Finding {number}.",
        seconds=1.0,
        confidence="likely",
        evidence=("One.", "Two.", "Three."),
        check="Look.",
        remedy="Act.",
    )


def test_a_task_in_a_ticket(anatomy: Anatomy, levers: tuple[Lever, ...]) -> None:
    account = replace(accounted(anatomy, levers), title="Why?", findings=tuple(map(finding, range(6))))
    outcome = Outcome(before=38.2, after=19.1, partly=True, tokens=100, cost=None, notes=("One guess.",))
    lines = markdown_task(account, outcome).splitlines()
    assert lines[0] == f"## Task {anatomy.task}"
    assert lines[2].startswith("**38.20 s end to end, 73 % of it decode")
    assert "Asked: Why?" in lines
    assert "`38.20 s = 0.66 hop + 0.67 queue + 6.15 prefill + 27.80 decode + 2.92 tools`" in lines
    assert "1. **Finding 0.** (likely, 1.00 s)" in lines
    assert "   - To do: Act." in lines
    assert "3 more findings of less weight." in lines
    assert any(line.startswith("| one iteration fewer | 10.42 s (27.3 %) | 2,711 | unknown |") for line in lines)
    assert "- E2E 38.20 s to 19.10 s (-50.0 %), without what cannot be told; 100 tokens saved, cost unknown" in lines
    assert any("has no public price" in line for line in lines)
    assert len(lines) <= 60


def test_a_set_in_a_ticket() -> None:
    study = studied(*(imported(i, turns) for i, turns in enumerate((1, 2, 3, 3, 9))), changes=parse("tpot 0.5x"))
    lines = markdown_set(study.report()).splitlines()
    assert lines[0] == "## 5 tasks"
    assert "| E2E, s | 5 of 5 | 8.000 | 26.000 | 26.000 |" in lines  # 3n - 1 s: 2, 5, 8, 8, 26
    # 1 + 2 + 3 + 3 + 9 = 18 of 49 s; in the middle lie the second and the third
    assert "| prefill | 36.7 % | 2.500 s | 9.000 s |" in lines
    assert any(line.startswith("1. **The user sees nothing for 25.0 s") and "of 5)" in line for line in lines)
    assert "- cost: neither recorded nor known by price" in lines
    # of the 9 and 3 turns half a second each: 26 - 4.5 and 8 - 1.5
    replayed = "E2E at p50 8.000 s to 6.500 s (-18.8 %); E2E at p95 26.000 s to 21.500 s (-17.3 %)"
    assert f"- {replayed}; per task 0 tokens saved, $0 saved".replace("$", "\\$") in lines
    assert any(
        re.match(r"\| faster tools \| 8\.000 s to 7\.000 s \| 26\.000 s to 22\.000 s \|", line) for line in lines
    )
    assert len(lines) <= 60


def test_the_longest_account_is_sixty_lines_at_most(anatomy: Anatomy, levers: tuple[Lever, ...]) -> None:
    many = replace(anatomy, unknowns=tuple(f"Unknown {i}." for i in range(40)))
    account = replace(accounted(many, levers * 20), title="x" * 900, findings=tuple(map(finding, range(40))))
    outcome = Outcome(before=2.0, after=1.0, tokens=1, cost=None, notes=tuple(f"Note {i}." for i in range(40)))
    skipped = [Skip(reason="broken", count=1, first=f"{i}") for i in range(30)]
    text = markdown_task(account, outcome, skipped, [Refused(f"{i}", "No.") for i in range(30)])
    assert len(text.splitlines()) <= 60
    assert all(len(line) <= 700 for line in text.splitlines())


def test_so_is_the_longest_set() -> None:
    tasks = [imported(i, 1 + i % 9, name=f"tool {i}") for i in range(40)]
    report = studied(*tasks, changes=parse("tpot 0.5x")).report()
    report = replace(report, findings=tuple(map(finding, range(40))))
    skipped = [Skip(reason="broken", count=1, first=f"{i}") for i in range(30)]
    assert len(markdown_set(report, skipped).splitlines()) <= 60


@pytest.mark.parametrize("text", [EVIL, MARKS])
def test_what_a_stranger_named_is_shown_as_it_is(text: str) -> None:
    one = hostile(imported(1, 3), text)
    for written in (
        markdown_task(replace(account_of(one.spans, one.verdict, text), findings=(replace(finding(1), title=text),))),
        markdown_set(studied(one, imported(2, 2, name=text)).report(), [Skip(reason=text, count=1, first=text)]),
    ):
        kinds = {token.type for token in tokens(written)}
        assert not kinds & {"link_open", "image", "html_inline", "html_block", "s_open", "fence", "hr"}
        code = [token.content for token in tokens(written) if token.type == "code_inline"]
        assert all(re.fullmatch(r"[\d.]+ s = [\w\d.+ ]+", one) for one in code)
        assert " ".join(text.split())[:40] in shown(written).replace("\N{WORD JOINER}", "")


@given(st.text(max_size=80))
def test_any_text_comes_out_as_one_line_of_text(text: str) -> None:
    written = escaped(text)
    assert "\n" not in written
    found = tokens(f"- {written}")
    assert {token.type for token in found} <= {
        "bullet_list_open",
        "list_item_open",
        "paragraph_open",
        "inline",
        "text",
        "text_special",
        "paragraph_close",
        "list_item_close",
        "bullet_list_close",
    }


def test_nobody_is_called_and_no_address_is_a_link() -> None:
    joiner = "\N{WORD JOINER}"
    assert escaped("ask @ops at https://e.vil or www.e.vil") == (
        f"ask @{joiner}ops at https:{joiner}//e.vil or www{joiner}.e.vil"
    )
    assert escaped("- a") == "\\- a"
    assert escaped("12) a") == "12\\) a"


def test_a_task_without_times_has_no_seconds() -> None:
    one = imported(1, 3, timing="none")
    written = markdown_task(account_of(one.spans, one.verdict, one.title))
    assert "`" not in written
    assert "### Levers" not in written
