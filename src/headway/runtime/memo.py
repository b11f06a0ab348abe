"""What a task has paid for, by a key that is the same when it runs again: what is finished is given again."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Literal, Protocol

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError
from headway.core.task import TaskId
from headway.runtime.purse import NOTHING, Amount

State = Literal[
    "intent",  # about to be made, or under way
    "done",
    "failed",  # ended by an error, which is no result: it may be made again
]


class Row(Struct, frozen=True, kw_only=True, gc=False):
    """A paid call."""

    key: str
    state: State
    amount: Amount
    """What it may take at most while it is under way; what it took when it is done or has failed. Earlier attempts at
    it are counted in."""
    value: bytes = b""
    """What came of it, as MessagePack; empty unless it is done."""


class Ledger(Protocol):
    """Where the paid calls of tasks are kept. `headway.runtime.ledger.GroupedLedger` is one."""

    async def rows(self, task: TaskId) -> list[Row]:
        """All that is known of a task's calls.

        Raises:
            StoreError: it cannot be read now.
        """
        ...

    async def write(self, task: TaskId, row: Row) -> None:
        """Keep a row in place of what had its key; when this returns, killing the process no longer undoes it.

        Raises:
            StoreError: it cannot be written now.
        """
        ...


class Memo:
    """The paid calls of one task.

    Args:
        task: the task.
        rows: what is known from before.
        ledger: where they are kept beyond this process; ``None``: nowhere.
    """

    def __init__(self, task: TaskId, rows: Iterable[Row] = (), ledger: Ledger | None = None) -> None:
        self._task = task
        self._ledger = ledger
        self._rows = {row.key: row for row in rows}
        self.in_doubt = tuple(row.key for row in self._rows.values() if row.state == "intent")
        """Calls that were under way when an earlier process died."""
        self._earlier: dict[str, Amount] = {}
        self._before: dict[str, Amount] = {}
        for row in self._rows.values():
            for place in _places(row.key):
                self._before[place] = self._before.get(place, NOTHING) + row.amount

    def spent_before(self, path: str) -> Amount:
        """What calls at ``path`` and below took in earlier processes; one in doubt counts as the most it can have."""
        return self._before.get(path, NOTHING)

    def find(self, key: str) -> Row | None:
        """What is known of a call."""
        return self._rows.get(key)

    async def intend(self, key: str, most: Amount) -> None:
        """A call is about to be made."""
        self._earlier[key] = self._rows[key].amount if key in self._rows else NOTHING
        await self._keep(key, "intent", most)

    async def finish(self, key: str, used: Amount, value: bytes) -> None:
        """It gave a result."""
        await self._keep(key, "done", used, value)

    async def fail(self, key: str, used: Amount) -> None:
        """It gave none."""
        await self._keep(key, "failed", used)

    async def _keep(self, key: str, state: State, amount: Amount, value: bytes = b"") -> None:
        row = Row(key=key, state=state, amount=self._earlier[key] + amount, value=value)
        if self._ledger is not None:
            await self._ledger.write(self._task, row)
        self._rows[row.key] = row


def key_of(path: str, name: str, asked: object) -> str:
    """The key of a call: where in the task it is made, and a digest of what is asked.

    Raises:
        BadInputError: what is asked cannot be written as JSON.
    """
    try:
        text = msgspec.json.encode(asked, order="deterministic")
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInputError(
            f"What {name} is asked cannot be written as JSON: {error}.",
            fix="Ask with numbers, text, lists, dicts, dataclasses or Structs.",
        ) from error
    return f"{path}|{name}|{blake2b(text, digest_size=12).hexdigest()}"


def _places(key: str) -> list[str]:
    path = key.partition("|")[0]
    ends = [at for at, letter in enumerate(path) if letter == "/"]
    return [path[:at] for at in ends] + [path]
