"""Speaks MCP by hand over stdio, as servers in other languages do, and misbehaves below the protocol.

Started as ``mcp_raw_server.py HOW``, it answers the older handshake alone, writes the id after the result, and in a
call does what it was started for.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LISTS = {"pages": 0}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    say({"result": result, "jsonrpc": "2.0", "id": request["id"]})


def listed(how: str) -> dict[str, Any]:
    names = ["go", "pid"]
    if how == "endless list":
        LISTS["pages"] += 1
        return {"tools": [], "nextCursor": str(LISTS["pages"])}
    if how == "odd names":
        names += ["fs.read", "fs/read", "x" * 100]
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}


def endless_line() -> None:
    while True:
        sys.stdout.write("x" * 65536)


def endless_lines() -> None:
    while True:
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "…"}})


def die() -> None:
    sys.stderr.write("I cannot go on.\n")
    sys.exit(3)


def called(how: str, request: dict[str, Any]) -> None:
    arguments: dict[str, Any] = request["params"].get("arguments") or {}
    said = "done"
    match how:
        case _ if request["params"]["name"] == "pid":
            said = str(os.getpid())
        case "endless line":
            endless_line()
        case "endless lines":
            endless_lines()
        case "die" | "die once" if how == "die" or not Path(arguments["mark"]).exists():
            Path(arguments.get("mark", os.devnull)).touch()
            die()
        case "stick":
            time.sleep(3600)
        case "hang":
            return
        case "spawn":
            said = str(subprocess.Popen(["sleep", "3600"]).pid)  # noqa: S607 - its end is what is tested
        case "huge":
            nested = [{"id": 10_000 + number} for number in range(300_000)]
            answer(request, {"content": [], "structuredContent": {"all": nested}})
            return
        case "no protocol":
            answer(request, {"content": "just text"})
            return
        case "noise":
            sys.stdout.write("a line of debugging\n\n{\n")
        case "silence":
            os.close(1)
            sys.stdin.read()
        case _:
            pass
    answer(request, {"content": [{"type": "text", "text": said}]})


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
                called(how, request)
            case _ if "id" in request:
                error = {"code": -32601, "message": "Method not found"}
                say({"jsonrpc": "2.0", "id": request["id"], "error": error})
            case _:
                pass


if __name__ == "__main__":
    main()
