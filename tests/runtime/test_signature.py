from collections.abc import AsyncGenerator
from typing import Any, Literal

import pytest
from msgspec import Struct
from runs import in_a_run

from headway.core.errors import BadInputError
from headway.runtime import Run, Tool, ToolResult, tool


class Span(Struct):
    first: int
    last: int


@tool(purity="reads")
async def look(
    run: Run, path: str, lines: Span, mode: Literal["text", "hex"] = "text", limit: int | None = None
) -> str:
    """Read a part of a file.

    It is read anew each time.

    Args:
        path: where it is,
            from the repository's root.
        lines: which of its lines.
        limit (optional): most characters.

    Returns:
        what is there.
    """
    del run
    return f"{path}:{lines.first}-{lines.last} {mode} {limit}"


async def used(called: Tool, arguments: str) -> ToolResult:
    async def body(run: Run) -> ToolResult:
        return await called.use(run, arguments)

    return await in_a_run(body)


def test_the_schema_is_the_signature_and_the_docstring() -> None:
    assert look.schema == {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Read a part of a file.\n\nIt is read anew each time.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "where it is, from the repository's root."},
                    "lines": {"description": "which of its lines.", "$ref": "#/$defs/Span"},
                    "mode": {"enum": ["hex", "text"], "default": "text"},
                    "limit": {
                        "description": "most characters.",
                        "anyOf": [{"type": "integer"}, {"type": "null"}],
                        "default": None,
                    },
                },
                "required": ["path", "lines"],
                "additionalProperties": False,
                "$defs": {
                    "Span": {
                        "title": "Span",
                        "type": "object",
                        "properties": {"first": {"type": "integer"}, "last": {"type": "integer"}},
                        "required": ["first", "last"],
                    }
                },
            },
        },
    }


async def test_arguments_come_as_the_types_that_the_function_asks_for() -> None:
    result = await used(look, '{"path": "a", "lines": {"first": 1, "last": 2}, "mode": "hex"}')
    assert result == ToolResult(text="a:1-2 hex None")


async def test_numbers_that_a_model_wrote_as_text_are_taken() -> None:
    result = await used(look, '{"path": "7", "lines": {"first": "1", "last": "2"}, "limit": "3"}')
    assert result == ToolResult(text="7:1-2 text 3")


async def test_a_tool_without_parameters_may_be_called_with_nothing() -> None:
    @tool
    async def now(run: Run) -> int:
        """Tell the time."""
        del run
        return 12

    assert (await used(now, "")).text == "12"
    assert (await used(now, " {} ")).text == "12"
    assert now.parameters == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{", "no JSON object"),
        ("[1]", "no JSON object"),
        ('"text"', "no JSON object"),
        ("null", "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ('{"path": "\\ud800"}', "no JSON object"),
        ("{}", "missing required field `path`"),
        ('{"path": 1, "lines": {"first": 1, "last": 2}}', "Expected `str`, got `int` - at `$.path`"),
        ('{"path": "a", "lines": {"first": "one", "last": 2}}', r"at `$.lines.first`"),
        ('{"path": "a", "lines": {"first": 1, "last": 2}, "depth": 1}', "unknown field `depth`"),
        ('{"path": "a", "lines": {"first": 1, "last": 2}, "mode": "oct"}', "Invalid enum value 'oct'"),
    ],
)
async def test_arguments_that_cannot_be_used_are_told_to_the_model(arguments: str, says: str) -> None:
    result = await used(look, arguments)
    assert (result.failed, result.refused) == (True, True)
    assert says in result.text
    assert len(result.text) < 2100


async def test_a_result_is_text_or_json_and_held_to_the_type_that_is_declared() -> None:
    @tool()
    async def spans(run: Run, wrong: bool) -> list[Span]:
        """Give spans."""
        del run
        return [Span(1, 2)] if not wrong else ["no span"]  # pyright: ignore[reportReturnType] - wrong on purpose

    @tool()
    async def lies(run: Run) -> str:
        """Give a text."""
        del run
        return 5  # pyright: ignore[reportReturnType] - wrong on purpose

    @tool()
    async def nothing(run: Run) -> None:
        """Do something."""
        del run

    assert (await used(spans, '{"wrong": false}')).text == '[{"first":1,"last":2}]'
    lied = await used(spans, '{"wrong": true}')
    assert lied.failed
    assert "it gave something else than it says that it does" in lied.text
    assert "Expected `str`, got `int`" in (await used(lies, "")).text
    assert await used(nothing, "") == ToolResult(text="")


async def untyped(run: Run, text: str) -> str:
    """Take anything."""
    del run
    return text


del untyped.__annotations__["text"]


async def many(run: Run, *texts: str) -> str:
    """Take many."""
    del run
    return "".join(texts)


async def open_ended(run: Run, **texts: str) -> str:
    """Take what there is."""
    del run
    return "".join(texts)


async def with_default(run: Run, texts: list[str] = ["a"]) -> str:  # noqa: B006 - wrong on purpose
    """Take some."""
    del run
    return "".join(texts)


async def silent(run: Run) -> str:
    del run
    return ""


async def alone(text: str) -> str:
    """Take no run."""
    return text


async def odd(run: Run, thing: type[int]) -> str:
    """Take a type."""
    del run
    return str(thing)


async def gives(run: Run) -> type[int]:
    """Give a type."""
    del run
    return int


async def astray(run: Run, thing: int) -> str:
    """Take what there is not."""
    del run
    return str(thing)


astray.__annotations__["thing"] = "Nowhere"


def blocks(run: Run) -> str:
    """Block all others."""
    del run
    return ""


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (untyped, "what to give for text"),
        (many, r"what to give for \*texts"),
        (open_ended, r"what to give for \*\*texts"),
        (with_default, "a default that cannot be used"),
        (silent, "silent has no docstring"),
        (alone, "alone takes no run"),
        (odd, "odd has a type that JSON cannot hold"),
        (gives, "gives has a type that JSON cannot hold"),
        (astray, "astray has a type that cannot be read"),
        (blocks, "blocks is no async function"),
    ],
)
def test_a_function_that_no_model_can_call_is_refused(function: Any, says: str) -> None:  # noqa: ANN401 - of any signature
    with pytest.raises(BadInputError, match=says):
        tool()(function)


async def test_a_bound_method_can_be_a_tool() -> None:
    class Index:
        async def search(self, run: Run, about: str) -> str:
            """Search."""
            del run
            return f"{about} in {type(self).__name__}"

    assert (await used(tool(Index().search), '{"about": "pumps"}')).text == "pumps in Index"


async def test_a_generator_of_text_is_a_tool() -> None:
    @tool()
    async def counts(run: Run, to: int) -> AsyncGenerator[str]:
        """Count."""
        del run
        for number in range(to):
            yield f"{number} "

    assert (await used(counts, '{"to": 3}')).text == "0 1 2 "
