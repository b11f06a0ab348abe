"""How fast each replica is: learnt from its first tokens and answers, a guess until it has answered."""

from typing import Final

from msgspec import Struct

from headway.core.fleet import ReplicaId
from headway.policy.regression import Regression

_OVERHEAD: Final = 0.02
_PREFILL: Final = 0.2
"""Seconds per 1,000 tokens: between an 8B model on a data centre GPU (0.02) and a small one on a CPU (2)."""
_BESIDE: Final = 0.01
_TOKEN: Final = 0.02
_TOKEN_BESIDE: Final = 0.001
_LEAST: Final = 1e-9
_THOUSAND: Final = 1000.0
_Row = tuple[tuple[float, ...], float]


class Pace(Struct, frozen=True, gc=False, kw_only=True):
    """Seconds that work takes at one replica."""

    overhead: float
    """From a request sent to its first token if there were nothing to compute and nobody else."""
    prefill: float
    """For each token of prefill, its own and those before it."""
    beside: float
    """Later first token for each call that is writing its answer."""
    token: float
    """Between two tokens of an answer, alone."""
    token_beside: float
    """More of that for each other call that is writing its answer."""
    known: bool
    """Whether anything of it was measured."""

    def first_token(self, work: float, beside: int) -> float:
        """Expected TTFT with ``work`` tokens to compute up to it, while ``beside`` calls are writing."""
        return self.overhead + self.prefill * work + self.beside * beside

    def answer(self, tokens: int, beside: int) -> float:
        """Expected seconds from first to last token."""
        return tokens * (self.token + self.token_beside * beside)


GUESS: Final = Pace(
    overhead=_OVERHEAD,
    prefill=_PREFILL / _THOUSAND,
    beside=_BESIDE,
    token=_TOKEN,
    token_beside=_TOKEN_BESIDE,
    known=False,
)


class _Learner:
    __slots__ = ("first", "rest")

    def __init__(self) -> None:
        # So vague a prior that a handful of calls outweighs it; most of the first surprise is put down to prefill.
        self.first = Regression((_OVERHEAD, _PREFILL, _BESIDE), (3.0, 10.0, 3.0))
        self.rest = Regression((_TOKEN, _TOKEN_BESIDE), (10.0, 3.0))

    def pace(self) -> Pace:
        overhead, prefill, beside = self.first.coefficients
        token, token_beside = self.rest.coefficients
        return Pace(
            overhead=max(overhead, 0.0),
            prefill=max(prefill / _THOUSAND, _LEAST),
            beside=max(beside, 0.0),
            token=max(token, _LEAST),
            token_beside=max(token_beside, 0.0),
            known=True,
        )


class Speeds:
    """The pace of every replica that has answered."""

    def __init__(self) -> None:
        self._learners: dict[ReplicaId, _Learner] = {}
        self.paces: dict[ReplicaId, Pace] = {}
        """Not to be changed; a replica that is not named is taken for `GUESS`."""

    def pace(self, replica: ReplicaId) -> Pace:
        """How fast ``replica`` is thought to be."""
        return self.paces.get(replica, GUESS)

    def first_token(self, replica: ReplicaId, seconds: float, work: int, beside: int) -> None:
        """A first token took ``seconds``, with ``work`` tokens computed up to it and ``beside`` calls writing."""
        self._learn(replica, first=((1.0, work / _THOUSAND, beside), seconds))

    def prefill(self, replica: ReplicaId, tokens: int, seconds: float) -> None:
        """The engine itself measured that ``tokens`` of prefill took ``seconds``."""
        self._learn(replica, first=((0.0, tokens / _THOUSAND, 0.0), seconds))

    def answer(self, replica: ReplicaId, seconds: float, tokens: int, beside: int) -> None:
        """The ``tokens`` after the first took ``seconds``, while ``beside`` other calls were writing."""
        if tokens > 0:
            self._learn(replica, rest=((1.0, beside), seconds / tokens))

    def streamed(
        self, replica: ReplicaId, seconds: float, work: int, beside: int, answer: tuple[float, int, int]
    ) -> None:
        """As `first_token`, and then as `answer` with what that is given."""
        took, tokens, others = answer
        rest = ((1.0, others), took / tokens) if tokens > 0 else None
        self._learn(replica, first=((1.0, work / _THOUSAND, beside), seconds), rest=rest)

    def whole(self, replica: ReplicaId, seconds: float, work: int, beside: int, tokens: int) -> None:
        """A call took ``seconds`` from sent to ended, and its first token was not seen.

        The time is split as the present estimates would split it; that is expectation-maximisation, a call at a time.
        """
        pace = self.pace(replica)
        first, rest = pace.first_token(work, beside), pace.answer(tokens, beside)
        share = first / (first + rest)
        self._learn(replica, first=((1.0, work / _THOUSAND, beside), seconds * share))
        self.answer(replica, seconds * (1.0 - share), tokens, beside)

    def forget(self, replica: ReplicaId) -> None:
        """``replica`` is another one from now on."""
        self._learners.pop(replica, None)
        self.paces.pop(replica, None)

    def _learn(self, replica: ReplicaId, *, first: _Row | None = None, rest: _Row | None = None) -> None:
        learner = self._learners.get(replica)
        if learner is None:
            learner = self._learners[replica] = _Learner()
        if first is not None:
            learner.first.observe(*first)
        if rest is not None:
            learner.rest.observe(*rest)
        self.paces[replica] = learner.pace()
