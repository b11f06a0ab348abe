"""The document names what is answered, and a real gateway keeps to it under requests that schemathesis makes up."""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest
from serving import Raw, serving

from headway.gateway import openapi
from headway.gateway.fake import FakeEngine
from headway.wire.dialects import ALL, BY_PATH

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,unsupported_method,allow_header_conformance"
)
"""Not those on what is accepted: of most of a request, the engine is the judge."""


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()


def post(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\n\r\n{{}}".encode()


async def test_it_names_exactly_what_the_gateway_says_that_it_answers() -> None:
    async with serving() as served:
        answer = await served.ask(get("/openapi.json"))
        lost = await served.ask(get("/nothing"))
    document = json.loads(answer.body)
    named = {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
        if "headway" not in path
    }
    assert set(re.findall(r"(?:GET|POST) /[a-z0-9/_.]+[a-z0-9]", lost.error["message"])) == named
    assert answer.headers["content-type"] == "application/json"
    assert document["openapi"] == "3.1.0"


async def test_a_refusal_at_each_path_has_the_shape_that_the_document_gives_it() -> None:
    document = json.loads(openapi.document())
    async with serving() as served:
        for path in (path.decode() for path in BY_PATH):
            refused: Raw = await served.ask(post(path))
            media = document["paths"][path]["post"]["responses"][str(refused.status)]["content"]["application/json"]
            shape = document["components"]["schemas"][media["schema"]["$ref"].rpartition("/")[2]]
            body = json.loads(refused.body)
            assert refused.status == 400
            assert set(shape["required"]) <= body.keys()
            assert set(shape["properties"]["error"]["required"]) <= body["error"].keys()
            assert ("type" in body) == path.startswith("/v1/messages")


def test_every_reference_leads_somewhere_and_every_shape_is_used() -> None:
    text = openapi.document().decode()
    used = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert used == json.loads(text)["components"]["schemas"].keys()


def test_every_dialect_has_a_path_of_its_own() -> None:
    paths = json.loads(openapi.document())["paths"]
    assert {paths[path.decode()]["post"]["operationId"] for path in BY_PATH} == {dialect.name for dialect in ALL}


async def test_no_made_up_request_breaks_the_gateway_or_gets_an_answer_of_another_shape(tmp_path: Path) -> None:
    schemathesis = Path(sys.executable).with_name("schemathesis")
    if not schemathesis.exists():
        pytest.skip("schemathesis is not installed: see `make clients`")
    async with FakeEngine() as engine, serving(engine) as served:
        run = await asyncio.create_subprocess_exec(
            *(schemathesis, "run", f"{served.url.removesuffix('/v1')}/openapi.json"),
            *("--checks", CHECKS, "--phases", "coverage", "--max-time", "15", "--seed", "1"),
            *("--continue-on-failure", "--no-shrink", "--no-color", "--request-timeout", "10"),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = (await run.communicate())[0].decode()
    assert run.returncode == 0, said
    tested = re.search(r"(\d+) generated, (\d+) passed", said)
    assert tested is not None
    assert int(tested[1]) == int(tested[2]) > 0
