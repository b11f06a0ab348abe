"""`headway serve` as its operator watches it: spans in a collector, lines in the log, tasks on the page of metrics."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import urllib.request
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
from collecting import Collector
from msgspec import Struct

from headway.gateway.fake import FakeEngine

HEADWAY = Path(sys.executable).with_name("headway")
SECRET = "sk-caller-secret"
WORDS = "tell nobody of the purple elephant"


class Running(Struct):
    process: asyncio.subprocess.Process
    client: openai.AsyncOpenAI
    url: str
    log: Path

    async def ask(self) -> None:
        await self.client.chat.completions.create(model="m", messages=[{"role": "user", "content": WORDS}])

    async def events(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """The lines of the log about ``event``, once there are so many."""
        async with asyncio.timeout(30):
            while True:
                lines = [json.loads(line) for line in self.log.read_text().splitlines()]
                found = [line for line in lines if line["event"] == event]
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.02)

    async def metrics(self, *wanted: str) -> str:
        """The page of metrics, once all of these are in it."""

        def page() -> str:
            with urllib.request.urlopen(self.url.removesuffix("/v1") + "/metrics") as answer:  # noqa: S310 - our own
                return answer.read().decode()

        async with asyncio.timeout(30):
            while True:
                text = await asyncio.to_thread(page)
                if all(one in text for one in wanted):
                    return text
                await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(
    engine: FakeEngine, place: Path, *options: str, environment: dict[str, str] | None = None
) -> AsyncGenerator[Running]:
    flags = ("--json", "--upstream", engine.url, "--port", "0", "--no-admin", "--store", "spans.db", *options)
    log = place / "log"
    with log.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            HEADWAY, "serve", *flags, "--log-format", "json",
            cwd=place, stdout=asyncio.subprocess.PIPE, stderr=stderr, env=dict(os.environ) | (environment or {}),
        )  # fmt: skip
    try:
        assert process.stdout is not None
        url = json.loads(await process.stdout.readline())["url"]
        async with openai.AsyncOpenAI(base_url=url, api_key=SECRET, max_retries=0) as client:
            yield Running(process, client, url, log)
    finally:
        if process.returncode is None:
            process.terminate()
        assert await process.wait() == 0


def observer_of(served: Running) -> int:
    """Process id of the only child that a gateway has here."""
    pid = served.process.pid
    (observer,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(observer)


async def test_spans_arrive_by_the_standard_variables_and_a_restart_doubles_none(tmp_path: Path) -> None:
    with Collector() as collector:
        told = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b"}
        async with FakeEngine() as engine:
            async with running(engine, tmp_path, environment=told) as served:
                await served.ask()
                await asyncio.to_thread(collector.wait, 1)
                await served.metrics('headway_export_spans_total{outcome="sent"} 1', "headway_export_endpoint_up 1")
                await served.ask()
            # Stopped at once after its second call: what was recorded is exported before it is gone.
            assert len(collector.ids()) == 2
            async with running(engine, tmp_path, environment=told) as served:
                await served.ask()
            assert len(set(collector.ids())) == len(collector.ids()) == 3
        assert collector.heads[0]["api-key"] == "a b"
        ours = {head["traceparent"].split("-")[2] for head in engine.headers}
        assert ours == set(collector.ids()), "what engines know as their parent is what was exported"


async def test_the_file_names_the_endpoint_and_calls_are_logged_without_what_they_say(tmp_path: Path) -> None:
    with Collector() as collector:
        (tmp_path / "headway.toml").write_text(f'export.endpoint = "{collector.url}"\nlog.calls = true\n')
        async with FakeEngine() as engine, running(engine, tmp_path) as served:
            await served.ask()
            with contextlib.suppress(openai.APIStatusError):
                await served.client.chat.completions.create(model="m", messages=[])
            good, bad = await served.events("call", 2)
            assert (good["status"], good["model"], good["level"]) == ("ok", "m", "info")
            assert good["replica"] == engine.url.split("/")[2]
            assert (bad["status"], bad["level"]) == ("error", "warning")
            await asyncio.to_thread(collector.wait, 2)
        text = served.log.read_text()
    assert SECRET not in text
    assert "elephant" not in text
    assert [json.loads(line)["event"] for line in text.splitlines()][-1] == "stopped"


async def test_an_observer_that_is_killed_is_started_again_and_loses_nothing(tmp_path: Path) -> None:
    with Collector() as collector:
        told = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces"}
        async with FakeEngine() as engine, running(engine, tmp_path, "--log-calls", environment=told) as served:
            await served.ask()
            await served.events("call", 1)
            await asyncio.to_thread(collector.wait, 1)
            await served.metrics('headway_export_spans_total{outcome="sent"} 1', "headway_tasks_open 1")
            os.kill(observer_of(served), signal.SIGKILL)
            await served.ask()
            await served.events("observer_ended", 1)
            assert len(await served.events("call", 2)) == 2
            await asyncio.to_thread(collector.wait, 2)
        assert len(set(collector.ids())) == 2


async def test_a_gateway_that_is_named_as_its_own_endpoint_does_not_feed_on_itself(tmp_path: Path) -> None:
    async with FakeEngine() as engine:
        async with running(engine, tmp_path) as served:
            port = served.url.split(":")[2].removesuffix("/v1")
        told = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://localhost:{port}"}
        async with running(engine, tmp_path, "--port", port, environment=told) as served:
            (warned,) = await served.events("export_off")
            assert "is this gateway itself" in warned["message"]


async def test_an_agents_trace_goes_through_to_the_engine_and_to_the_collector(tmp_path: Path) -> None:
    trace, agent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with Collector() as collector:
        told = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        async with FakeEngine() as engine, running(engine, tmp_path, environment=told) as served:
            question: list[Any] = [{"role": "user", "content": WORDS}]
            context = {"traceparent": f"00-{trace}-{agent}-00", "tracestate": "a=1"}
            await served.client.chat.completions.create(model="m", messages=question, extra_headers=context)
            await asyncio.to_thread(collector.wait, 1)
        (span,) = collector.messages[0].resource_spans[0].scope_spans[0].spans
        assert (span.trace_id.hex(), span.parent_span_id.hex(), span.name) == (trace, agent, "chat m")
        assert engine.headers[0]["traceparent"] == f"00-{trace}-{span.span_id.hex()}-00"
        assert engine.headers[0]["tracestate"] == "a=1"
