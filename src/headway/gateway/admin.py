"""What those may do who run the gateway: JSON over HTTP under ``/admin/…``, on its own port; each change is audited.

Where callers need keys, a key's role decides. Where they need none, only callers on this machine are let in: not
through a proxy, and not from a web page of somebody else's.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from headway.core.access import Action, AuditRecord, Caller
from headway.core.errors import BadInputError, HeadwayError, NotFoundError
from headway.gateway.access import Access
from headway.gateway.front import Client, Request
from headway.gateway.hosts import is_loopback
from headway.gateway.refusals import stranger_problem
from headway.gateway.responses import Failure, failure
from headway.gateway.unforeseen import Unforeseen

_T = TypeVar("_T")
_LOG: Final = logging.getLogger(__name__)
ROOT: Final = b"/admin/"
_OK: Final = 200
_SHOWN_BYTES: Final = 100
_PROXIED: Final = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"})


class Order(Struct, frozen=True, kw_only=True):
    """What is asked for, and by whom."""

    actor: str
    """The key's id; where there are no keys, the address."""
    query: dict[str, str]
    body: bytes

    def read(self, kind: type[_T]) -> _T:
        """The body as JSON; an empty one is an empty object.

        Raises:
            BadInputError: it is not JSON, or not of this kind.
        """
        try:
            return msgspec.json.decode(self.body or b"{}", type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadInputError(
                f"The body cannot be used: {error}.", fix="See docs/admin.md for what it holds."
            ) from error


class Changed(Struct, frozen=True, kw_only=True):
    """What was changed."""

    answer: object
    """For the caller: whatever msgspec writes as JSON."""
    subject: str
    """What it was done to, for the audit."""
    detail: str = ""
    """Never a prompt or a secret."""


Show = Callable[[Order], Awaitable[object]]
"""Answers with whatever msgspec writes as JSON. May raise `HeadwayError`: the caller is told."""
Change = Callable[[Order], Awaitable[Changed]]
"""Makes a change, in all workers. May raise `HeadwayError`: the caller is told, and nothing was changed."""


class _Shows(Struct, frozen=True):
    needs: Action
    show: Show


class _Changes(Struct, frozen=True):
    needs: Action
    change: Change
    action: str


_Route = _Shows | _Changes


class Admin:
    """The routes, and who may take them.

    Args:
        access: recognises keys and keeps the audit; ``None``: no keys are needed.
        unforeseen: faults of our own.
        wall: epoch seconds, for the audit.
    """

    def __init__(self, access: Access | None, unforeseen: Unforeseen, *, wall: Callable[[], float] = time.time) -> None:
        self._access = access
        self._unforeseen = unforeseen
        self._wall = wall
        self._routes: dict[tuple[bytes, bytes], _Route] = {}

    def on_show(self, path: str, show: Show, *, needs: Action = "read_all") -> None:
        """Answer GET ``path``, which changes nothing."""
        self._routes[b"GET", path.encode()] = _Shows(needs, show)

    def on_change(self, method: str, path: str, action: str, change: Change, *, needs: Action = "steer") -> None:
        """Answer ``method`` and ``path``, which changes something: ``action`` is its name in the audit."""
        self._routes[method.encode(), path.encode()] = _Changes(needs, change, action)

    def handle(self, request: Request, client: Client, caller: Caller | None) -> None:
        """Answer a request under `ROOT`.

        Args:
            request: which.
            client: whom to answer.
            caller: who they are by their key; ``None`` where no keys are needed.
        """
        problem = _not_here(request, client) if caller is None else None
        if problem is not None:
            client.fail(problem)
            return
        path, _, query = request.path.partition(b"?")
        route = self._routes.get((request.method, path))
        if route is None:
            client.fail(self._no_route(path))
            return
        if caller is not None and self._access is not None:
            problem = self._access.forbidden(caller, route.needs)
            if problem is not None:
                client.fail(problem)
                return
        order = Order(
            actor=client.address if caller is None else caller.key.id,
            query=dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)),
            body=request.body,
        )
        _Answer(client, self._answered(route, order, caller), self._unforeseen).start()

    async def _answered(self, route: _Route, order: Order, caller: Caller | None) -> object:
        if isinstance(route, _Shows):
            return await route.show(order)
        changed = await route.change(order)
        _LOG.info(
            "admin: %s did %s to %s%s",
            order.actor,
            route.action,
            changed.subject,
            f" ({changed.detail})" if changed.detail else "",
            extra={"event": "admin", "actor": order.actor, "action": route.action},
        )
        if self._access is not None and caller is not None:
            record = AuditRecord(
                at=self._wall(),
                actor=order.actor,
                action=route.action,
                subject=changed.subject,
                tenant=caller.tenant.id,
                detail=changed.detail,
            )
            await self._access.audit(record)
        return changed.answer

    def _no_route(self, path: bytes) -> Failure:
        known = sorted(known for known, there in self._routes if there == path)
        shown = path[:_SHOWN_BYTES].decode("ascii", "replace")
        if known:
            allowed = b", ".join(known)
            return failure("method_not_allowed", 405, f"{shown} answers {allowed.decode()}.", (b"allow", allowed))
        there = ", ".join(sorted(f"{known.decode()} {there.decode()}" for known, there in self._routes))
        return failure("not_found", 404, f"There is no {shown} here. Use {there or 'nothing: there is nothing yet'}.")


class _Answer:
    """One order being carried out. A client that leaves does not stop it half-way."""

    def __init__(self, client: Client, work: Awaitable[object], unforeseen: Unforeseen) -> None:
        self._client: Client | None = client
        self._work = work
        self._unforeseen = unforeseen

    def start(self) -> None:
        """Begin."""
        if self._client is not None:
            self._client.watch(self)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            body = msgspec.json.encode(await self._work)
        except BadInputError as error:
            self._fail(failure("bad_request", 400, error))
        except NotFoundError as error:
            self._fail(failure("not_found", 404, error))
        except HeadwayError as error:
            self._fail(failure("unavailable", 503, error))
        except Exception as error:  # noqa: BLE001 - nobody looks at a task's exception, and the client would wait
            self._fail(self._unforeseen.met(error))
        else:
            client, self._client = self._client, None
            if client is not None:
                client.respond(_OK, body)

    def _fail(self, problem: Failure) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.fail(problem)

    def client_gone(self, error: str) -> None:
        """Nobody waits for the answer any more."""
        del error
        self._client = None

    def client_blocked(self) -> None:
        """The answer is short; nothing to hold back."""

    def client_ready(self) -> None:
        """As above."""

    def cancel(self, problem: Failure) -> None:
        """Answer with ``problem`` now; what was begun is carried out."""
        self._fail(problem)


def _not_here(request: Request, client: Client) -> Failure | None:
    """Why somebody without a key may not do anything here; ``None``: they may."""
    fix = "Call it on the machine itself, or have the gateway ask for keys (`[keys]`) and use one that may."
    if not is_loopback(client.address) or not _PROXIED.isdisjoint(request.fields):
        return failure("not_allowed", 403, f"Without keys, only this machine itself may administer this gateway. {fix}")
    return stranger_problem(request.fields, frozenset())
