"""Commands that ask a running gateway for a change."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from serving import serving

from headway.app.steering import steer
from headway.core.errors import BadInputError, HeadwayError, NotFoundError
from headway.gateway.admin import Changed, Order


async def grow(order: Order) -> Changed:
    return Changed(answer={"by": order.query["by"], "had": order.read(dict[str, int])}, subject="tree")


async def test_what_the_gateway_says_comes_back() -> None:
    async with serving() as served:
        served.gateway.admin.on_change("POST", "/admin/tree", "tree.grow", grow)
        said = await asyncio.to_thread(
            steer, served.url, None, "POST", "/admin/tree", query={"by": "2 m"}, body={"x": 1}
        )
        assert said == {"by": "2 m", "had": {"x": 1}}
        with pytest.raises(NotFoundError, match="There is no /admin/bush here"):
            await asyncio.to_thread(steer, served.url, None, "GET", "/admin/bush")
        with pytest.raises(HeadwayError, match="/admin/tree answers POST"):
            await asyncio.to_thread(steer, served.url, "k", "GET", "/admin/tree")


@pytest.mark.parametrize("words", ["reload", "pins", "cache report"])
def test_each_command_asks_where_the_variable_says(
    headway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("HEADWAY_URL", "http://127.0.0.1:9")
    assert "127.0.0.1:9 cannot be reached" in " ".join(headway(*words.split()).err.split())


def test_a_gateway_that_is_not_there_is_named() -> None:
    with pytest.raises(HeadwayError, match=r"127\.0\.0\.1:9 cannot be reached"):
        steer("http://127.0.0.1:9", None, "GET", "/admin/tree")
    with pytest.raises(BadInputError, match="is no URL of a gateway"):
        steer("gateway", None, "GET", "/admin/tree")
