"""GET /v1/models: the names that the fleet was told of, and what its other replicas say when asked.

Anthropic's clients, who tell their API's version, get the list in their shape.
"""

import asyncio
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from headway.core.access import Caller
from headway.core.errors import HeadwayError
from headway.core.fleet import Replica
from headway.gateway.fleet import LiveFleet
from headway.gateway.front import Client, Request
from headway.gateway.responses import Failure, failure
from headway.gateway.unforeseen import Unforeseen
from headway.gateway.upstream import Upstream
from headway.wire.dialects import CHAT, MESSAGES

_OK: Final = 200


class _Name(Struct):
    id: str


class _Models(Struct):
    data: list[Raw]


class Listing:
    """One client's request for the list, answered when all replicas have said theirs."""

    def __init__(
        self,
        fleet: LiveFleet,
        upstream: Upstream,
        unforeseen: Unforeseen,
        request: Request,
        client: Client,
        caller: Caller | None,
        names: tuple[str, ...],
    ) -> None:
        self._fleet = fleet
        self._upstream = upstream
        self._unforeseen = unforeseen
        self._authorization = request.fields.get(b"authorization")
        self._dialect = MESSAGES if b"anthropic-version" in request.fields else CHAT
        self._client = client
        self._caller = caller
        self._names = names

    def start(self) -> None:
        """Ask; where every replica declares its models, answer at once."""
        replicas = [load.replica for load in self._fleet.view().loads]
        declared = {name: _entry(name) for name in (*self._names, *self._fleet.models())}
        silent = [replica for replica in replicas if not replica.models]
        self._client.watch(self)
        self._task = asyncio.get_running_loop().create_task(self._answer_or_fail(declared, silent))

    async def _answer_or_fail(self, entries: dict[str, Raw], silent: list[Replica]) -> None:
        try:
            await self._answer(entries, silent)
        except Exception as error:  # noqa: BLE001 - nobody looks at a task's exception, and the client would wait
            self._client.fail(self._unforeseen.met(error))

    async def _answer(self, entries: dict[str, Raw], silent: list[Replica]) -> None:
        results = await asyncio.gather(*[self._ask(replica) for replica in silent], return_exceptions=True)
        problem: Failure | None = None
        for result in results:
            if isinstance(result, HeadwayError):
                problem = failure("upstream_models", 502, result)
            elif isinstance(result, BaseException):
                raise result
            else:
                entries = result | entries
        if problem is not None and not entries:
            self._client.fail(problem)
            return
        if self._caller is not None:
            entries = {name: entry for name, entry in entries.items() if self._caller.may_call(name)}
        if self._dialect is CHAT:
            body: dict[str, Any] = {"object": "list", "data": list(entries.values())}
            self._client.respond(_OK, msgspec.json.encode(body))
        else:
            self._client.respond(_OK, self._dialect.models(list(entries)))

    async def _ask(self, replica: Replica) -> dict[str, Raw]:
        status, body = await self._upstream.fetch(replica, "GET", "/models", authorization=self._authorization)
        try:
            entries = msgspec.json.decode(body, type=_Models).data
            listed = {msgspec.json.decode(entry, type=_Name).id: entry for entry in entries}
        except (msgspec.DecodeError, RecursionError):
            raise HeadwayError(
                f"Replica {replica.id!r} answered GET /models with status {status} and not with a list of models.",
                fix="Check its URL and key, or name its models in the configuration.",
            ) from None
        return listed if CHAT.name in replica.speaks else {name: _entry(name) for name in listed}

    def client_gone(self, error: str) -> None:
        """Ask no further."""
        del error
        self._task.cancel()

    def client_blocked(self) -> None:
        """The list is short; nothing to hold back."""

    def client_ready(self) -> None:
        """As above."""

    def cancel(self, problem: Failure) -> None:
        """Answer with ``problem`` now."""
        self._task.cancel()
        self._client.fail(problem)


def _entry(name: str) -> Raw:
    return Raw(msgspec.json.encode({"id": name, "object": "model", "created": 0, "owned_by": "headway"}))
