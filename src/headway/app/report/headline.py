"""The one sentence that answers "where did the time go?"."""

from headway.app.report.figures import decimals_for, plural, printable, seconds
from headway.app.report.legend import SIGNS
from headway.trace.account import TaskAccount
from headway.trace.anatomy import Anatomy

_MUCH_LATER = 2.0
"""From this ratio on, one call's TTFT says little about what the user waited for."""


def headline(account: TaskAccount) -> str:
    """What dominates, of how long, over how many calls, and what the user waited for against what one call shows."""
    anatomy = account.anatomy
    if not account.verdict.timed:
        return f"{plural(anatomy.calls, 'model call')}; when things happened is not in this record."
    decimals = decimals_for(anatomy.e2e)
    return f"{_whole(anatomy, decimals)}; {_first_output(anatomy, decimals)}."


def _whole(anatomy: Anatomy, decimals: int) -> str:
    e2e = f"{seconds(anatomy.e2e, decimals)} end to end"
    if anatomy.e2e > 0 and anatomy.phases:
        phase = max(anatomy.phases, key=lambda phase: anatomy.phases[phase])
        e2e += f", {anatomy.phases[phase] / anatomy.e2e * 100:.0f} % of it {SIGNS[phase].noun}"
    if not anatomy.n:
        return f"{e2e}, with no model call on the critical path"
    over = f"over {plural(anatomy.n, 'model call')}" + (" one after another" if anatomy.n > 1 else "")
    return f"{e2e}, {over}" + (f" ({anatomy.calls:,} in all)" if anatomy.calls != anatomy.n else "")


def _first_output(anatomy: Anatomy, decimals: int) -> str:
    task, call = anatomy.task_ttft, anatomy.last_call_ttft
    failed = _failed(anatomy)
    if failed is not None and task is not None:
        user = (
            f"the user saw the first output after {seconds(task, decimals)}, and then the last call failed ({failed})"
        )
    elif failed is not None:
        user = f"the last call failed ({failed}), so the user saw no answer"
    elif task is None:
        user = "when the user saw the first output is unknown"
    else:
        user = f"the user saw the first output after {seconds(task, decimals)}"
    if call is None or anatomy.n <= 1 or failed is not None:
        return user
    but = "though" if task is not None and task > _MUCH_LATER * call else "and"
    return f"{user}, {but} the last call began to answer within {seconds(call, decimals)}"


def _failed(anatomy: Anatomy) -> str | None:
    """The error of the loop's last call."""
    last = anatomy.iterations[-1].span if anatomy.iterations else None
    error = next((bar.span.error for bar in anatomy.bars if bar.span.id == last), None)
    return None if error is None else printable(error)
