"""What was answered, as it may be kept: whole, good, and come to its own end."""

import sys

from headway.core.errors import UpstreamError
from headway.core.money import MicroUsd
from headway.gateway.caches.copying import Copying
from headway.gateway.caches.figures import RuleFigures
from headway.gateway.caches.outcomes import Ticket
from headway.policy.cache.kept import Kept
from headway.policy.cache.worthy import is_complete
from headway.wire.dialect import Dialect
from headway.wire.openai import Answer
from headway.wire.sse import events


def keepable(
    ticket: Ticket, answer: Answer | None, seconds: float, cost: MicroUsd | None, now: float, figures: RuleFigures
) -> Kept | None:
    """The answer to a ticket's call; ``None``: it may not be kept, and ``figures`` has why."""
    copy = ticket.copy
    body = None if copy is None else copy.body()
    if copy is None or body is None:
        figures.not_kept["too_large" if copy is not None and copy.overflowed else "not_whole"] += 1
        return None
    if answer is None:
        answer = read(ticket.dialect, copy, body)
    if answer is None or not is_complete(ticket.dialect.name, answer):
        figures.not_kept["incomplete"] += 1
        return None
    rule = ticket.rule
    return Kept(
        body=body,
        media=copy.media,
        answer=answer,
        made=now,
        fresh_until=now + rule.ttl,
        stale_until=now + rule.ttl + rule.stale,
        seconds=max(0.0, seconds),
        cost=cost,
        tags=ticket.labels,
    )


def read(dialect: Dialect, copy: Copying, body: bytes) -> Answer | None:
    """What the answer says; ``None``: nothing that can be relied on."""
    try:
        if not copy.streamed:
            return dialect.answer(body)
        following = dialect.follow(sys.maxsize)
        for event in events(body):
            following.feed(event, 0.0)
    except UpstreamError:
        return None
    return following.answer() if following.complete and not following.failed else None
