import errno
import os
import threading
from pathlib import Path

import pytest

from headway.app.report.exports.target import check_target, whole_file, write_text
from headway.core.errors import BadInputError


def test_text_is_written_whole_and_its_place_told_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_text(Path("a.html"), "größe \ud800", "--html") == tmp_path / "a.html"
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == "größe ?"


def test_what_cannot_be_written_says_where_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"missing/a\.md: No such file or directory\. Give another path with --md"):
        write_text(tmp_path / "missing" / "a.md", "x", "--md")


def _write_half(target: Path) -> None:
    with whole_file(target, "--otlp") as file:
        file.write(b"half")
        raise KeyError


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_text("old")
    with pytest.raises(KeyError):
        _write_half(target)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert target.read_text() == "old"


def test_a_full_disk_is_told_and_another_files_error_is_left_to_it(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"a\.json: No space left on device\. Give another path with --otlp"):
        _fail(tmp_path / "a.json", OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(FileNotFoundError):
        _fail(tmp_path / "a.json", FileNotFoundError(errno.ENOENT, "No such file", "input.json"))


def _fail(target: Path, error: OSError) -> None:
    with whole_file(target, "--otlp"):
        raise error


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "x", "--html")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "x"


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through", "--markdown")
    reader.join(10)
    assert read == ["through"]
    assert pipe.is_fifo()


def test_a_target_that_cannot_be_written_is_seen_beforehand(tmp_path: Path) -> None:
    check_target(tmp_path, "--html", directory=True)
    check_target(tmp_path / "a.html", "--html")
    assert not list(tmp_path.iterdir()), "seen without writing"
    with pytest.raises(BadInputError, match=r"missing/a\.html: its directory does not exist\."):
        check_target(tmp_path / "missing" / "a.html", "--html")
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError, match="its directory does not exist"):
        check_target(tmp_path / "file" / "a.html", "--html")
    with pytest.raises(BadInputError, match="File name too long"):
        check_target(tmp_path / ("a" * 300), "--html")
    with pytest.raises(BadInputError, match="it is a directory"):
        check_target(tmp_path, "--otlp")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_so_is_one_that_may_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.html").touch(mode=0o400)
    tmp_path.chmod(0o500)
    for target in (tmp_path, tmp_path / "a.html", tmp_path / "b.html"):
        with pytest.raises(BadInputError, match="permission denied"):
            check_target(target, "--html", directory=True)
    tmp_path.chmod(0o700)
