"""Tools: what a model may have done, and what it is told of it.

A tool that hangs, raises, says too much or is asked nonsense is told to the model as a result that failed; nothing else
of the task is harmed. `headway.runtime.tool` makes one of a function; a client of another protocol makes its own.
"""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct, structs

from headway.core.errors import BadInputError, InDoubtError
from headway.core.span import ToolUse
from headway.runtime.models import Message
from headway.runtime.purse import NOTHING, Amount
from headway.runtime.run import Paid, Run
from headway.runtime.scatter import stop
from headway.trace.sources.digests import arguments_digest, part

Purity = Literal[
    "pure",  # the same arguments give the same result for ever
    "reads",  # it looks at the world and leaves it as it is
    "acts",  # it may change the world
]
Body = Callable[[Run, dict[str, Any]], Awaitable[object] | AsyncGenerator[object]]
"""A tool at work: given a run of its own and its arguments, it gives a text, bytes, a `ToolResult`, anything that can
be JSON, or pieces of text one after the other."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWN: Final = 2000
"""Characters of an error that a model is told."""


class ToolResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model is told that its call came to."""

    text: str
    failed: bool = False
    refused: bool = False
    """It failed because it was asked wrongly, so that nothing was done."""


def as_given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that nobody checks before the tool does."""
    return arguments


class Tool(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """Something that a model may ask for. Seconds and bytes; `use` calls it.

    Raises:
        BadInputError: the name is none that models can call, or what is declared contradicts itself.
    """

    name: str
    description: str
    """By which a model knows what it is for."""
    parameters: Mapping[str, Any]
    """JSON Schema of an object."""
    body: Body
    read: Callable[[dict[str, Any]], dict[str, Any]] = as_given
    """Makes of a model's arguments what ``body`` takes; raises `BadInputError` where they cannot be used."""
    purity: Purity = "acts"
    idempotent: bool = False
    """Acting twice comes to the same as acting once. One that acts and is not, is never repeated unasked."""
    resource: str | None = None
    """What it works on: calls of one response on the same resource are made one after the other, in the response's
    order. Arguments may be named: ``"file:{path}"``."""
    timeout: float = 60.0
    most_bytes: int = 64 << 10
    """Of a result, in UTF-8; what is more is cut off, and the model is told."""
    concurrency: int | None = None
    """Calls at once in one runtime; others wait, which does not count as their time."""
    cost: Amount = NOTHING
    """What a call takes of the budget, however it ends."""
    fresh: float | None = None
    """For how long a result may be given again; ``None``: of a pure tool for ever, of one that reads never."""
    shared: bool = False
    """Whether its results may be given to other tasks of the tenant too."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if _NAME.fullmatch(self.name) is None:
            raise BadInputError(
                f"{self.name!r} is no name for a tool.", fix="Use up to 64 letters, digits, underscores and dashes."
            )
        for name, sound, fix in (
            ("purity", self.purity in get_args(Purity), f"It is one of {', '.join(get_args(Purity))}."),
            ("timeout", self.timeout > 0 and math.isfinite(self.timeout), "It is seconds, above 0."),
            ("most_bytes", self.most_bytes >= 1, "It is bytes, 1 or more."),
            ("concurrency", self.concurrency is None or self.concurrency >= 1, "It is 1 or more, or None."),
            ("fresh", self.fresh is None or self.fresh >= 0, "It is seconds, 0 or more, or None."),
            ("fresh", self.fresh is None or self.purity != "acts", "What acts is never kept: leave it out."),
        ):
            if not sound:
                raise BadInputError(f"{self.name}: {name}={getattr(self, name)} makes no sense.", fix=fix)
        try:
            self.works_on("")
        except (ValueError, LookupError, AttributeError) as error:
            raise BadInputError(
                f"{self.name}: resource={self.resource!r} makes no sense: {error}.", fix='Write e.g. "file:{path}".'
            ) from error

    @property
    def schema(self) -> Message:
        """As a request's ``tools`` has it."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    def works_on(self, arguments: str) -> str | None:
        """The resource of a call with these arguments; one that is not given is empty in its name."""
        if self.resource is None:
            return None
        try:
            given = decoded(self.name, arguments)
        except BadInputError:
            return None  # which nothing will work on
        return self.resource.format_map(_Named({name: str(value) for name, value in given.items()}))

    async def use(self, run: Run, arguments: str | Mapping[str, Any], *, call_id: str | None = None) -> ToolResult:
        """Call it, once in this task: see `Run.once`. Whatever goes wrong in it is a result that failed.

        A failure that a model is told of is kept like any result, so that the model is told the same when the task is
        taken up again. One that only code sees is not, if the tool may be repeated: the next attempt calls it anew.

        Args:
            run: whose call it is; the tool gets a run of its own below it.
            arguments: as JSON, as a model writes them, or decoded.
            call_id: the model's name for the call; ``None``: no model asked for it.

        Raises:
            InDoubtError: it was under way when the task's process died, acts, and is not idempotent.
            OverBudgetError: the budget does not hold its cost.
        """
        place, name = run.unique(self.name), f"execute_tool {self.name}"
        again = "never" if self.purity == "acts" and not self.idempotent else "repeat"
        try:
            asked = decoded(self.name, arguments)
            given = self.read(asked)
        except BadInputError as error:
            return refused(run, self.name, str(error), call_id)

        async def make() -> Paid:
            key, now = self._key(run, asked), run.shared.spans.clock.now
            used = ToolUse(name=self.name, call_id=call_id, arguments=arguments_digest(asked))
            async with self._gate(run):
                with run.timed(name, used) as span:
                    kept = None if key is None else run.shared.results.find(key, now())
                    if kept is None:
                        result = await self._work(run.within(place, span.id), given)
                    else:
                        result = ToolResult(text=kept)
                        span.remarks = (f"Results of {self.name} were given again that had been kept.",)
                    span.work = structs.replace(used, failed=result.failed, result=part("tool", result.text))
            if key is not None and kept is None and not result.failed:
                until = None if self.fresh is None else now() + self.fresh
                run.shared.results.keep(key, result.text, until)
            if result.failed and call_id is None and again == "repeat":
                raise _NotKeptError(result)
            return Paid(result, self.cost if kept is None else NOTHING)

        try:
            return await run.once(name, asked, make, ToolResult, most=self.cost, again=again)
        except _NotKeptError as error:
            return error.result

    def _key(self, run: Run, asked: Mapping[str, Any]) -> tuple[object, ...] | None:
        """Under what its result is kept; ``None``: it is not."""
        if self.purity == "acts" or (self.purity == "reads" and not self.fresh):
            return None
        scope = ("tenant", run.shared.tenant) if self.shared else ("task", run.id)
        return (self, *scope, msgspec.json.encode(asked, order="deterministic"))

    def _gate(self, run: Run) -> AbstractAsyncContextManager[object]:
        if self.concurrency is None:
            return nullcontext()
        return run.shared.gates.setdefault(self, asyncio.Semaphore(self.concurrency))

    async def _work(self, run: Run, given: dict[str, Any]) -> ToolResult:
        heard = _Heard(self.most_bytes)
        work = asyncio.create_task(self._hear(run, given, heard), name=f"tool {self.name}")
        try:
            await asyncio.wait({work}, timeout=self.timeout)
            late = not work.done()
        finally:
            await stop({work}, f"tool {self.name}")
        if late:
            heeds = "was stopped" if work.done() else "goes on although it was told to stop"
            unknown = " Whether it was done is not known." if self.purity == "acts" else ""
            return heard.failure(f"{self.name} was not done in {self.timeout:g} s and {heeds}.{unknown}")
        if work.cancelled():
            return heard.failure(f"{self.name} was cancelled from within.")
        match work.exception():
            case None:
                return heard.result()
            case InDoubtError() as error:
                raise error
            case error:
                return heard.failure(f"{self.name} failed: {type(error).__name__}: {error}")

    async def _hear(self, run: Run, given: dict[str, Any], heard: "_Heard") -> None:
        told = self.body(run, given)
        if not isinstance(told, AsyncGenerator):
            heard.take(await told)
            return
        async with aclosing(told) as pieces:
            async for piece in pieces:
                heard.take(piece)
                if heard.full:
                    heard.stopped = True
                    return
                await asyncio.sleep(0)  # a stream that never waits would let nobody else work


