"""The one sentence that answers "where did the time go?"."""

from headway.app.report.figures import decimals_for, per_cent, plural, printable, seconds
from headway.app.report.legend import SIGNS
from headway.app.report.worth import worth_showing
from headway.core.span import ModelCall
from headway.trace.account import TaskAccount
from headway.trace.anatomy import Anatomy
from headway.trace.findings.figures import share
from headway.trace.findings.hidden import NO_TIMES
from headway.trace.phases import Phase, never_sent

_MUCH_LATER = 2.0
"""From this ratio on, one call's TTFT says little about what the user waited for."""


def headline(account: TaskAccount) -> str:
    """What dominates, of how long, over how many calls, and what the user waited for against what one call shows."""
    anatomy = account.anatomy
    if not account.verdict.timed:
        found = [finding.title for finding in account.findings if finding.name != NO_TIMES]
        return " ".join([_untimed(account), *map(printable, found[:1])])
    decimals = decimals_for(anatomy.e2e)
    failure = _failure(anatomy, decimals)
    if failure is not None:  # nothing that would save time would have given the answer
        return f"{failure}. {_whole(account, decimals)}."
    return f"{_whole(account, decimals)}; {_first_output(anatomy, decimals)}.{_lever(account, decimals)}"


def _untimed(account: TaskAccount) -> str:
    """What can be said of a task where nothing tells how long each thing took, or when it was."""
    verdict, calls = account.verdict, plural(account.anatomy.calls, "model call")
    if verdict.extent is not None:
        extent = seconds(verdict.extent, decimals_for(verdict.extent))
        whose = "it" if account.anatomy.calls == 1 else "each of them"
        return f"{calls} in a record of {extent}, which does not tell how long {whose} took."
    missing = "when things happened" if verdict.timing == "durations" else "how long anything took"
    return f"{calls}; {missing} is not in this record."


def _lever(account: TaskAccount, decimals: int) -> str:
    """The change that would save most, where one is worth showing."""
    shown = worth_showing(account.levers).levers
    if not shown:
        return ""
    best = shown[0]
    saves = f"{seconds(best.seconds, decimals)} ({per_cent(best.share)})"
    return f" What would save most: {printable(best.name)}, {saves}."


def _whole(account: TaskAccount, decimals: int) -> str:
    anatomy = account.anatomy
    e2e = f"{seconds(anatomy.e2e, decimals)} end to end"
    if anatomy.e2e > 0 and anatomy.phases:
        phase = max(anatomy.phases, key=lambda phase: anatomy.phases[phase])
        e2e += f", {share(anatomy.phases[phase], anatomy.e2e)} of it {_noun(account, phase)}"
    if not anatomy.n:
        return f"{e2e}, with no model call on the critical path"
    over = f"over {plural(anatomy.n, 'model call')}" + (" one after another" if anatomy.n > 1 else "")
    return f"{e2e}, {over}" + (f" ({anatomy.calls:,} in all)" if anatomy.calls != anatomy.n else "")


def _noun(account: TaskAccount, phase: Phase) -> str:
    """What a phase is; of calls whose first token was not timed, how much of them writing takes, where it is found."""
    if phase is Phase.MODEL:
        writing = next((one for one in account.findings if one.name == "writing-dominates"), None)
        if writing is not None and writing.seconds is not None:
            return f"model time (writing takes about {per_cent(writing.seconds / account.anatomy.e2e)} of the whole)"
    return SIGNS[phase].noun


def _first_output(anatomy: Anatomy, decimals: int) -> str:
    task, call = anatomy.task_ttft, anatomy.last_call_ttft
    if task is None and anatomy.task_ttft_most is not None:
        user = f"the user saw the first output after ≤ {seconds(anatomy.task_ttft_most, decimals)}"
    elif task is None:
        user = "when the user saw the first output is unknown"
    else:
        user = f"the user saw the first output after {seconds(task, decimals)}"
    if call is None or anatomy.n <= 1:
        return user
    but = "though" if task is not None and task > _MUCH_LATER * call else "and"
    return f"{user}, {but} the last call began to answer within {seconds(call, decimals)}"


def _failure(anatomy: Anatomy, decimals: int) -> str | None:
    """How the loop's last call failed, and what the user saw of its answer; ``None``: it did not."""
    id_ = anatomy.iterations[-1].span if anatomy.iterations else None
    last = next((bar.span for bar in anatomy.bars if bar.span.id == id_), None)
    if last is None or last.error is None:
        return None
    error, call = printable(last.error), last.work if isinstance(last.work, ModelCall) else None
    begun = call is not None and call.first_visible is not None
    refused = call is not None and never_sent(call)
    what = "The answer broke off" if begun else "The last call was refused" if refused else "The last call failed"
    if anatomy.task_ttft is None:
        return f"{what} ({error}), so the user saw no answer"
    first = f"the user saw the first output after {seconds(anatomy.task_ttft, decimals)}"
    end = _broke_off(anatomy, call)
    if end is not None and seconds(end, decimals) != seconds(anatomy.task_ttft, decimals):
        return f"{what} ({error}): {first}, the last after {seconds(end, decimals)}, then no more"
    return f"{what} ({error}): {first}, then no more"


def _broke_off(anatomy: Anatomy, call: ModelCall | None) -> float | None:
    """Seconds until the last output of an answer that broke off; ``None``: none was seen, or it was not timed."""
    if call is None or call.first_visible is None or call.last_token is None:
        return None
    return call.last_token - anatomy.started_at
