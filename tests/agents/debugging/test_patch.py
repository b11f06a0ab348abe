"""Patches: what a model may change, and diffs that git takes."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.agents.debugging.patch import Edit, applied, diff
from headway.agents.debugging.repository import Repository
from headway.core.errors import BadInputError

REPOSITORY = Repository(
    Path("nowhere"),
    {"a.py": "one\ntwo\ntwo\n", "src/b.py": "x = 1", "w.py": "a\r\nb\r\n", "tests/test_a.py": "", "setup.cfg": ""},
    frozenset({"logo.png"}),
)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (Edit("../a.py", "x"), "no path inside"),
        (Edit("/etc/passwd", "x"), "no path inside"),
        (Edit("", "x"), "no path inside"),
        (Edit("a\n.py", "x"), "no path inside"),
        (Edit(".git/hooks/pre-commit", "x"), "not a part"),
        (Edit("tests/test_a.py", "x"), "may not be changed"),
        (Edit("src/../tests/test_a.py", "x"), "no path inside"),
        (Edit("./tests/test_a.py", "x"), "may not be changed"),
        (Edit("src/conftest.py", "x"), "may not be changed"),
        (Edit("setup.cfg", "x"), "may not be changed"),
        (Edit("logo.png", "x"), "not a text"),
        (Edit("a.py/b", "x"), "below a file"),
        (Edit("src", "x"), "is a folder"),
        (Edit("a.py", "x", "two"), "stands 2 times"),
        (Edit("a.py", "x", "three"), "stands 0 times"),
        (Edit("new.py", "x", "three"), "no file new.py"),
        (Edit("a.py", "one", "one"), "change nothing"),
        (Edit("a.py", "x" * 70_000), "at most 65536"),
    ],
)
def test_what_may_not_be_changed_is_refused_with_its_reason(edit: Edit, why: str) -> None:
    with pytest.raises(BadInputError, match=why):
        applied(REPOSITORY, [edit])


def test_edits_of_a_file_follow_each_other_and_keep_its_line_ends() -> None:
    edits = [Edit("a.py", "1", "one"), Edit("a.py", "1\n2", "1\ntwo"), Edit("w.py", "c\nb", "a\nb")]
    assert applied(REPOSITORY, edits) == {"a.py": "1\n2\ntwo\n", "w.py": "c\r\nb\r\n"}


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "", " c", "\x0c", "d\r"])).map("\n".join),
    st.lists(st.sampled_from(["a", "b", "", " c", "\x0c", "d\r"])).map("\n".join),
)
def test_git_makes_of_a_diff_what_it_stands_for(tmp_path_factory: pytest.TempPathFactory, old: str, new: str) -> None:
    folder = tmp_path_factory.mktemp("repo")
    (folder / "a.py").write_bytes(old.encode())
    repository = Repository(folder, {"a.py": old}, frozenset())
    wanted = {"n/b.py": "x\n"} | ({"a.py": new} if new != old else {})
    subprocess.run(["git", "apply", "-"], cwd=folder, input=diff(repository, wanted).encode(), check=True)  # noqa: S607 - a tool of the test
    assert (folder / "a.py").read_bytes() == new.encode()
    assert (folder / "n/b.py").read_text() == "x\n"
