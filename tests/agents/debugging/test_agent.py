"""The whole way of bugs, with a scripted model and a real sandbox."""

import subprocess
from pathlib import Path

import pytest
from debugging import debugged, example, knowing, needs_sandbox, together

from headway.agents.debugging.agent import How
from headway.agents.debugging.case import Fixed, NotFixed, Patched, Reproduced
from headway.runtime import Budget


@pytest.fixture(scope="module", autouse=True)
def sandbox() -> None:
    needs_sandbox()


async def test_a_bug_is_fixed_and_its_verdict_carries_the_runs_that_prove_it(tmp_path: Path) -> None:
    (verdict,) = await debugged(tmp_path, ["basket"])
    assert isinstance(verdict, Fixed)
    new = "tests/test_reported_basket.py::test_it"
    assert verdict.shown.outcomes == {new: "failed"}
    assert verdict.passes.outcomes == {new: "passed"}
    assert verdict.before.passed == {
        "tests/test_basket.py::test_without_discount",
        "tests/test_basket.py::test_reduced",
    }
    assert verdict.after.passed == {*verdict.before.passed, new}
    assert "assert 486 == 540" in verdict.shown.failures[new].text


async def test_five_bugs_at_once_leave_the_repository_as_it_was_and_git_takes_the_patches(tmp_path: Path) -> None:
    names = ["backoff", "basket", "pages", "rows", "slots"]
    source = together(tmp_path / "source", names)
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    verdicts = await debugged(tmp_path, names, repo=source)
    assert [verdict.bug for verdict in verdicts] == names
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
    for verdict in verdicts:
        assert isinstance(verdict, Fixed), verdict.why
        subprocess.run(["git", "apply", "-"], cwd=source, input=verdict.patch, text=True, check=True)  # noqa: ASYNC221, S607 - a tool of the test
    assert (source / "tests/test_reported_rows.py").is_file()


async def test_a_patch_that_fixes_nothing_goes_back_and_the_model_is_told_why(tmp_path: Path) -> None:
    told: list[str] = []

    def script(asked: str, question: str) -> object:
        if asked == "fixer":
            told.append(question)
            if "last attempt" not in question:
                edits = [{"path": "paging.py", "search": "articles // size", "replace": "articles // size + 0"}]
                return {"explanation": "no good", "edits": edits}
        return knowing(asked, question)

    (verdict,) = await debugged(tmp_path, ["pages"], script)
    assert isinstance(verdict, Fixed)
    assert len(told) == 2
    assert "assert 2 == 3" in told[1]
    assert "+    return articles // size + 0" in told[1]


async def test_a_fix_that_breaks_other_tests_is_none(tmp_path: Path) -> None:
    def script(asked: str, question: str) -> object:
        if asked == "fixer":
            edits = [{"path": "paging.py", "search": "return articles // size", "replace": "return 3"}]
            return {"explanation": "cheating", "edits": edits}
        return knowing(asked, question)

    (verdict,) = await debugged(tmp_path, ["pages"], script, how=How(attempts=2))
    assert isinstance(verdict, NotFixed)
    assert "Other tests do not pass any more" in verdict.why
    assert "tests/test_paging.py::test_full_pages" in verdict.why
    assert isinstance(verdict.reached, Patched)


async def test_leaving_with_status_0_in_mid_test_passes_nothing(tmp_path: Path) -> None:
    def script(asked: str, question: str) -> object:
        if asked == "fixer":
            edits = [{"path": "paging.py", "search": "return articles // size", "replace": "__import__('os')._exit(0)"}]
            return {"explanation": "cheating", "edits": edits}
        return knowing(asked, question)

    (verdict,) = await debugged(tmp_path, ["pages"], script, how=How(attempts=1))
    assert isinstance(verdict, NotFixed)
    assert "it left with 0 before pytest was at its end" in verdict.why


@pytest.mark.parametrize(
    ("test", "why"),
    [
        ("def test_it():\n    assert True\n", "it does not fail"),
        ("def test_it():\n    assert pages(7, 3) == 3\n", "a fault of its own"),
        ("import paging\n\n\ndef test_it():\n    assert paging.count(7, 3) == 3\n", "a fault of its own"),
        ("import nothing_like_it\n\n\ndef test_it():\n    pass\n", "could not be run"),
        ("def test_it(no_fixture):\n    pass\n", "could not be run"),
        ("def test_it():\n    while True:\n        pass\n", "took too long"),
    ],
)
async def test_what_does_not_fail_because_of_the_bug_reproduces_nothing(tmp_path: Path, test: str, why: str) -> None:
    def script(asked: str, question: str) -> object:
        return {"content": test} if asked == "test_writer" else knowing(asked, question)

    (verdict,) = await debugged(tmp_path, ["pages"], script, seconds=8, how=How(attempts=1))
    assert isinstance(verdict, NotFixed)
    assert why in verdict.why
    assert verdict.stages == ("analysis",)


