"""Synthetic prompts: of about as many tokens as asked for, the same where they are to be the same, else never twice."""

import re
from hashlib import blake2b
from random import Random
from typing import Final

_WORDS: Final = re.findall(
    r"\w+",
    """
    nal the of and to in a is that for it as was with be by on not he his but at are this have from or had an
    they which one you were all her she there would their we him been has when who will no more if out so up
    said what its about than into them can only other time new some could these two may first then do any
    like my now over such our man me even most made after also did many off before must well back through
    years much where your way down should because long each just state those people too how little good make
    very year still own see work life here get both between day
    """,
)
"""Common words: tokenizers of today give each one token, with the space before it."""


def words(tokens: int, seed: str) -> str:
    """A text of about ``tokens`` tokens; the same ``seed`` gives the same text, and a longer one begins with a shorter.

    No tokenizer is asked: what an engine makes of it is told by its own ``usage``.
    """
    dice = Random(blake2b(seed.encode(), digest_size=8).digest())  # noqa: S311 - filler, and repeatable on purpose
    return " ".join(dice.choices(_WORDS, k=max(tokens, 1)))
