"""Support: whether what was found can hold an answer at all, before a model is asked."""

from collections.abc import Mapping, Sequence
from typing import Final

from headway.agents.knowledge.embed import E5Embedder
from headway.agents.knowledge.retrieval.index import Passage
from headway.agents.knowledge.retrieval.terms import UNSPACED

COVERED: Final = 0.05
"""What it is worth that a passage holds all of the question's terms, in cosine."""

THRESHOLDS: Final[Mapping[str, float]] = {E5Embedder.name: 0.838}
"""By embedding model: with less support a question is refused; chosen by `headway refusal` on the shipped questions."""


def support(found: Sequence[Passage]) -> float:
    """The most of any passage: its cosine to the question, and up to `COVERED` for the question's terms that it holds.

    Cosines of different models cannot be compared, so neither can their support.
    """
    return max(passage.nearness + COVERED * passage.coverage for passage in found)


def comparable(question: str, found: Sequence[Passage]) -> bool:
    """Whether a threshold says anything: some passage is written as the question is, with spaces or without them.

    A Korean question is far from all English passages, also from the one that answers it; and no threshold for that is
    calibrated.
    """
    unspaced = bool(UNSPACED.search(question))
    return any(bool(UNSPACED.search(passage.chunk.text)) is unspaced for passage in found)
