"""Copies of repositories, logs and reports."""

import os
from pathlib import Path

import pytest

from headway.agents.debugging.case import read_report
from headway.agents.debugging.repository import read_logs, take_copy
from headway.core.errors import BadInputError, NotFoundError


def test_a_copy_goes_without_secrets_links_outwards_and_what_is_no_file(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / ".git").mkdir(parents=True)
    (source / ".git/config").write_text("x")
    (source / ".env").write_text("KEY=hush")
    (source / ".env.local").write_text("KEY=hush")
    (source / "a.py").write_text("a")
    (source / "b.bin").write_bytes(b"\0\1")
    (source / "latin.txt").write_bytes(b"\xe9")
    (source / "inward").symlink_to("a.py")
    (source / "around").symlink_to(".env")
    (source / "loop").symlink_to("loop")
    (tmp_path / "outside").write_text("hush")
    (source / "outward").symlink_to(tmp_path / "outside")
    os.mkfifo(source / "pipe")
    repository = take_copy(source, copy)
    assert repository.texts == {"a.py": "a", "inward": "a"}
    assert repository.others == {"b.bin", "latin.txt"}
    assert sorted(path.name for path in copy.iterdir()) == ["a.py", "b.bin", "inward", "latin.txt"]


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="is no folder"):
        take_copy(tmp_path / "none", tmp_path / "copy")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="holds no text file"):
        take_copy(tmp_path / "empty", tmp_path / "copy")


def test_logs_are_found_from_the_repository_on_and_by_whole_paths(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.log").write_bytes(b"\xff1")
    (tmp_path / "deep/b.log").write_text("2")
    assert [log.path for log in read_logs(tmp_path, ["**/*.log", str(tmp_path / "a.log")])] == ["a.log", "deep/b.log"]
    with pytest.raises(NotFoundError, match="No log is called"):
        read_logs(tmp_path, ["*.txt"])


def test_reports_that_say_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text(" \n")
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe")
    (tmp_path / "long.md").write_text("x" * 70_000)
    for name in ("empty", "binary", "long"):
        with pytest.raises(BadInputError):
            read_report(tmp_path / f"{name}.md")
    with pytest.raises(NotFoundError):
        read_report(tmp_path / "none.md")


def test_bugs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "Bug 1.md").write_text("it breaks")
    assert read_report(tmp_path / "Bug 1.md").name == "bug_1"
    assert read_report(tmp_path / "Bug 1.md", frozenset({"bug_1"})).name == "bug_1_2"
