"""Two replicas asked the same at the same time, because the first was late: whichever begins first goes on alone."""

from typing import Final

from msgspec import structs

from headway.core.span import HEDGED, ErrorType, Receipt
from headway.gateway.attempt import Attempt
from headway.gateway.errand import Errand


class Race:
    """Two attempts of one call until one of them is over, and what the record says of them.

    Args:
        errand: the call.
        first: the attempt that was late.
        rival: the one beside it.
    """

    def __init__(self, errand: Errand, first: Attempt, rival: Attempt) -> None:
        self._errand = errand
        self._first: Final = first
        self.rival: Final = rival

    def start(self, receipt: Receipt) -> None:
        """Send the call to the second replica; ``receipt``: why to that one."""
        record = self._errand.record
        self._receipt, record.receipt = record.receipt, receipt
        self.rival.start()  # what it notes about its own asking is on its own receipt
        self._receipt, record.receipt = record.receipt, self._receipt

    def other(self, attempt: Attempt) -> Attempt:
        """Than ``attempt``."""
        return self._first if attempt is self.rival else self.rival

    def settle(self, winner: Attempt, error: ErrorType, now: float) -> Attempt:
        """``winner`` goes on alone.

        Args:
            winner: one of the two.
            error: what the other one is over for, `HEDGED` where it was only slower.
            now: epoch seconds.

        Returns:
            The other one.
        """
        record, first, rival = self._errand.record, self._first, self.rival
        receipt = self._receipt if winner is rival else record.receipt
        late = f"{first.replica.id} had not begun to answer after {rival.begun - first.begun:.2f} s"
        outcome = f"{winner.replica.id} began first" if error == HEDGED else f"{winner.replica.id} went on alone"
        note = f"{late}, so {rival.replica.id} was asked too; {outcome}."
        if receipt is not None:
            record.receipt = structs.replace(receipt, notes=(*receipt.notes, note))
        loser = self.other(winner)
        # Up to the second asking the call was in vain at the first replica; what came after lies beside the answer.
        loser.set_back(error, rival.begun if loser is first else now)
        winner.claim()
        return loser
