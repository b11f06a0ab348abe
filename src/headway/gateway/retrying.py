"""Retries as configured: how often calls are sent again, and what an engine says about when."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC
from email.utils import parsedate_to_datetime

from headway.gateway.exposition import family
from headway.policy.resend.budget import ResendBudget
from headway.policy.resend.retry import Again, Retries, RetryRules


class Retrying:
    """What all calls of a gateway share that may be sent again.

    Args:
        rules: how often and how fast.
        draw: random numbers in [0, 1).
    """

    def __init__(self, rules: RetryRules, draw: Callable[[], float] = random.random) -> None:
        self.rules = rules
        self.draw = draw
        self.budget = ResendBudget(ratio=rules.ratio)
        self.retries = 0
        self.given_up: Counter[str] = Counter()
        """By reason: calls that were not sent to their model again though it had failed."""

    def wait(self, retries: Retries, asked: float | None, now: float, deadline: float | None) -> float | None:
        """Seconds after which a call that has failed at ``now`` is sent to its model again; ``None``: it is not."""
        verdict = retries.decide(asked, self.budget, self.draw(), now, deadline)
        if isinstance(verdict, Again):
            self.retries += 1
            return verdict.wait
        self.given_up[verdict.reason] += 1
        return None

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        yield from family("headway_retries_total", "counter", "Calls sent to a model again.", [({}, self.retries)])
        yield from family(
            "headway_retries_refused_total",
            "counter",
            "Failed calls that were not sent to their model again, by what stood in the way.",
            [({"reason": reason}, count) for reason, count in self.given_up.items()],
        )
        yield from family(
            "headway_retry_budget", "gauge", "Retries that could be made at once.", [({}, self.budget.left)]
        )


def retry_after(fields: dict[bytes, bytes], now: float) -> float | None:
    """Seconds for which an engine wishes to be left alone, by the headers of its answer; ``None``: it says nothing.

    Read are ``retry-after-ms``, which OpenAI's clients prefer, and ``retry-after`` in seconds or as a date (RFC 9110).
    """
    millis = _number(fields.get(b"retry-after-ms"))
    if millis is not None:
        return millis / 1000
    value = fields.get(b"retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        date = parsedate_to_datetime(value.decode("latin-1"))
    except ValueError:
        return None
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)


def _number(value: bytes | None) -> float | None:
    text = b"" if value is None else value.strip()
    return float(text) if text.replace(b".", b"", 1).isdigit() else None
