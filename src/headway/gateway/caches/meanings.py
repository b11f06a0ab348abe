"""Questions that mean the same: found off the event loop, and given answers for only once the error was measured."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Raw, Struct

from headway.gateway.caches.outcomes import Ticket
from headway.gateway.caches.worker import Worker
from headway.policy.cache.agreement import agreement
from headway.policy.cache.kept import Kept
from headway.policy.cache.keys import CacheKey
from headway.policy.cache.question import Question, question
from headway.policy.cache.rules import CacheRule
from headway.policy.cache.shadow import ShadowFigures

if TYPE_CHECKING:
    from headway.policy.cache.nearest import Near, NearestQuestions, Vector

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
_AT_ONCE: Final = 8
"""Questions that wait to be understood; one takes some 15 to 80 ms of two cores."""
_TEXT_CHARS: Final = 2000
"""About what the bundled model reads of a text."""
_SAMPLED: Final = 20
"""While answers are given by meaning, every so many that could be are still asked, so that the error stays known."""
_SCOPES: Final = 4096
"""Tenants and rules whose error is remembered; those seen longest ago are measured anew."""


class Found(Struct, frozen=True):
    """What a question means, and the nearest that was asked before."""

    meaning: "Vector"
    near: "Near"


class Meanings:
    """The questions of all rules that compare by meaning.

    The index is only ever touched by the worker's thread, the rest only by the event loop.

    Args:
        embed: a text's meaning, as a vector of length 1; called on a thread, one call at a time.
        limit: bytes of all questions of one rule.
    """

    def __init__(self, embed: Callable[[str], "Vector"], limit: int) -> None:
        self._embed = embed
        self._limit = limit
        self.worker = Worker("meanings", _AT_ONCE)
        self._indexes: dict[str, NearestQuestions] = {}
        self._shadows: OrderedDict[tuple[str, str], ShadowFigures] = OrderedDict()
        self._thresholds: dict[str, float] = {}
        """By which each rule's error was measured; it is measured anew where another counts."""
        self._faulty = False

    def question(self, rule: CacheRule, scope: str, route: str, fields: dict[str, Raw]) -> Question | None:
        """What is asked; ``None``: the rule does not compare by meaning, or it is no question in words."""
        if rule.mode not in {"semantic", "shadow"}:
            return None
        asked = question(scope, route, fields)
        return None if asked is None or len(asked.text) > _TEXT_CHARS else asked

    def may_serve(self, rule: CacheRule, scope: str) -> bool:
        """Whether answers are given by meaning already."""
        return rule.mode == "semantic" and self._shadow(rule, scope).may_serve(rule.error)

    def find(self, rule: CacheRule, asked: Question, then: Callable[[Found | None], None]) -> bool:
        """Have the nearest question looked for; False: too many are."""
        return self.worker.do(partial(self._find, rule, asked), partial(self._told, then))

    def judge(self, rule: CacheRule, scope: str, *, found: bool) -> bool:
        """A question was looked for; whether the answer found is to be given."""
        shadow = self._shadow(rule, scope)
        shadow.asked += 1
        shadow.would_serve += found
        return found and self.may_serve(rule, scope) and shadow.would_serve % _SAMPLED != 0

    def learn(self, ticket: Ticket) -> None:
        """A question was answered: remember it, and see whether what could have been given says the same."""
        asked, meaning, near, fresh = ticket.question, ticket.meaning, ticket.near, ticket.fresh
        if asked is None or meaning is None or fresh is None:
            return
        if not ticket.void:
            self.worker.do(partial(self._add, ticket.rule, asked, meaning, ticket.key), self._done)
        if near is not None:
            compare = partial(self._same, ticket.rule, near, fresh)
            self.worker.do(compare, partial(self._told, partial(self._compared, ticket.rule, ticket.scope)))

    def forget(self, rule: CacheRule, asked: Question, key: CacheKey) -> None:
        """The answer under ``key`` is not kept any more."""
        self.worker.do(lambda: self._index(rule).forget(asked.setting, key), self._done)

    def shadows(self) -> dict[str, ShadowFigures]:
        """What was measured, by rule, of all tenants together."""
        sums: dict[str, ShadowFigures] = {}
        for (rule, _), one in self._shadows.items():
            total = sums.setdefault(rule, ShadowFigures())
            total.asked += one.asked
            total.would_serve += one.would_serve
            total.agreed += one.agreed
            total.differed += one.differed
        return sums

    async def close(self) -> None:
        """Have the thread end."""
        await self.worker.close()

    # --- on the event loop

    def _shadow(self, rule: CacheRule, scope: str) -> ShadowFigures:
        """A tenant's own: what others ask says nothing of its questions, nor can they make its error look small."""
        key = (rule.name, scope)
        if self._thresholds.setdefault(rule.name, rule.threshold) != rule.threshold:
            self._thresholds[rule.name] = rule.threshold
            for measured in [known for known in self._shadows if known[0] == rule.name]:
                del self._shadows[measured]
        shadow = self._shadows.setdefault(key, ShadowFigures())
        self._shadows.move_to_end(key)
        if len(self._shadows) > _SCOPES:
            self._shadows.popitem(last=False)
        return shadow

    def _compared(self, rule: CacheRule, scope: str, same: bool | None) -> None:
        shadow = self._shadow(rule, scope)
        if same is not None:
            shadow.agreed += same
            shadow.differed += not same

    def _told(self, then: Callable[[_T | None], None], outcome: _T | Exception) -> None:
        if isinstance(outcome, Exception):
            self._fault(outcome)
            then(None)
        else:
            then(outcome)

    def _done(self, outcome: object) -> None:
        if isinstance(outcome, Exception):
            self._fault(outcome)

    def _fault(self, error: Exception) -> None:
        """Told without the exception's message, which may hold what was asked."""
        if not self._faulty:
            self._faulty = True
            _log.error("a question could not be compared by meaning (%s); its call is made", type(error).__name__)

    # --- on the thread

    def _index(self, rule: CacheRule) -> "NearestQuestions":
        index = self._indexes.get(rule.name)
        if index is None:
            from headway.policy.cache.nearest import NearestQuestions  # noqa: PLC0415 - numpy is an extra's

            index = self._indexes[rule.name] = NearestQuestions(rule.threshold, self._limit)
        index.threshold = rule.threshold
        return index

    def _find(self, rule: CacheRule, asked: Question) -> Found:
        meaning = self._embed(asked.text)
        return Found(meaning, self._index(rule).find(asked, meaning))

    def _add(self, rule: CacheRule, asked: Question, meaning: "Vector", key: CacheKey) -> None:
        self._index(rule).add(asked, meaning, key)

    def _same(self, rule: CacheRule, near: Kept, fresh: Kept) -> bool:
        match agreement(near.answer, fresh.answer):
            case "same":
                return True
            case "different":
                return False
            case "open":
                one, other = (self._embed(kept.answer.content[:_TEXT_CHARS]) for kept in (near, fresh))
                return float(one @ other) >= rule.threshold
