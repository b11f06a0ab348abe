"""What a tenant may see of itself: ``GET /v1/headway/…`` with any key of its own, and nothing of anybody else.

Whatever is shown is asked for in the name of the tenant that the key belongs to; no request can name another.
"""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

from headway.core.access import Caller
from headway.gateway.access import Access
from headway.gateway.front import Client, Request
from headway.gateway.later import Answer, Later
from headway.gateway.responses import failure
from headway.gateway.unforeseen import Unforeseen

ROOT: Final = b"/v1/headway/"
_AT_ONCE: Final = 2
"""Answers that are being made; they take the time of calls."""
_SHOWN_BYTES: Final = 100


class Wish(Struct, frozen=True, kw_only=True):
    """What is to be shown, and to whom."""

    caller: Caller
    rest: str
    """What the path names within; empty: nothing."""
    query: dict[str, str]


Show = Callable[[Wish], Awaitable[Answer]]
"""Answers for the tenant of `Wish.caller` alone. May raise `HeadwayError`: the caller is told."""


class Own:
    """The paths, and who may ask for them.

    Args:
        access: says what keys allow; ``None``: no keys are needed, so there are no tenants.
        unforeseen: faults of our own.
    """

    def __init__(self, access: Access | None, unforeseen: Unforeseen) -> None:
        self._access = access
        self._unforeseen = unforeseen
        self._shows: dict[str, Show] = {}
        self._making = 0

    def offer(self, name: str, show: Show) -> None:
        """Answer GET of `ROOT` and ``name``, and of what lies below it."""
        self._shows[name] = show

    def handle(self, request: Request, client: Client, caller: Caller | None) -> None:
        """Answer a request under `ROOT`.

        Args:
            request: which.
            client: whom to answer.
            caller: who they are by their key; ``None`` where no keys are needed.
        """
        if request.method not in {b"GET", b"HEAD"}:
            message = "What is a tenant's own can be looked at, with GET, and not changed here."
            client.fail(failure("method_not_allowed", 405, message, (b"allow", b"GET")))
            return
        if caller is None or self._access is None:
            message = "Callers need no keys here, so there are no tenants. See `headway tasks`, or the dashboard."
            client.fail(failure("not_found", 404, message))
            return
        problem = self._access.forbidden(caller, "read")
        if problem is not None:
            client.fail(problem)
            return
        path, _, query = request.path.partition(b"?")
        name, _, rest = path[len(ROOT) :].decode("latin-1").partition("/")
        show = self._shows.get(name)
        if show is None:
            there = ", ".join(f"{ROOT.decode()}{name}" for name in sorted(self._shows))
            shown = path[:_SHOWN_BYTES].decode("ascii", "replace")
            client.fail(failure("not_found", 404, f"There is no {shown} here. Use GET {there}."))
            return
        if self._making >= _AT_ONCE:
            message = "This is being shown to others just now. Try again in 1 s."
            client.fail(failure("busy", 429, message, (b"retry-after", b"1")))
            return
        asked = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
        wish = Wish(caller=caller, rest=unquote(rest), query=asked)
        self._making += 1
        Later(client, self._made(show, wish), self._unforeseen)

    async def _made(self, show: Show, wish: Wish) -> Answer:
        try:
            return await show(wish)
        finally:
            self._making -= 1