async def test_a_model_that_writes_no_json_fixes_nothing_and_harms_no_other_bug(tmp_path: Path) -> None:
    def script(asked: str, question: str) -> object:
        return "I would rather not." if "only touch" in question else knowing(asked, question)

    one, other = await debugged(tmp_path, ["slots", "rows"], script)
    assert isinstance(one, NotFixed)
    assert one.stages == ()
    assert isinstance(other, Fixed)


async def test_patches_that_do_not_apply_end_as_not_fixed(tmp_path: Path) -> None:
    def script(asked: str, question: str) -> object:
        if asked == "fixer":
            return {"explanation": "?", "edits": [{"path": "paging.py", "search": "not there", "replace": "x"}]}
        return knowing(asked, question)

    (verdict,) = await debugged(tmp_path, ["pages"], script)
    assert isinstance(verdict, NotFixed)
    assert "stands 0 times" in verdict.why
    assert verdict.stages == ("analysis", "reproduction", "root_cause")


async def test_what_failed_before_may_fail_still_and_is_told(tmp_path: Path) -> None:
    source = together(tmp_path / "source", ["pages"])
    (source / "tests/test_old.py").write_text("def test_old():\n    assert False\n")
    (verdict,) = await debugged(tmp_path, ["pages"], repo=source)
    assert isinstance(verdict, Fixed)
    assert verdict.failing_still == ("tests/test_old.py::test_old",)


async def test_where_the_other_tests_never_end_nothing_is_called_fixed(tmp_path: Path) -> None:
    source = together(tmp_path / "source", ["pages"])
    (source / "tests/test_slow.py").write_text("def test_slow():\n    while True:\n        pass\n")
    (verdict,) = await debugged(tmp_path, ["pages"], repo=source, seconds=6, how=How(attempts=1))
    assert isinstance(verdict, NotFixed)
    assert "Whether the other tests passed before is not known" in verdict.why
    assert isinstance(verdict.reached, Reproduced)


async def test_a_budget_that_is_used_up_ends_as_not_fixed(tmp_path: Path) -> None:
    (verdict,) = await debugged(tmp_path, ["pages"], budget=Budget(calls=2))
    assert isinstance(verdict, NotFixed)
    assert "budget" in verdict.why
    assert verdict.stages == ("analysis", "reproduction")


async def test_a_deadline_stops_the_sandbox_too(tmp_path: Path) -> None:
    def script(asked: str, question: str) -> object:
        hangs = "def test_it():\n    while True:\n        pass\n"
        return {"content": hangs} if asked == "test_writer" else knowing(asked, question)

    (verdict,) = await debugged(tmp_path, ["pages"], script, budget=Budget(seconds=4), seconds=600)
    assert isinstance(verdict, NotFixed)
    assert "was not done in the 4 s" in verdict.why


def test_the_shipped_repositories_have_logs_where_they_help() -> None:
    assert len(example("backoff").logs) == 2
    assert example("basket").logs == ()


async def test_logs_without_a_year_and_long_lists_of_files_do_not_stop_it(tmp_path: Path) -> None:
    source = together(tmp_path / "source", ["pages"])
    for number in range(400):
        (source / f"a_module_with_a_rather_long_name_{number}.txt").write_text("")
    (source / "app.log").write_text("Nov 30 10:00:00 host app[1]: page 3 asked for\n")
    (source / "logo.png").write_bytes(b"\x89PNG\0")
    asked_of: list[str] = []

    def script(asked: str, question: str) -> object:
        asked_of.append(asked)
        assert len(question) < 4 * (4 * 2_000)
        return knowing(asked, question)

    (verdict,) = await debugged(tmp_path, ["pages"], script, repo=source, logs=["*.log"], how=How(tokens=2_000))
    assert isinstance(verdict, Fixed)
    assert asked_of.count("reader") > 1
    assert asked_of.count("log_reader") == 1
