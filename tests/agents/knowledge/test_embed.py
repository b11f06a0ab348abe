import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import uvicorn
from openai import AsyncOpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from headway.agents.knowledge.embed import E5Embedder, EndpointEmbedder
from headway.core.errors import UpstreamError


@pytest.fixture(scope="module")
def e5() -> E5Embedder:
    return E5Embedder()


async def test_e5_finds_by_meaning_not_words(e5: E5Embedder) -> None:
    rows = await e5.passages(["Parcels that arrive late are refunded.", "The cat sleeps on the warm stove."])
    query = await e5.query("Do I get my money back when the delivery is delayed?")
    assert rows.shape[0] == 2
    assert query.shape == (1, rows.shape[1])
    near, far = (rows @ query[0]).tolist()
    assert near > far


async def test_e5_gives_unit_vectors_that_depend_on_the_prefix(e5: E5Embedder) -> None:
    (passage,), (query,) = await e5.passages(["a harbour"]), await e5.query("a harbour")
    assert np.linalg.norm(passage) == pytest.approx(1.0, abs=1e-4)
    assert not np.allclose(passage, query, atol=1e-3)


async def test_e5_reads_past_a_nul_and_stands_lone_surrogates(e5: E5Embedder) -> None:
    cut, whole, odd = await e5.passages(["ship", "ship\0wreck", "\ud800"])
    assert not np.allclose(cut, whole, atol=1e-3)
    assert np.isfinite(odd).all()


@asynccontextmanager
async def endpoint(
    reply: Callable[[dict[str, Any]], JSONResponse],
) -> AsyncGenerator[tuple[AsyncOpenAI, list[dict[str, Any]]]]:
    asked: list[dict[str, Any]] = []

    async def embeddings(request: Request) -> JSONResponse:
        asked.append(json.loads(await request.body()))
        return reply(asked[-1])

    app = Starlette(routes=[Route("/v1/embeddings", embeddings, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off"))
    config = server.config
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0) as client:
            yield client, asked
    finally:
        await server.shutdown()


async def test_an_endpoint_is_asked_with_prefixes_and_its_rows_are_ordered_and_made_unit() -> None:
    def reply(body: dict[str, Any]) -> JSONResponse:
        rows = [
            {"object": "embedding", "index": i, "embedding": [3.0 * (i + 1), 4.0]} for i in range(len(body["input"]))
        ]
        return JSONResponse(
            {"object": "list", "model": "m", "data": rows[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        )

    async with endpoint(reply) as (client, asked):
        embedder = EndpointEmbedder(client, "m", query_prefix="query: ", passage_prefix="passage: ")
        rows = await embedder.passages(["a", "b"])
        await embedder.query("q")
    assert rows.tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)],
        [pytest.approx(0.8321, abs=1e-4), pytest.approx(0.5547, abs=1e-4)],
    ]
    assert [one["input"] for one in asked] == [["passage: a", "passage: b"], ["query: q"]]


def unknown_model(_body: dict[str, Any]) -> JSONResponse:
    return JSONResponse({"error": {"message": "no such model"}}, status_code=404)


def no_rows(_body: dict[str, Any]) -> JSONResponse:
    return JSONResponse({"object": "list", "data": [], "model": "m"})


@pytest.mark.parametrize(
    ("reply", "message"), [(unknown_model, "could not embed.*no such model"), (no_rows, "0 vectors for 2 texts")]
)
async def test_an_endpoint_that_fails_is_named(reply: Callable[[dict[str, Any]], JSONResponse], message: str) -> None:
    async with endpoint(reply) as (client, _):
        with pytest.raises(UpstreamError, match=message):
            await EndpointEmbedder(client, "m").passages(["a", "b"])


async def test_an_endpoint_that_is_not_there_is_named() -> None:
    async with AsyncOpenAI(base_url="http://127.0.0.1:1/v1", api_key="k", max_retries=0) as client:
        with pytest.raises(UpstreamError, match=r"127\.0\.0\.1:1/v1.*Check the URL"):
            await EndpointEmbedder(client, "m").query("q")
