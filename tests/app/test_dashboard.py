"""The dashboard shows what was recorded, escapes it, and answers only those who asked for it by its own name."""

import asyncio
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from msgspec import structs
from starlette.testclient import TestClient

from headway.app.dashboard.server import Dashboard
from headway.app.dashboard.site import site
from headway.core.errors import BadInputError
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import Candidate, ErrorType, ModelCall, Receipt, Span
from headway.core.task import SpanId, TaskId
from headway.core.usage import Usage
from headway.gateway.fleet import LiveFleet
from headway.trace.account import TaskAccount, recorded
from headway.trace.store import Store

EVIL = "<script>alert(1)</script>"


def call(task: str, number: int, *, model: str = "m", error: str | None = None, replica: str = "r1") -> Span:
    start = 1_700_000_000.0 + number
    route = Receipt(
        policy="least-loaded", winner=replica, reason="fewest in flight", candidates=(Candidate(replica, 2.0),)
    )
    return Span(
        task=TaskId(task),
        id=SpanId(f"{number:016x}"),
        parent=None,
        name=f"chat {model}",
        start=start,
        end=start + 0.5,
        error=None if error is None else ErrorType(error),
        work=ModelCall(
            model=model,
            replica=replica,
            sent=start + 0.1,
            first_token=start + 0.2,
            last_token=start + 0.4,
            usage=Usage(input_tokens=20, output_tokens=5),
            route=route,
        ),
    )


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    with Store(tmp_path / "spans.db") as one:
        yield one


def browser(store: Store | None, fleet: LiveFleet | None = None) -> TestClient:
    return TestClient(site(store, fleet or LiveFleet()), base_url="http://127.0.0.1", raise_server_exceptions=True)


def test_tasks_are_listed_newest_first(store: Store) -> None:
    store.write([call("a" * 32, 1), call("b" * 32, 2, error="upstream_closed")])
    page = browser(store).get("/").text
    assert page.index("bbbb") < page.index("aaaa")
    assert f'href="/tasks/{"a" * 32}"' in page
    assert '<td class="n bad">1</td>' in page
    assert '<td class="n">25</td>' in page
    assert 'http-equiv="refresh"' in page


def test_a_task_that_was_refused_is_listed_as_that(store: Store) -> None:
    made = call("a" * 32, 1, error="unknown_model")
    store.write([structs.replace(made, work=ModelCall(model="gone", attempts=0))])
    assert '<td class="n bad">refused</td>' in browser(store).get("/").text


def test_a_task_shows_its_report_and_its_document(store: Store) -> None:
    store.write([call("a" * 32, 1)])
    client = browser(store)
    page = client.get(f"/tasks/{'a' * 32}")
    assert page.status_code == 200
    assert "<svg" in page.text
    assert "script" not in page.headers["content-security-policy"]
    document = client.get("/api/tasks/aaaa").json()
    assert document["task"] == "a" * 32
    assert document["e2e_s"] == pytest.approx(0.5)
    assert [row["task"] for row in client.get("/api/tasks").json()["tasks"]] == ["a" * 32]


def test_what_is_not_there_says_so_in_the_shape_that_was_asked_for(store: Store) -> None:
    store.write([call("a1", 1), call("a2", 2)])
    client = browser(store)
    for path, status, words in (
        ("/tasks/zzz", 404, "no task"),
        ("/tasks/a", 400, "2 tasks begin with"),
        ("/?limit=0", 400, "no number of tasks"),
        ("/?limit=many", 400, "no number of tasks"),
        ("/api/tasks/zzz", 404, "no task"),
        ("/api/tasks?limit=1001", 400, "no number of tasks"),
    ):
        answer = client.get(path)
        assert answer.status_code == status, path
        said = answer.json()["error"]["message"] if path.startswith("/api/") else answer.text
        assert words in said
    assert len(client.get("/api/tasks?limit=1").json()["tasks"]) == 1
    assert client.get("/nowhere").status_code == 404
    assert client.post("/").status_code == 405


