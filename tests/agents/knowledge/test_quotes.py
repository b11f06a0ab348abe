import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.quotes import Quote, Spoken, ground

FERRY = Chunk(
    document="ferry.pdf", title="", place="page 2", text="The ferry was late: a rope was in its propeller, from 05:40."
)
LIBRARY = Chunk(
    document="도서관.md", title="", place="여는 시간", text="도서관은 화요일부터 일요일까지 아침 9시에 엽니다."
)
SHOWN = {1: FERRY, 2: LIBRARY}


def test_a_quote_that_stands_there_is_kept_with_its_page_and_taken_out_of_the_text() -> None:
    found = ground('A rope.\nQUOTE [1] "a rope was in its propeller"\n', SHOWN)
    assert found.text == "A rope."
    assert found.quotes == (Quote(text="a rope was in its propeller", source=1, document="ferry.pdf", place="page 2"),)
    assert found.dropped == ()
    assert found.held


@pytest.mark.parametrize(
    "line",
    [
        'QUOTE [1] "A ROPE was in  its propeller from 05:40"',
        'QUOTE 1: "a rope was in its propeller"',
        "> **QUOTE [1]** “a rope was in its propeller”",
        'quote [1]: "The ferry was late … in its propeller"',
        'QUOTE [2] "a rope was in its propeller"',
        'QUOTE "a rope was in its propeller"',
    ],
)
def test_case_punctuation_gaps_and_wrong_numbers_do_not_hide_what_is_there(line: str) -> None:
    found = ground(f"A rope.\n{line}", SHOWN)
    assert [(quote.source, quote.place) for quote in found.quotes] == [(1, "page 2")]
    assert found.dropped == ()


@pytest.mark.parametrize(
    ("quote", "why"),
    [
        ("a rope was in its rudder", "it stands in none of the passages"),
        ("a rope was its propeller", "it stands in none of the passages"),
        ("in its propeller … The ferry was late", "it stands in none of the passages"),
        ("errey was late", "it stands in none of the passages"),
        ("was in its", "it is too short to prove anything"),
        ("", "it is too short to prove anything"),
    ],
)
def test_a_quote_that_is_not_there_is_dropped_and_said(quote: str, why: str) -> None:
    found = ground(f'A rope.\nQUOTE [1] "{quote}"', SHOWN)
    assert found.quotes == ()
    assert [(dropped.text, dropped.why) for dropped in found.dropped] == [(quote, why)]
    assert found.text == "A rope."
    assert found.held


@given(st.text())
def test_whatever_a_model_writes_is_parted_into_text_and_quotes(text: str) -> None:
    found = ground(f"{text}\nQUOTE [{'9' * 5000}] {text}", SHOWN)
    assert all(quote.source in SHOWN for quote in found.quotes)


def test_korean_quotes_are_looked_up_too() -> None:
    found = ground('화요일입니다.\nQUOTE [2] "화요일부터 일요일까지"\nQUOTE [2] "월요일부터 금요일까지"', SHOWN)
    assert [quote.document for quote in found.quotes] == ["도서관.md"]
    assert len(found.dropped) == 1


def test_the_same_quote_twice_is_one() -> None:
    line = 'QUOTE [1] "a rope was in its propeller"\n'
    assert len(ground(line * 2, SHOWN).quotes) == 1


@pytest.mark.parametrize("answer", ["NOT IN THE DOCUMENTS", "Not in the documents.\n", "", "  \n"])
def test_a_model_may_say_that_it_is_not_there(answer: str) -> None:
    assert not ground(answer, SHOWN).held


def test_who_says_that_it_is_not_there_and_quotes_it_is_believed_by_the_quote() -> None:
    assert ground('NOT IN THE DOCUMENTS\nQUOTE [1] "a rope was in its propeller"', SHOWN).held


def test_an_answer_that_speaks_of_quotes_keeps_its_words() -> None:
    assert (
        ground("Quotes are not needed.\nQuoted prices hold.", SHOWN).text
        == "Quotes are not needed.\nQuoted prices hold."
    )


WORDS = FERRY.text.split()


@given(st.integers(0, len(WORDS)), st.integers(0, len(WORDS)))
def test_any_stretch_of_a_passage_is_believed_unless_it_is_too_short(one: int, two: int) -> None:
    stretch = " ".join(WORDS[min(one, two) : max(one, two)])
    found = ground(f'x\nQUOTE [1] "{stretch}"', SHOWN)
    assert {dropped.why for dropped in found.dropped} <= {"it is too short to prove anything"}


@given(st.permutations(WORDS[:6]))
def test_other_orders_of_the_same_words_are_not(words: list[str]) -> None:
    found = ground(f'x\nQUOTE [1] "{" ".join(words)}"', SHOWN)
    assert bool(found.quotes) == (words == WORDS[:6])


ANSWERS = st.sampled_from(
    [
        "A rope.\n",
        "Quite so.\n",
        "N",
        "\n\n",
        'QUOTE [1] "a rope"\n',
        "Quoted.\n",
        "  Q\n",
        "NOT IN THE DOCUMENTS",
        "No.\n",
    ]
)


@given(st.lists(ANSWERS, max_size=6), st.data())
def test_what_is_shown_while_it_comes_does_not_depend_on_how_it_is_cut(parts: list[str], data: st.DataObject) -> None:
    answer = "".join(parts)
    whole: list[str] = []
    spoken = Spoken(whole.append)
    spoken.feed(answer)
    spoken.end()
    pieces: list[str] = []
    spoken = Spoken(pieces.append)
    at = 0
    while at < len(answer):
        step = data.draw(st.integers(1, 7))
        spoken.feed(answer[at : at + step])
        at += step
    spoken.end()
    assert "".join(pieces) == "".join(whole)
    assert not any(line.lstrip().startswith("QUOTE [") for line in "".join(whole).splitlines())
    assert "".join(whole) in answer


def test_text_is_shown_as_soon_as_it_cannot_be_a_quote_any_more() -> None:
    shown: list[str] = []
    spoken = Spoken(shown.append)
    spoken.feed("Qu")
    assert shown == []
    spoken.feed("ite")
    spoken.feed(" so")
    assert shown == ["Quite", " so"]


def test_line_ends_before_quotes_are_not_shown() -> None:
    shown: list[str] = []
    spoken = Spoken(shown.append)
    for piece in ("One.\n", "\nTwo.", "\n\n", 'QUOTE [1] "a rope"'):
        spoken.feed(piece)
    spoken.end()
    assert "".join(shown) == "One.\n\nTwo."
