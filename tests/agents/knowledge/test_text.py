import pytest

from headway.agents.knowledge.text import about_tokens, one_line


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("집", 1), ("집집", 2)])
def test_a_token_is_about_four_bytes_rounded_up(text: str, tokens: int) -> None:
    assert about_tokens(text) == tokens


def test_one_line_joins_white_space_and_drops_control_characters() -> None:
    assert one_line(" a\n\tb\u00a0c\x1b[31m ") == "a b c [31m"