def test_a_task_that_cannot_be_explained_takes_nothing_else_down(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.write([call("a1", 1), call("b1", 2)])

    def explain(spans: Sequence[Span]) -> TaskAccount:
        if spans[0].task == "b1":
            raise ValueError(EVIL)
        return recorded(spans)

    app = site(store, LiveFleet(), explain)
    client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=True)
    page, document = client.get("/tasks/b1"), client.get("/api/tasks/b1")
    assert (page.status_code, document.status_code) == (500, 500)
    assert "<script" not in page.text
    why = "Task b1 could not be explained: ValueError: "
    assert why in page.text
    assert f"{why}{EVIL}." in document.json()["error"]["message"]
    assert "Traceback" not in page.text
    (logged,) = caplog.messages
    assert "ValueError" in logged
    assert EVIL not in logged, "a message may hold what a prompt said"
    assert {client.get(path).status_code for path in ("/", "/tasks/a1", "/api/tasks/a1", "/fleet")} == {200}


def test_everything_is_escaped(store: Store) -> None:
    store.write([call(EVIL, 1, model=EVIL, replica=EVIL)])
    fleet = LiveFleet([Replica(id=ReplicaId(EVIL), url=EVIL, models=(EVIL,), api_key="sk-hidden")])
    fleet.mark(ReplicaId(EVIL), healthy=False, reason=EVIL)
    client = browser(store, fleet)
    task = "/tasks/%3Cscript%3Ealert%281%29%3C%2Fscript%3E"
    assert task in client.get("/").text
    for path in ("/", "/fleet", task, "/tasks/<script>alert(2)</script>"):
        page = client.get(path).text
        assert "script" in page, path
        assert "<script" not in page, path
        assert "sk-hidden" not in page, path


def test_the_fleet_and_its_last_decisions(store: Store) -> None:
    store.write([call("a", 1)])
    fleet = LiveFleet([Replica(id=ReplicaId("r1"), url="http://127.0.0.1:1/v1"), Replica(id=ReplicaId("r2"), url="x")])
    fleet.started(ReplicaId("r1"))
    fleet.mark(ReplicaId("r2"), healthy=False, reason="refused the connection")
    page = browser(store, fleet).get("/fleet").text
    assert "refused the connection" in page
    assert page.count("healthy</td>") == 1
    assert "fewest in flight" in page
    assert "r1: 2" in page
    store.write([call("much", number, replica="r3") for number in range(10, 511)])
    assert "r3 2" not in browser(store, fleet).get("/fleet").text
    empty = browser(None).get("/fleet").text
    assert "No replica yet" in empty


def test_without_recording_the_pages_say_so(store: Store) -> None:
    assert "Recording is off" in browser(None).get("/").text
    assert browser(None).get("/api/tasks").status_code == 404
    assert browser(None).get("/tasks/a").status_code == 404
    assert "No task yet" in browser(store).get("/").text


def test_a_browser_may_only_show_the_pages(store: Store) -> None:
    client = browser(store)
    for path in ("/", "/fleet", "/style.css", "/api/tasks", "/nowhere"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/style.css").headers["content-type"].startswith("text/css")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9999", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("", 400),
    ],
)
def test_names_that_others_pointed_here_are_refused(store: Store, host: str, status: int) -> None:
    assert browser(store).get("/", headers={"host": host}).status_code == status


async def test_the_server_listens_on_loopback_until_it_is_stopped(store: Store) -> None:
    dashboard = Dashboard(site(store, LiveFleet()))
    url = await dashboard.start(0)
    host, port = url.removeprefix("http://").split(":")
    assert host == "127.0.0.1"
    with pytest.raises(BadInputError, match=rf"cannot listen on 127.0.0.1:{port}.*--admin-port"):
        await Dashboard(site(store, LiveFleet())).start(int(port))
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert b"No task yet" in await reader.read()
    writer.close()
    await writer.wait_closed()
    await dashboard.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))
