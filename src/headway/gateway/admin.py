"""What those may do who run the gateway: JSON over HTTP under ``/admin/…``, on its own port; each change is audited.

Where callers need keys, a key's role decides. Where they need none, only callers on this machine are let in: not
through a proxy, and not from a web page of somebody else's.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from headway.core.access import Action, AuditRecord, Caller
from headway.core.errors import BadInputError
from headway.gateway.access import Access
from headway.gateway.front import Client, Request
from headway.gateway.hosts import is_loopback
from headway.gateway.later import Answer, Later
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
        Later(client, self._answered(route, order, caller), self._unforeseen)

    async def _answered(self, route: _Route, order: Order, caller: Caller | None) -> Answer:
        if isinstance(route, _Shows):
            return Answer(_OK, msgspec.json.encode(await route.show(order)))
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
        return Answer(_OK, msgspec.json.encode(changed.answer))

    def _no_route(self, path: bytes) -> Failure:
        known = sorted(known for known, there in self._routes if there == path)
        shown = path[:_SHOWN_BYTES].decode("ascii", "replace")
        if known:
            allowed = b", ".join(known)
            return failure("method_not_allowed", 405, f"{shown} answers {allowed.decode()}.", (b"allow", allowed))
        there = ", ".join(sorted(f"{known.decode()} {there.decode()}" for known, there in self._routes))
        return failure("not_found", 404, f"There is no {shown} here. Use {there or 'nothing: there is nothing yet'}.")


def _not_here(request: Request, client: Client) -> Failure | None:
    """Why somebody without a key may not do anything here; ``None``: they may."""
    fix = "Call it on the machine itself, or have the gateway ask for keys (`[keys]`) and use one that may."
    if not is_loopback(client.address) or not _PROXIED.isdisjoint(request.fields):
        return failure("not_allowed", 403, f"Without keys, only this machine itself may administer this gateway. {fix}")
    return stranger_problem(request.fields, frozenset())