class _NotKeptError(Exception):
    """A failure that the next attempt may do without."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.text)
        self.result = result


class _Heard:
    """What a tool says, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self.full = False
        self.stopped = False
        """Whether nobody listened to its end."""
        self._most = most
        self._left = most
        self._pieces: list[bytes] = []
        self._characters = 0
        self._failed = False

    def take(self, said: object) -> None:
        """A piece, or all of it.

        Raises:
            TypeError: it can be neither text nor JSON.
        """
        text = _text(said)
        self._failed |= isinstance(said, ToolResult) and said.failed
        self._characters += len(text)
        self._pieces.append(_utf8(text[: self._left + 1]))
        self._left -= max(1, len(self._pieces[-1]))  # a stream of empty pieces ends too
        self.full = self._left < 0

    def result(self) -> ToolResult:
        """All that it said."""
        return ToolResult(text="\n".join(self._told()), failed=self._failed)

    def failure(self, why: str) -> ToolResult:
        """What it said before it failed, and why it did."""
        return ToolResult(text="\n".join([*self._told(), brief(why)]).lstrip("\n"), failed=True)

    def _told(self) -> list[str]:
        text = b"".join(self._pieces)[: self._most].decode(errors="ignore")
        if not self.full:
            return [text]
        if self.stopped:
            return [text, f"[Stopped after {self._most:,} bytes; there was more. Ask for less.]"]
        return [text, f"[Cut: the first {self._most:,} bytes of {self._characters:,} characters. Ask for less.]"]


def refused(run: Run, name: str, why: str, call_id: str | None) -> ToolResult:
    """A call that nothing was done for; it is recorded as one that failed."""
    result = ToolResult(text=brief(why), failed=True, refused=True)
    used = ToolUse(name=name, call_id=call_id, failed=True, result=part("tool", result.text))
    with run.timed(f"execute_tool {name}", used):
        return result


def brief(text: str) -> str:
    """A message, short enough to be told and fit to be sent: what is half of a character is replaced."""
    return _utf8(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}...").decode()


def _utf8(text: str) -> bytes:
    return text.encode(errors="replace")


def _text(said: object) -> str:
    match said:
        case str():
            return said
        case None:
            return ""
        case bytes():
            return said.decode(errors="replace")
        case ToolResult(text=text):
            return text
        case _:
            return msgspec.json.encode(said).decode()


def decoded(name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a model writes them; nothing at all is no arguments.

    Raises:
        BadInputError: they are no JSON object.
    """
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        return msgspec.json.decode(arguments.strip() or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadInputError(
            f"The arguments of {name} are no JSON object: {error}.",
            fix="Call it again with an object of its parameters.",
        ) from error


class _Named(dict[str, str]):
    """Arguments by name, for the name of a resource."""

    def __missing__(self, name: str) -> str:
        return ""
