"""What a record says that a task took in all, where its calls do not tell their parts."""

from typing import Literal

from msgspec import structs

from headway.core.span import Step, Work
from headway.core.spent import Spent, Sum

Told = Literal["tokens", "cost"]


def in_all(root: Work, calls: Spent) -> Spent:
    """What a task took: the sums over its calls, and where these are not known, the record's own total.

    A total that is less than what the calls tell already is not used.

    Args:
        root: the work that covers the task.
        calls: the sums over its calls.
    """
    if type(root) is not Step or (root.used is None and root.cost is None):
        return calls
    spent = calls
    if root.used is not None:
        read, written = root.used.input_tokens, root.used.output_tokens
        all_read, cached = _total(read, calls.input_tokens), _total(root.used.cache_read, calls.cache_read)
        spent = structs.replace(
            calls,
            input_tokens=all_read,
            output_tokens=_total(written, calls.output_tokens),
            tokens=_total(None if read is None or written is None else read + written, calls.tokens),
            cache_read=cached,
            cache_told=all_read if calls.cache_told.exact is None and cached.exact is not None else calls.cache_told,
        )
    return structs.replace(spent, cost=_total(root.cost, calls.cost))


def told_in_all(calls: Spent, task: Spent) -> tuple[Told, ...]:
    """Which of the sums are the record's own totals.

    Args:
        calls: the sums over the calls.
        task: the same `in_all`.
    """
    tokens = calls.input_tokens != task.input_tokens or calls.output_tokens != task.output_tokens
    return (*(("tokens",) if tokens else ()), *(("cost",) if calls.cost != task.cost else ()))


def _total(recorded: int | None, calls: Sum) -> Sum:
    usable = recorded is not None and calls.exact is None and recorded >= calls.total
    return Sum(recorded or 0, calls.of, calls.of) if usable else calls
