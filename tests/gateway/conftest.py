"""The data path is tested on the event loop that it runs on."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

ON_UVLOOP = {
    "test_admin",
    "test_app",
    "test_call",
    "test_clients",
    "test_dialects",
    "test_door",
    "test_drain",
    "test_faults",
    "test_frameworks",
    "test_hosts",
    "test_idle",
    "test_limits",
    "test_openapi",
    "test_naming",
    "test_recall",
    "test_recall_attacks",
    "test_recall_limits",
    "test_recall_redis",
    "test_recall_meanings",
    "test_renewal",
    "test_resend",
    "test_server",
    "test_siblings",
    "test_telemetry",
    "test_turns",
    "test_unforeseen",
    "test_upstream",
    "test_usage",
}


@pytest.hookimpl
def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.path.stem in ON_UVLOOP:
        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}
