"""Work that is stopped because nobody needs its result any more: the loser of a race, a vote after the verdict.

It has not failed, so what stops it says why, in the message of the cancellation, and what records it looks for that.
"""

import asyncio
from typing import Final

UNWANTED: Final = "not needed any more"
"""Message of a cancellation that is no failure."""
REMARK: Final = "It was stopped before its end, because its result was not needed any more."


def unwanted(error: BaseException) -> bool:
    """Whether ``error`` ends work only because it is not needed: its reader has left it, or it was told so."""
    match error:
        case GeneratorExit():
            return True
        case asyncio.CancelledError():
            return error.args == (UNWANTED,)
        case _:
            return False


def passed_on(error: BaseException) -> str | None:
    """The message for what is stopped because of ``error``: the same reason."""
    return UNWANTED if unwanted(error) else None
