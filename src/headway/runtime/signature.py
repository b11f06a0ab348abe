"""Tools made of functions: what a model sees of one, and the check of what it sends, by signature and docstring."""

import inspect
import re
import typing
from collections.abc import AsyncGenerator, Awaitable, Callable
from textwrap import dedent
from typing import Annotated, Any, Concatenate, Final, TypedDict, Unpack, cast, overload

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError
from headway.runtime.purse import Amount
from headway.runtime.run import Run
from headway.runtime.tools import Body, Purity, Tool, ToolResult

Function = Callable[Concatenate[Run, ...], Awaitable[object] | AsyncGenerator[object]]
_SECTION: Final = re.compile(r"^(Args|Returns|Yields|Raises|Examples?|Notes?):[ ]*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"(\w+)(?: \([^)]*\))?:\s*(.*)")


class Traits(TypedDict, total=False):
    """What a tool is like; as the fields of `headway.runtime.Tool`, which say what each means."""

    purity: Purity
    idempotent: bool
    resource: str | None
    timeout: float
    most_bytes: int
    concurrency: int | None
    cost: Amount
    fresh: float | None
    shared: bool


@overload
def tool(f: Function, /) -> Tool: ...


@overload
def tool(**traits: Unpack[Traits]) -> Callable[[Function], Tool]: ...


def tool(f: Function | None = None, /, **traits: Unpack[Traits]) -> Tool | Callable[[Function], Tool]:
    """Make an async function, or an async generator of text, a tool: ``@tool``, or ``@tool(…)`` with its traits.

    Its first parameter is a `Run`; the others, which a model fills in, need types. The docstring says what it is for,
    and under ``Args:`` what each parameter is. Where it says what type it returns, it is held to that.

    Args:
        f: the function.
        traits: see `Traits`.

    Raises:
        BadInputError: no model can call the function, and why.
    """

    def made(f: Function) -> Tool:
        types = _types(f)
        about, described = _docstring(f)
        asked = _asked(f, types, described)
        return Tool(
            name=f.__name__,
            description=about,
            parameters=_schema(f, asked),
            body=_body(f, types.get("return", Any)),
            read=lambda arguments: _read(f, asked, arguments),
            **traits,
        )

    return made if f is None else made(f)


def _types(f: Function) -> dict[str, Any]:
    if not (inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f)):
        raise BadInputError(
            f"{f.__name__} is no async function, and would block all others while it works.",
            fix="Write `async def`, and call what blocks by `await asyncio.to_thread(…)`.",
        )
    try:
        return typing.get_type_hints(f, include_extras=True)
    except (NameError, TypeError) as error:
        raise BadInputError(f"{f.__name__} has a type that cannot be read: {error}.", fix="Import it.") from error


def _docstring(f: Function) -> tuple[str, dict[str, str]]:
    """What it is for, and what its parameters are."""
    about, *sections = _SECTION.split(inspect.cleandoc(f.__doc__ or ""))
    if not about.strip():
        raise BadInputError(f"{f.__name__} has no docstring.", fix="Say in it what a model can use the tool for.")
    described: dict[str, str] = {}
    for heading, section in zip(sections[::2], sections[1::2], strict=True):
        last = ""
        for line in dedent(section).splitlines() if heading == "Args" else ():
            if match := _ARGUMENT.match(line):
                last = match[1]
                described[last] = match[2]
            elif last and line.strip():
                described[last] += f" {line.strip()}"
    return about.strip(), described


def _asked(f: Function, types: dict[str, Any], described: dict[str, str]) -> type[Struct]:
    """The parameters that a model fills in, as a type."""
    parameters = list(inspect.signature(f).parameters.values())
    if not parameters or types.get(parameters[0].name) is not Run:
        raise BadInputError(
            f"{f.__name__} takes no run.",
            fix="Let its first parameter be `run: Run`; of a method, make a tool of the bound one: tool(it.f).",
        )
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in parameters[1:]:
        name = parameter.name
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) or name not in types:
            raise BadInputError(
                f"{f.__name__}: no model can know what to give for {parameter}.",
                fix="Give each parameter a name and a type; *args and **kwargs have none.",
            )
        kind = types[name]
        if name in described:
            kind = Annotated[kind, msgspec.Meta(description=described[name])]
        fields.append((name, kind) if parameter.default is parameter.empty else (name, kind, parameter.default))
    try:
        return msgspec.defstruct(f.__name__, fields, kw_only=True, forbid_unknown_fields=True)
    except (TypeError, ValueError) as error:
        raise _unfit(f, error) from error


def _schema(f: Function, asked: type[Struct]) -> dict[str, Any]:
    try:
        (root,), parts = msgspec.json.schema_components((asked,), ref_template="#/$defs/{name}")
    except (TypeError, ValueError) as error:
        raise _unfit(f, error) from error
    own = parts.pop(root["$ref"].rpartition("/")[2])
    del own["title"]
    return {**own, "$defs": parts} if parts else own


def _read(f: Function, asked: type[Struct], arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        given = msgspec.convert(arguments, asked, str_keys=True)
    except msgspec.ValidationError as error:
        try:  # models write numbers as text
            given = msgspec.convert(arguments, asked, str_keys=True, strict=False)
        except msgspec.ValidationError:
            raise BadInputError(
                f"The arguments of {f.__name__} cannot be used: {error}.", fix="Call it again with what it takes."
            ) from error
    return {name: getattr(given, name) for name in asked.__struct_fields__}


def _body(f: Function, returns: Any) -> Body:  # noqa: ANN401 - a type
    if inspect.isasyncgenfunction(f):
        return lambda run, given: f(run, **given)
    if returns in (Any, object, ToolResult):
        return lambda run, given: f(run, **given)
    try:
        msgspec.json.schema(returns)
        decoder = msgspec.json.Decoder[object](returns)
    except (TypeError, ValueError) as error:
        raise _unfit(f, error) from error

    async def checked(run: Run, given: dict[str, Any]) -> object:
        value = await cast("Awaitable[object]", f(run, **given))
        if isinstance(value, str | bytes) and isinstance(returns, type) and isinstance(value, returns):
            return value  # as it is, not as JSON
        try:
            text = msgspec.json.encode(value)
            decoder.decode(text)
        except msgspec.ValidationError as error:
            raise TypeError(f"it gave something else than it says that it does: {error}") from error
        return text if value is not None else None

    return checked


def _unfit(f: Function, error: Exception) -> BadInputError:
    return BadInputError(
        f"{f.__name__} has a type that JSON cannot hold, or a default that cannot be used: {str(error).rstrip('.')}.",
        fix="Use numbers, text, lists, dicts, dataclasses or Structs, and defaults that nobody can change.",
    )
