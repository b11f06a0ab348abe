import pytest

from headway.trace.sources.fields.failures import failure


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("openai.RateLimitError: Error code: 429 - key sk-abc", "RateLimitError"),
        ("GraphInterrupt((Interrupt(value='Sure?'),))", "GraphInterrupt"),
        ("Traceback (most recent call last):\n  File x\nValueError: bad", "ValueError"),
        ("it broke", "error"),
        ("", "error"),
        (None, "error"),
        (7, "error"),
        ("x" * 5000 + " ValueError", "error"),  # only the beginning is looked at
    ],
)
def test_the_first_name_of_an_exception_is_the_word(text: object, word: str) -> None:
    assert failure(text) == word
