"""A client for the conformance suite: `McpServers` at the URL that comes last; it calls each tool there once."""

import asyncio
import sys
from typing import Any

from headway.runtime import McpEndpoint, McpServers, Run, Tool, task

EXAMPLES: dict[str, Any] = {"number": 1, "integer": 1, "string": "text", "boolean": True, "array": [], "object": {}}


def arguments(tool: Tool) -> dict[str, Any]:
    """Some that fit."""
    properties: dict[str, dict[str, Any]] = tool.parameters.get("properties", {})
    return {name: EXAMPLES.get(schema.get("type", "string"), "text") for name, schema in properties.items()}


@task()
async def all_of_them(run: Run, servers: McpServers) -> None:
    for tool in servers.tools:
        result = await tool.use(run, arguments(tool))
        print(tool.name, result)  # noqa: T201 - the suite keeps it


async def main() -> None:
    async with McpServers(McpEndpoint(name="suite", url=sys.argv[-1])) as servers:
        await all_of_them.start(servers)


asyncio.run(main())
