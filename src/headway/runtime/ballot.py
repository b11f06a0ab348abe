"""Votes, until so many agree or nobody can win any more."""

from typing import Final, Generic, TypeVar

from headway.core.errors import BadInputError, NoQuorumError
from headway.runtime.scatter import Failure, Success

R = TypeVar("R")
_SHOWN: Final = 60
"""Characters of a verdict in an error."""


class Ballot(Generic[R]):
    """Counts verdicts that are equal (``==``); a vote that failed counts for none.

    Raises:
        BadInputError: ``quorum`` is not from 1 to ``votes``.
    """

    def __init__(self, name: str, votes: int, quorum: int) -> None:
        if not 1 <= quorum <= votes:
            raise BadInputError(f"quorum={quorum} of votes={votes} makes no sense.", fix="It is from 1 to votes.")
        self._name = name
        self._votes = votes
        self._quorum = quorum
        self._tally: list[list[Success[R]]] = []
        self._failures: list[Failure] = []
        self.winner: Success[R] | None = None
        """The vote that made the quorum."""

    def cast(self, vote: Success[R] | Failure) -> None:
        """Count a vote."""
        match vote:
            case Failure():
                self._failures.append(vote)
            case Success(value=value):
                same = next((votes for votes in self._tally if votes[0].value == value), None)
                if same is None:
                    self._tally.append(same := [])
                same.append(vote)
                if len(same) >= self._quorum:
                    self.winner = vote

    @property
    def hung(self) -> bool:
        """Whether no verdict can win any more, whatever those say who have not voted."""
        left = self._votes - len(self._failures) - sum(len(votes) for votes in self._tally)
        return max((len(votes) for votes in self._tally), default=0) + left < self._quorum

    def no_quorum(self) -> NoQuorumError:
        """How the votes were cast; its cause is the first that failed."""
        counts = ", ".join(f"{len(votes)} for {_short(votes[0].value)}" for votes in self._tally) or "none"
        error = NoQuorumError(
            f"{self._name}: no verdict reaches {self._quorum} of {self._votes} votes: {counts}; "
            f"{len(self._failures)} failed.",
            fix="Ask for a lower quorum or more votes, or for verdicts that can be equal.",
        )
        error.__cause__ = self._failures[0].error if self._failures else None
        return error


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
