from pathlib import Path

import pytest

from headway.app.naming import first_words, resolve
from headway.core.errors import BadInputError, NotFoundError
from headway.core.span import ModelCall, Span
from headway.core.task import SpanId, TaskId
from headway.trace.store import Store


def call(task: str, start: float, prompt: str | None = None, model: str = "m") -> Span:
    return Span(
        task=TaskId(task),
        id=SpanId(f"{start:g}"),
        parent=None,
        name="chat",
        start=start,
        end=start + 1,
        work=ModelCall(model=model),
        text=None if prompt is None else (prompt, "answer"),
    )


def test_what_tells_tasks_apart_is_shown_by_the_shortest_id_that_names_each(tmp_path: Path) -> None:
    close, other = "12345678" + "9" * 24, "12345678" + "a" * 24
    with Store(tmp_path / "s.db") as store:
        store.write([call(close, 1, '[{"role":"user","content":"Why was\\nthe ferry late?"}]'), call(close, 3)])
        store.write([call(other, 2, model="n")])
        assert resolve(store, "123456789") == close
        with pytest.raises(BadInputError) as raised:
            resolve(store, "1234")
        first, *rows = raised.value.what.splitlines()
        assert first == "2 tasks begin with '1234':"
        assert [row.split()[0] for row in rows] == ["123456789", "12345678a"]
        assert rows[0].endswith("2 calls  m  “Why was the ferry late?”")
        assert rows[1].endswith("1 call   n")
        with pytest.raises(NotFoundError):
            resolve(store, "x")


def test_more_than_are_listed_are_told(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.write([call(f"night\x1b{number}", 1) for number in range(9)])
        with pytest.raises(BadInputError, match="8 tasks and more begin with 'night'") as raised:
            resolve(store, "night")
    assert "\x1b" not in raised.value.what


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ('[{"role":"system","content":"be brief"},{"role":"user","content":"one"}]', "one"),
        ('[{"role":"user","content":[{"type":"text","text":"two"},{"type":"image_url"}]}]', "two"),
        ('[{"role":"user","content":"\\u001b[2J"}]', "\N{REPLACEMENT CHARACTER}[2J"),
        ('[{"role":"user","content":"' + "word " * 30 + '"}]', "word " * 9 + "wo…"),
        ('[{"role":"user","content":"password=hunter2 now"}]', "password=*** now"),
        ('[{"role":"user","content":null}]', ""),
        ('[{"role":"tool"}]', ""),
        ("{no json", ""),
        ("", ""),
    ],
)
def test_first_words_of_any_prompt(prompt: str, words: str) -> None:
    assert first_words([call("t", 2, '[{"role":"user","content":"later"}]'), call("t", 1, prompt)]) == words


def test_no_words_where_no_text_was_kept() -> None:
    assert first_words([call("t", 1)]) == ""
