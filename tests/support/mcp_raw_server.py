"""Speaks MCP by hand over stdio, as servers in other languages do, and misbehaves below the protocol.

Started as ``mcp_raw_server.py HOW``, it answers the older handshake alone, writes the id after the result, and on a call does what it was started for.
"""

import json
import sys
from typing import Any

LISTS = {"pages": 0}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    say({"result": result, "jsonrpc": "2.0", "id": request["id"]})


def listed(how: str) -> dict[str, Any]:
    tools: list[dict[str, Any]] = [{"name": "go", "inputSchema": {"type": "object"}}]
    if how == "endless list":
        LISTS["pages"] += 1
        return {"tools": tools, "nextCursor": str(LISTS["pages"])}
    if how == "odd names":
        tools += [{"name": name, "inputSchema": {"type": "object"}} for name in ("fs.read", "fs/read", "x" * 100)]
    return {"tools": tools}


def misbehave(how: str, request: dict[str, Any]) -> None:
    match how:
        case "endless line":
            while True:
                sys.stdout.write("x" * 65536)
        case "endless lines":
            while True:
                say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "…"}})
        case "huge":
            nested = [{"id": 10_000 + number} for number in range(300_000)]
            answer(request, {"content": [{"type": "text", "text": "x"}], "structuredContent": {"all": nested}})
        case "no protocol":
            answer(request, {"content": "just text"})
        case "noise":
            sys.stdout.write("a line of debugging\n\n{\n")
            answer(request, {"content": [{"type": "text", "text": "done"}]})
        case "silence":
            sys.stdout.close()
            sys.stdin.read()
        case _:
            answer(request, {"content": [{"type": "text", "text": "done"}]})


def main() -> None:
    how = sys.argv[1]
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize" if how == "mute":
                pass
            case "initialize":
                info = {"name": "raw", "version": "1"}
                version = request["params"]["protocolVersion"]
                answer(request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
            case "tools/list":
                answer(request, listed(how))
            case "tools/call":
                misbehave(how, request)
            case _ if "id" in request:
                error = {"code": -32601, "message": "Method not found"}
                say({"jsonrpc": "2.0", "id": request["id"], "error": error})
            case _:
                pass


if __name__ == "__main__":
    main()
