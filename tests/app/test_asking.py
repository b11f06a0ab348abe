import io
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from rich.console import Console

from headway.agents.knowledge.embed import EndpointEmbedder
from headway.agents.knowledge.fake import WordEmbedder
from headway.app.asking import Teller, choose_embedder, first_model, load_index, open_client, visible
from headway.core.errors import BadInputError, NotFoundError
from headway.gateway.fake import FakeEngine


def screen(*, terminal: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=80, force_terminal=terminal, no_color=True), out


def test_steps_and_answer_stand_below_each_other() -> None:
    console, out = screen(terminal=False)
    teller = Teller(console, console)
    for piece in ("One", " two."):
        teller.text(piece)
    teller.step("next")
    teller.text("Three.")
    teller.end()
    teller.end()
    assert out.getvalue() == "One two.\n  · next\nThree.\n"


def test_a_terminal_shows_the_time_while_it_waits_and_nothing_is_left_of_it() -> None:
    console, out = screen(terminal=True)
    teller = Teller(console, console)
    teller.step("plan")
    teller.text("x")
    teller.end()
    assert "0:00:00" in out.getvalue()
    assert out.getvalue().endswith("x\n")
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert out.getvalue().count(hidden) == out.getvalue().count(shown) == 1  # the cursor is back


def test_nothing_steers_the_terminal() -> None:
    assert visible("a\x1b[31m\x07b\nc\td\u202e") == "a\ufffd[31m\ufffdb\nc\td\ufffd"


async def test_what_could_not_be_read_is_told_and_the_rest_is_used(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("words")
    (tmp_path / "bad.pdf").write_bytes(b"x")
    console, out = screen(terminal=False)
    with await load_index([tmp_path], WordEmbedder, console, tmp_path / ".index.db") as index:
        assert [chunk.document for chunk in index.chunks] == ["good.txt"]
    assert "bad.pdf is not a PDF" in out.getvalue()


async def test_an_embedding_model_at_the_endpoint_may_be_chosen() -> None:
    async with open_client("http://127.0.0.1:1/v1", "k") as client:
        e5, other = choose_embedder("intfloat/E5-base", client), choose_embedder("bge-m3", client)
    assert e5.name == "http://127.0.0.1:1/v1/intfloat/E5-base|passage: "
    assert other.name == EndpointEmbedder(AsyncOpenAI(base_url="http://127.0.0.1:1/v1", api_key="k"), "bge-m3").name


async def test_the_first_listed_model_is_taken() -> None:
    async with FakeEngine(models=("one", "two")) as engine, open_client(engine.url, "k") as client:
        assert await first_model(client) == "one"
    async with FakeEngine(models=()) as engine, open_client(engine.url, "k") as client:
        with pytest.raises(NotFoundError, match=r"lists no model.*--model"):
            await first_model(client)


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://x"])
def test_a_base_url_must_be_one(url: str) -> None:
    with pytest.raises(BadInputError, match="no http"):
        open_client(url, "k")
