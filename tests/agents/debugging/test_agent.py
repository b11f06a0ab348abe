"""The whole way of bugs, with a scripted model and a real sandbox."""

import subprocess
from pathlib import Path

import pytest
from debugging import debugged, needs_sandbox, together

from headway.agents.debugging.case import Fixed


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
