"""An answer that has to be waited for, beside the calls."""

import asyncio
from collections.abc import Awaitable

from msgspec import Struct, field

from headway.core.errors import BadInputError, HeadwayError, NotFoundError
from headway.gateway.front import Client
from headway.gateway.responses import JSON, Failure, Headers, failure
from headway.gateway.unforeseen import Unforeseen


class Answer(Struct, frozen=True):
    """What is sent."""

    status: int
    body: bytes
    headers: Headers = field(default_factory=lambda: JSON)


class Later:
    """Work whose outcome one client waits for. That the client leaves does not stop it half-way."""

    def __init__(self, client: Client, work: Awaitable[Answer], unforeseen: Unforeseen) -> None:
        self._client: Client | None = client
        self._work = work
        self._unforeseen = unforeseen
        client.watch(self)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            answer = await self._work
        except BadInputError as error:
            self.cancel(failure("bad_request", 400, error))
        except NotFoundError as error:
            self.cancel(failure("not_found", 404, error))
        except HeadwayError as error:
            self.cancel(failure("unavailable", 503, error))
        except Exception as error:  # noqa: BLE001 - nobody looks at a task's exception, and the client would wait
            self.cancel(self._unforeseen.met(error))
        else:
            client, self._client = self._client, None
            if client is not None:
                client.respond(answer.status, answer.body, answer.headers)

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
        client, self._client = self._client, None
        if client is not None:
            client.fail(problem)
