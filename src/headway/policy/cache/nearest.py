"""Of the questions asked before in the same setting, the nearest in meaning that no guard holds apart."""

from collections import OrderedDict
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from headway.core.errors import BadInputError
from headway.policy.cache.guards import Guard, Marks, disagreement, marks
from headway.policy.cache.keys import CacheKey
from headway.policy.cache.question import Question

Vector = NDArray[np.float32]
"""A meaning, of length 1."""

_CONSIDERED: Final = 8
"""Questions nearer than the threshold that are compared by their marks, nearest first."""
_STRUCTURES: Final = 1024
"""Bytes that a question takes beside its vector, its text's marks included."""


class Near(Struct, frozen=True, kw_only=True):
    """What was found for a question."""

    key: CacheKey | None
    """Under which the nearest question's answer is kept; ``None``: there is none near enough that agrees."""
    similarity: float | None
    """Cosine, of that question, or of the nearest at all; ``None``: nothing was ever asked in this setting."""
    held_apart: Guard | None = None
    """The guard that refused the nearest question beyond the threshold, if one did."""


class _Asked(Struct):
    keys: list[CacheKey]
    marks: list[Marks]
    vectors: list[Vector]


class NearestQuestions:
    """The questions whose answers are kept, bounded in bytes; the settings used longest ago are forgotten first.

    Args:
        threshold: cosine from which on two questions may mean the same, 0 to 1.
        limit: bytes of all questions together.

    Raises:
        BadInputError: an argument is out of its range.
    """

    def __init__(self, threshold: float, limit: int) -> None:
        if not 0 < threshold <= 1:
            raise BadInputError(f"A similarity of {threshold} is no threshold.", fix="Give one above 0, at most 1.")
        if limit <= 0:
            raise BadInputError(f"{limit} bytes hold no question.", fix="Give it room, or leave it out.")
        self.threshold = threshold
        self.limit = limit
        self.size = 0
        """Bytes now."""
        self._settings: OrderedDict[CacheKey, _Asked] = OrderedDict()

    def find(self, asked: Question, meaning: Vector) -> Near:
        """The nearest question in ``asked.setting``."""
        before = self._settings.get(asked.setting)
        if before is None:
            return Near(key=None, similarity=None)
        self._settings.move_to_end(asked.setting)
        similarities = np.asarray(before.vectors) @ meaning
        order = np.argsort(-similarities, kind="stable")[:_CONSIDERED]
        its, held_apart = marks(asked.text), None
        for index in map(int, order):
            if similarities[index] < self.threshold:
                break
            guard = disagreement(its, before.marks[index])
            if guard is None:
                return Near(key=before.keys[index], similarity=float(similarities[index]), held_apart=held_apart)
            held_apart = held_apart or guard
        return Near(key=None, similarity=float(similarities[order[0]]), held_apart=held_apart)

    def add(self, asked: Question, meaning: Vector, key: CacheKey) -> None:
        """Remember that the answer to this question is kept under ``key``."""
        setting = self._settings.setdefault(asked.setting, _Asked([], [], []))
        self._settings.move_to_end(asked.setting)
        if key in setting.keys:
            self._remove(asked.setting, key)
            setting = self._settings.setdefault(asked.setting, setting)
        setting.keys.append(key)
        setting.marks.append(marks(asked.text))
        setting.vectors.append(meaning)
        self.size += meaning.nbytes + _STRUCTURES
        while self.size > self.limit:
            oldest, questions = next(iter(self._settings.items()))
            self._remove(oldest, questions.keys[0])

    def forget(self, setting: CacheKey, key: CacheKey) -> None:
        """The answer is not kept any more."""
        questions = self._settings.get(setting)
        if questions is not None and key in questions.keys:
            self._remove(setting, key)

    def _remove(self, setting: CacheKey, key: CacheKey) -> None:
        questions = self._settings[setting]
        index = questions.keys.index(key)
        self.size -= questions.vectors[index].nbytes + _STRUCTURES
        del questions.keys[index], questions.marks[index], questions.vectors[index]
        if not questions.keys:
            del self._settings[setting]
