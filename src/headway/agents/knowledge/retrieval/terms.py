"""Terms: what a text is known by where words are compared, for English, Korean and what is written like them."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
"""Kana, Han and Hangul: what is one word there, or its stem, no space tells."""
SCRIPTS: Final = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
"""A character of them."""

STOP: Final = frozenset(
    (  # noqa: SIM905 - a list of two hundred strings cannot be read
        "a about after all am an and any are as at be been before being by can could did do does doing done "
        "during each for from get had has have having he her his how i if in into is it its itself many may "
        "me might more most much must my no not of on one or other our out over shall she should so some such "
        "than that the their them then there these they this those through to under until up us was we were "
        "what when where which while who whom whose why will with within without would you your "
        "무엇 엇을 엇이 엇인 언제 어디 디에 누가 누구 얼마 마나 어떻 떻게 어떤 습니 니까 입니 인가 나요 가요"
    ).split()
)
"""Words that a question is asked with, not what it is about; the Korean ones in pairs of characters."""


def terms(text: str) -> list[str]:
    """The terms of a text, in order: words in the singular; of scripts without spaces each pair of characters.

    Korean joins particles and endings to its words. Pairs of characters find a word whatever is joined to it, without a
    dictionary; a word of one character is a term only where it stands alone.
    """
    return [term for term in _terms(text) if term not in STOP]


def _terms(text: str) -> Iterator[str]:
    for word in WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        for part in SCRIPTS.findall(word):
            if not UNSPACED.match(part):
                yield _singular(part)
            elif len(part) == 1:
                yield part
            else:
                yield from (one + two for one, two in pairwise(part))


def _singular(word: str) -> str:
    """An English word without its plural's ending, by the rules of Harman's S-stemmer (JASIS 42, 1991)."""
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y" if len(word) > 4 else word  # noqa: PLR2004 - "ties", "dies"
    if word.endswith("s") and not word.endswith(("us", "ss", "aes", "ees", "oes")) and len(word) > 3:  # noqa: PLR2004 - "gas", "his"
        return word[:-1]
    return word
