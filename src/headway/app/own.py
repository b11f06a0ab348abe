"""What a tenant sees of itself over HTTP: its tasks, one of them explained, its limits and its use.

Every answer is made of what bears the tenant's name, and of nothing else: a task that is another's is, to it, none.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from headway.app.report.document import task_json
from headway.app.report.tasks_document import tasks_json
from headway.core.access import Caller, Key, Tenant
from headway.core.errors import BadInputError, NotFoundError
from headway.core.limits import CallerLimits, TaskLimits
from headway.core.task import TaskId
from headway.gateway.door import Door
from headway.gateway.later import Answer
from headway.gateway.own import Own, Wish
from headway.policy.headers import scoped
from headway.policy.limits.book import Use
from headway.policy.limits.periods import counter_name
from headway.trace.account import recorded
from headway.trace.prices import PriceOf
from headway.trace.store import Store

_OK: Final = 200
_TASKS: Final = 50
_MOST_TASKS: Final = 1_000
_MOST_SPANS: Final = 5_000
"""A task of more is not explained here: that would take the time of calls."""


class Account(Struct, frozen=True, kw_only=True):
    """A tenant or a key, what it may use and what it has used. Money is in micro-USD."""

    id: str
    name: str
    role: str | None = None
    """Of a key."""
    models: tuple[str, ...]
    """Those that may be called; none named: all."""
    limits: CallerLimits
    task_limits: TaskLimits
    money_today: Use | None
    """By the UTC calendar: used, and reserved for calls under way; ``None``: no limit has it counted."""
    money_this_month: Use | None


class OwnUse(Struct, frozen=True, kw_only=True):
    """What ``GET /v1/headway/use`` answers."""

    schema: str = "headway.use/1"
    tenant: Account
    keys: tuple[Account, ...]
    """Those of the tenant that open anything."""


def offer(own: Own, door: Door, store: Store | None, prices: PriceOf) -> None:
    """Show tenants what is theirs.

    Args:
        own: where they ask.
        door: what limits and counts them.
        store: where tasks are, opened for reading; ``None``: none are recorded.
        prices: what tokens cost.
    """
    own.offer("use", _Uses(door).show)
    own.offer("tasks", _Tasks(store, prices).show)


class _Uses:
    def __init__(self, door: Door, wall: Callable[[], float] = time.time) -> None:
        self._door = door
        self._wall = wall

    async def show(self, wish: Wish) -> Answer:
        tenant = wish.caller.tenant
        owners: list[Tenant | Key] = [tenant, *self._door.access.keys_of(tenant.id)]
        now = self._wall()
        names = [
            counter_name("tenant" if isinstance(owner, Tenant) else "key", owner.id, "money", window, now)
            for owner in owners
            for window in ("day", "month")
        ]
        uses = await self._door.limiter.uses(tuple(names))
        accounts = [_account(owner, uses[2 * number], uses[2 * number + 1]) for number, owner in enumerate(owners)]
        return Answer(_OK, msgspec.json.encode(OwnUse(tenant=accounts[0], keys=tuple(accounts[1:]))))


def _account(owner: Tenant | Key, today: Use, month: Use) -> Account:
    return Account(
        id=owner.id,
        name=owner.name,
        role=owner.role if isinstance(owner, Key) else None,
        models=owner.models,
        limits=owner.limits,
        task_limits=owner.task,
        money_today=None if owner.limits.money_per_day is None else today,
        money_this_month=None if owner.limits.money_per_month is None else month,
    )


class _Tasks:
    def __init__(self, store: Store | None, prices: PriceOf) -> None:
        self._store = store
        self._prices = prices

    async def show(self, wish: Wish) -> Answer:
        store = self._store
        if store is None:
            raise NotFoundError("This gateway records nothing, so there are no tasks.")
        if wish.rest:
            document = await asyncio.to_thread(self._task, store, wish.caller, wish.rest)
        else:
            limit = _limit(wish.query)
            rows = await asyncio.to_thread(store.tasks, limit, tenant=wish.caller.tenant.id)
            document = tasks_json(rows).encode()
        return Answer(_OK, document)

    def _task(self, store: Store, caller: Caller, name: str) -> bytes:
        """A task by its id, or by the name that the tenant's own agent gave it."""
        tenant = caller.tenant.id
        for task in (TaskId(name), TaskId(scoped(tenant, name))):
            spans = [span for span in store.spans(task) if span.tenant == tenant]
            if len(spans) > _MOST_SPANS:
                raise BadInputError(
                    f"This task has {len(spans)} spans, and only tasks of up to {_MOST_SPANS} are explained here.",
                    fix="Ask whoever runs the gateway for `headway explain`.",
                )
            if spans:
                return task_json(recorded(spans, prices=self._prices)).encode()
        raise NotFoundError(f"There is no task {name[:100]!r} of yours.", fix="GET /v1/headway/tasks lists them.")


def _limit(query: dict[str, str]) -> int:
    text = query.get("limit", str(_TASKS))
    limit = int(text) if text.isascii() and text.isdigit() and len(text) < len(str(_MOST_TASKS * 10)) else 0
    if not 1 <= limit <= _MOST_TASKS:
        raise BadInputError(f"limit={text[:20]!r} is no number of tasks.", fix=f"Give 1 to {_MOST_TASKS}.")
    return limit
