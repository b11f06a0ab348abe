"""The options that say what a key, a tenant or a task may use."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headway.core.limits import CallerLimits, TaskLimits

_WARN = 'with a level that warns: "{} warn {}"'
Minute = Annotated[str | None, typer.Option("--rpm", help=f"Requests in any minute; {_WARN.format(60, 50)}.")]
TokensMinute = Annotated[str | None, typer.Option("--tpm", help="Tokens in any minute, e.g. 100k.")]
AtOnce = Annotated[str | None, typer.Option("--concurrency", help="Calls under way at once.")]
Day = Annotated[str | None, typer.Option("--day", help=f"Money in a day (UTC), e.g. {_WARN.format('5 USD', '4 USD')}.")]
Month = Annotated[str | None, typer.Option("--month", help='Money in a month (UTC), e.g. "100 USD".')]
Calls = Annotated[str | None, typer.Option("--task-calls", help="Model calls of any one task.")]
TaskTokens = Annotated[str | None, typer.Option("--task-tokens", help="Tokens of any one task.")]
TaskMoney = Annotated[str | None, typer.Option("--task-money", help='Money of any one task, e.g. "0.50 USD".')]
TaskSeconds = Annotated[str | None, typer.Option("--task-seconds", help='Seconds of any one task, e.g. "10 min".')]


def caller_limits(
    rpm: str | None, tpm: str | None, concurrency: str | None, day: str | None, month: str | None
) -> "CallerLimits":
    """What all calls may use together.

    Raises:
        BadInputError: one of them is no limit.
    """
    from headway.core.limits import CallerLimits, read_limit

    return CallerLimits(
        requests_per_minute=None if rpm is None else read_limit(rpm, "requests", "--rpm"),
        tokens_per_minute=None if tpm is None else read_limit(tpm, "tokens", "--tpm"),
        concurrency=None if concurrency is None else read_limit(concurrency, "concurrency", "--concurrency"),
        money_per_day=None if day is None else read_limit(day, "money", "--day"),
        money_per_month=None if month is None else read_limit(month, "money", "--month"),
    )


def task_limits(calls: str | None, tokens: str | None, money: str | None, seconds: str | None) -> "TaskLimits":
    """What any one task may use.

    Raises:
        BadInputError: one of them is no limit.
    """
    from headway.core.limits import TaskLimits, read_limit

    return TaskLimits(
        calls=None if calls is None else read_limit(calls, "calls", "--task-calls"),
        tokens=None if tokens is None else read_limit(tokens, "tokens", "--task-tokens"),
        money=None if money is None else read_limit(money, "money", "--task-money"),
        seconds=None if seconds is None else read_limit(seconds, "seconds", "--task-seconds"),
    )
