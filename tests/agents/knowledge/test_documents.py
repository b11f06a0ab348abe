from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headway.agents.knowledge import bundled_documents
from headway.agents.knowledge import documents as module
from headway.agents.knowledge.documents import find_files, look_for_documents
from headway.agents.knowledge.text import Content
from headway.core.errors import BadInputError, NotFoundError

MakePdf = Callable[[Sequence[Sequence[str]]], bytes]


def read(folder: Path) -> tuple[dict[str, Content], dict[str, BadInputError]]:
    contents: dict[str, Content] = {}
    problems: dict[str, BadInputError] = {}
    for file in find_files([folder]):
        try:
            contents[file.name] = file.read(file.load())
        except BadInputError as error:
            problems[file.name] = error
    return contents, problems


def test_the_bundled_documents_are_all_read() -> None:
    contents, problems = read(bundled_documents())
    assert problems == {}
    assert {Path(name).suffix for name in contents} == {".pdf", ".html", ".md"}
    assert len(contents) == 8
    assert all(content.title for content in contents.values())


def test_each_bad_file_is_told(tmp_path: Path, make_pdf: MakePdf) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "good.md").write_text("# Good\n\nText.")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nonsense")
    (tmp_path / "broken.docx").write_bytes(b"PK nonsense")
    (tmp_path / "empty.md").touch()
    (tmp_path / "half.pdf").write_bytes(make_pdf([["Text."], []]))
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "README").write_text("no ending")
    (tmp_path / ".hidden.md").write_text("never looked at")
    contents, problems = read(tmp_path)
    assert contents.keys() == {"deep/good.md", "half.pdf"}
    assert "page(s) 2" in contents["half.pdf"].missing
    told = {name: error.what for name, error in problems.items()}
    assert told.keys() == {"broken.docx", "broken.pdf", "empty.md", "latin.txt", "picture.png", "README"}
    assert "not a PDF" in told["broken.pdf"]
    assert "not a DOCX" in told["broken.docx"]
    assert "holds no text" in told["empty.md"]
    assert "UTF-8" in told["latin.txt"]
    assert "(.png)" in told["picture.png"]
    assert all(error.fix for error in problems.values())


def test_one_file_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "Note.TXT"
    path.write_text("hello")
    assert [file.name for file in find_files([path])] == ["Note.TXT"]


@pytest.mark.parametrize(
    ("limit", "message"), [("MAX_BYTES", "is 5 bytes long; the limit is 4"), ("MAX_CHARACTERS", "holds 5 characters")]
)
def test_a_file_that_is_too_long_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, message: str
) -> None:
    monkeypatch.setattr(module, limit, 4)
    (tmp_path / "a.txt").write_text("12345")
    _, problems = read(tmp_path)
    assert message in problems["a.txt"].what


def test_nothing_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no documents at"):
        find_files([tmp_path, tmp_path / "absent"])


def test_a_link_to_nowhere_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere.md")
    (tmp_path / "here.md").write_text("text")
    assert [file.name for file in find_files([tmp_path])] == ["here.md"]


def test_where_no_document_can_be_is_seen_without_reading(tmp_path: Path) -> None:
    look_for_documents([bundled_documents()])
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.PDF").write_bytes(b"not read, so not missed")
    look_for_documents([tmp_path])
    look_for_documents([tmp_path / "deep" / "a.PDF"])
    (tmp_path / "deep" / "a.PDF").rename(tmp_path / "deep" / "a.png")
    with pytest.raises(BadInputError, match="is of a type that is read"):
        look_for_documents([tmp_path])
    with pytest.raises(NotFoundError, match="no documents at"):
        look_for_documents([tmp_path / "none"])
