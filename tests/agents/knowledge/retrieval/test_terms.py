from hypothesis import given
from hypothesis import strategies as st

from headway.agents.knowledge.retrieval.terms import terms


def test_english_words_stand_in_the_singular_without_what_only_asks() -> None:
    assert terms("Which KEYS expired? Policies, boxes; the glass bus.") == [
        "key",
        "expired",
        "policy",
        "boxe",  # no dictionary: what matters is that "boxes" is always the same term
        "glass",
        "bus",
    ]


def test_words_with_figures_stay_whole() -> None:
    assert terms("error E1234 at 05:35") == ["error", "e1234", "05", "35"]


def test_korean_is_pairs_of_characters_so_that_particles_do_not_matter() -> None:
    assert terms("부두가") == ["부두", "두가"]
    assert set(terms("부두를")) & set(terms("부두에서")) == {"부두"}


def test_a_korean_word_of_one_character_counts_where_it_stands_alone() -> None:
    assert terms("이 배 wifi공유기 ") == ["이", "배", "wifi", "공유", "유기"]


def test_what_only_asks_in_korean_is_left_out() -> None:
    assert terms("언제 쉬나요") == ["쉬나"]


def test_decomposed_hangul_is_the_same_word() -> None:
    composed, decomposed = "등대", "\u1103\u1173\u11bc\u1103\u1162"
    assert terms(decomposed) == terms(composed) == ["등대"]


@given(st.text())
def test_any_text_has_terms_that_search_can_quote(text: str) -> None:
    assert all(term and '"' not in term and not term.isspace() for term in terms(text))
