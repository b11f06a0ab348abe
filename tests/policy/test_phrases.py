"""Texts are found inside other texts, by digest alone."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headway.policy.phrases import MAX_PIECES, MIN_TEXT, holds, known, piece, pieces, strings

ANSWER = "The cheapest flight leaves at nine. It costs 120 euros and has two free seats\nShall I book it?"


def found(text: str, wanted: str) -> bool:
    one = piece(wanted)
    keys = dict.fromkeys(one.keys)
    return any(holds(text, fragment, one) for fragment in known(text, (text,), keys.keys()))


AROUND = ["{}", "Result: {}", "<result>{}</result>", 'He said "{}".', "{}\n\nGo on."]


@pytest.mark.parametrize("around", [*AROUND, "- a\n- {}\n- c"])
def test_a_text_is_found_in_whatever_template(around: str) -> None:
    assert found(around.format(ANSWER), ANSWER)


@pytest.mark.parametrize("around", AROUND)
def test_a_text_of_one_sentence_is_found_after_punctuation(around: str) -> None:
    wanted = "WebSurfer, search for whales in Maui and open the first page"
    assert found(around.format(wanted), wanted)


@pytest.mark.parametrize(
    "other", ["", ANSWER[:-1], ANSWER.replace("two", "ten"), ANSWER.replace("\n", " "), ANSWER[10:]]
)
def test_a_text_that_differs_by_a_letter_is_not_found(other: str) -> None:
    assert not found(other, ANSWER)


@given(st.text(min_size=MIN_TEXT), st.text(max_size=40), st.text(max_size=40))
def test_what_is_found_is_contained(wanted: str, before: str, after: str) -> None:
    assume(wanted.strip() == wanted)
    assert found(wanted, wanted)
    text = before + after
    if found(text, wanted):
        assert wanted in text


@given(
    st.lists(st.text("abcdefgh ,", min_size=20, max_size=60), min_size=3, max_size=6),
    st.text("xyz\n.: "),
    st.text("xyz\n.: "),
)
def test_a_text_of_several_sentences_is_found_between_any_others(parts: list[str], before: str, after: str) -> None:
    wanted = ". ".join(part.strip(" ,") or "something" for part in parts)
    assume(max(len(part) for part in wanted.split(".")[1:-1]) >= 16)
    assert found(before + wanted + after, wanted)


def test_strings_inside_json_tags_and_fences_are_texts_of_their_own() -> None:
    long, short = "Search the web for whale watching tours in Maui", "yes"
    assert pieces(json.dumps({"next": {"answer": long, "sure": True, "n": [1, None, short]}}))[1:] == [long]
    assert pieces(f"I think so. <summary>\n{long}\n</summary>")[1:] == [long]
    assert pieces(f'Here is it:\n```json\n{{"answer": "{long}"}}\n```')[1:] == [f'{{"answer": "{long}"}}', long]
    assert pieces("a short one") == []
    assert len(pieces(json.dumps([f"{long} {n}" for n in range(50)]))) == MAX_PIECES


def test_what_is_not_json_has_no_strings() -> None:
    assert strings("{oh no") == []
    assert strings("[" * 10_000 + "]" * 10_000) == []
    assert strings('"\ud800"') == []
