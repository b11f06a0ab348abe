from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headway.agents.knowledge import bundled_documents
from headway.agents.knowledge import documents as module
from headway.agents.knowledge.documents import look_for_documents, read_documents
from headway.core.errors import BadInputError, NotFoundError

MakePdf = Callable[[Sequence[Sequence[str]]], bytes]


def test_the_bundled_documents_are_all_read() -> None:
    reading = read_documents(bundled_documents())
    assert reading.problems == ()
    assert {Path(document.name).suffix for document in reading.documents} == {".pdf", ".html", ".md"}
    assert len(reading.documents) == 8
    assert all(document.content.title for document in reading.documents)


def test_each_bad_file_is_told_and_the_rest_goes_on(tmp_path: Path, make_pdf: MakePdf) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "good.md").write_text("# Good\n\nText.")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nonsense")
    (tmp_path / "empty.md").touch()
    (tmp_path / "half.pdf").write_bytes(make_pdf([["Text."], []]))
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "README").write_text("no ending")
    (tmp_path / ".hidden.md").write_text("never looked at")
    reading = read_documents(tmp_path)
    assert [document.name for document in reading.documents] == ["deep/good.md", "half.pdf"]
    told = {problem.name: problem.what for problem in reading.problems}
    assert told.keys() == {"broken.pdf", "empty.md", "half.pdf", "latin.txt", "picture.png", "README"}
    assert "not a PDF" in told["broken.pdf"]
    assert "holds no text" in told["empty.md"]
    assert "page(s) 2" in told["half.pdf"]
    assert "UTF-8" in told["latin.txt"]
    assert "(.png)" in told["picture.png"]
    assert all(problem.fix for problem in reading.problems)


def test_one_file_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "Note.TXT"
    path.write_text("hello")
    assert [document.name for document in read_documents(path).documents] == ["Note.TXT"]


def test_a_file_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 4)
    (tmp_path / "a.txt").write_text("12345")
    with pytest.raises(BadInputError, match=r"a\.txt is 5 bytes long; the limit is 4"):
        read_documents(tmp_path)


def test_nothing_there_and_nothing_readable_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no documents at"):
        read_documents(tmp_path / "absent")
    with pytest.raises(BadInputError, match="folder is empty"):
        read_documents(tmp_path)


def test_a_link_to_nowhere_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere.md")
    (tmp_path / "here.md").write_text("text")
    assert [document.name for document in read_documents(tmp_path).documents] == ["here.md"]


def test_where_no_document_can_be_is_seen_without_reading(tmp_path: Path) -> None:
    look_for_documents(bundled_documents())
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.PDF").write_bytes(b"not read, so not missed")
    look_for_documents(tmp_path)
    look_for_documents(tmp_path / "deep" / "a.PDF")
    (tmp_path / "deep" / "a.PDF").rename(tmp_path / "deep" / "a.png")
    with pytest.raises(BadInputError, match="is of a type that is read"):
        look_for_documents(tmp_path)
    with pytest.raises(NotFoundError, match="no documents at"):
        look_for_documents(tmp_path / "none")
