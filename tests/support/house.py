"""A door over real files, with tenants and keys."""

import asyncio
from pathlib import Path

from headway.core.access import Role, Tenant, TenantId
from headway.core.clock import SystemClock
from headway.core.limits import CallerLimits, TaskLimits
from headway.core.money import Price
from headway.gateway.access import Access
from headway.gateway.access_file import AccessFile
from headway.gateway.book_sqlite import SqliteBook
from headway.gateway.door import Door
from headway.gateway.keys import Change, KeySettings, create_key, create_tenant
from headway.gateway.limiter import Limiter
from headway.gateway.registry import Registry, SqliteDatabase
from headway.gateway.tariff import Tariff

ME = Change("cli:me", 1000.0)
PRICES = {"m": Price(input=1_000_000, output=2_000_000)}
"""A dollar for a million input tokens, two for a million of output: in micro-USD, 1 and 2 a token."""


class House:
    """A door over real files."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "access.db"
        self.registry = self._opened()
        clock = SystemClock()
        limiter = Limiter(SqliteBook(AccessFile(self.file)), folder / "intents", clock)
        self.door = Door(Access(self._opened(), clock), limiter, Tariff(PRICES, frozenset({"local"})), clock)

    def _opened(self) -> Registry:
        return Registry(SqliteDatabase(AccessFile(self.file)))

    def tenant(self, name: str, limits: CallerLimits | None = None, models: tuple[str, ...] = ()) -> None:
        create_tenant(self.registry, Tenant(id=TenantId(name), limits=limits or CallerLimits(), models=models), ME)

    def key(
        self, tenant: str, limits: CallerLimits | None = None, task: TaskLimits | None = None, role: Role = "member"
    ) -> str:
        settings = KeySettings(limits=limits or CallerLimits(), task=task or TaskLimits(), role=role)
        return create_key(self.registry, tenant, settings, ME).secret

    async def until_used(self, counter: str, amount: int) -> None:
        """Wait until so much, and no more, is settled on a counter."""
        book = SqliteBook(AccessFile(self.file))
        try:
            async with asyncio.timeout(10):
                while not (uses := await asyncio.to_thread(book.uses, (counter,))) or uses[0].used < amount:
                    pass
            assert uses[0].used == amount
        finally:
            book.close()


class Opened:
    """A started door; what is refused is on the file when it closes."""

    def __init__(self, house: House) -> None:
        self._door = house.door

    async def __aenter__(self) -> Door:
        await self._door.start()
        return self._door

    async def __aexit__(self, *_: object) -> None:
        await self._door.close()
