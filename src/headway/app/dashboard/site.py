"""The dashboard's pages and their JSON twins; it only reads, and every value is escaped by the templates."""

from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import Struct
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from headway.app.dashboard.guard import REPORT_POLICY, SecurityHeaders
from headway.app.dashboard.keyed import Keyed
from headway.app.naming import resolve
from headway.app.report import figures
from headway.app.report.document import task_json
from headway.app.report.html import html_task
from headway.app.report.tasks_document import tasks_json
from headway.core.errors import BadInputError, HeadwayError, NotFoundError
from headway.core.span import ModelCall, Receipt, Span
from headway.core.task import TaskId
from headway.gateway.access import Access
from headway.gateway.fleet import LiveFleet
from headway.gateway.unforeseen import Unforeseen
from headway.trace.account import TaskAccount, recorded
from headway.trace.store import Store
from headway.wire.openai import error_body

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
"""Hosts that a browser may name; any other is a page of somebody else's that had its name point here."""
TASKS: Final = 50
MAX_TASKS: Final = 1000
_RECEIPT_TASKS: Final = 5
_RECEIPTS: Final = 12
_RECEIPT_SPANS: Final = 500
"""A task of more spans is passed over: the page refreshes every few seconds, beside the data path."""


class Routed(Struct, frozen=True, kw_only=True):
    """One routing decision on the fleet page."""

    task: TaskId
    at: float
    receipt: Receipt


class UnexplainedError(HeadwayError):
    """A fault of our own in explaining one task."""


def site(
    store: Store | None,
    fleet: LiveFleet,
    explain: Callable[[Sequence[Span]], TaskAccount] = recorded,
    *,
    access: Access | None = None,
) -> Starlette:
    """The application.

    Args:
        store: where tasks are; ``None``: recording is off.
        fleet: whose replicas are shown.
        explain: accounts for a task.
        access: recognises keys; ``None``: none are needed.
    """
    pages = _Pages(store, fleet, explain)
    keyed = [] if access is None else [Middleware(Keyed, access)]
    return Starlette(
        routes=[
            Route("/", pages.tasks),
            Route("/tasks/{task:path}", pages.task),
            Route("/fleet", pages.fleet),
            Route("/api/tasks", pages.api_tasks),
            Route("/api/tasks/{task:path}", pages.api_task),
            Route("/style.css", pages.style),
        ],
        middleware=[Middleware(SecurityHeaders), Middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK), *keyed],
        exception_handlers={HeadwayError: pages.failed},
    )


class _Pages:
    """One method per page. Those that read the store are plain functions, which Starlette runs in worker threads."""

    def __init__(self, store: Store | None, fleet: LiveFleet, explain: Callable[[Sequence[Span]], TaskAccount]) -> None:
        self._store = store
        self._fleet = fleet
        self._explain = explain
        self._unforeseen = Unforeseen()
        self._templates = Environment(
            loader=PackageLoader("headway.app.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def tasks(self, request: Request) -> Response:
        """The newest tasks."""
        rows = () if self._store is None else self._store.tasks(_limit(request))
        ids = self._namesakes([row.task for row in rows])
        return self._page("tasks.html", rows=rows, ids=ids, recording=self._store is not None)

    def task(self, request: Request) -> Response:
        """One task's report."""
        page = self._explained(request, html_task)
        return HTMLResponse(page, headers={"content-security-policy": REPORT_POLICY})

    def fleet(self, request: Request) -> Response:
        """The replicas, and the last decisions about them."""
        del request
        routed = self._routed()
        ids = self._namesakes([one.task for one in routed])
        return self._page("fleet.html", replicas=self._fleet.health(), routed=routed, ids=ids)

    def _namesakes(self, tasks: list[TaskId]) -> list[TaskId]:
        """These and all others that their ids could be taken for."""
        return tasks if self._store is None else [*tasks, *self._store.neighbours(tasks)]

    def api_tasks(self, request: Request) -> Response:
        """The newest tasks, for a machine: the document of ``headway tasks --json``."""
        return _json(tasks_json(self._recorded().tasks(_limit(request))))

    def api_task(self, request: Request) -> Response:
        """One task, for a machine: the document of ``headway explain --json``."""
        return _json(self._explained(request, task_json))

    async def style(self, request: Request) -> Response:
        """The style sheet."""
        del request
        return Response(self._templates.get_template("style.css").render(), media_type="text/css")

    async def failed(self, request: Request, error: Exception) -> Response:
        """What was asked for cannot be shown: say why, as a page or as JSON."""
        match error:
            case NotFoundError():
                status = 404
            case BadInputError():
                status = 400
            case UnexplainedError():
                status = 500
            case _:
                status = 503
        if request.url.path.startswith("/api/"):
            kind = "server_error" if isinstance(error, UnexplainedError) else "invalid_request_error"
            return _json(error_body(str(error), type=kind), status)
        what, fix = (error.what, error.fix) if isinstance(error, HeadwayError) else (str(error), "")
        return self._page("message.html", status, what=what, fix=fix)

    def _page(self, name: str, status: int = 200, **values: Any) -> Response:  # noqa: ANN401 - a template takes anything
        return HTMLResponse(self._templates.get_template(name).render(**_FORMATS, **values), status)

    def _recorded(self) -> Store:
        if self._store is None:
            raise NotFoundError("Recording is off, so there are no tasks.", fix="Serve without --no-record.")
        return self._store

    def _explained(self, request: Request, shown: Callable[[TaskAccount], str | bytes]) -> str | bytes:
        store = self._recorded()
        task = resolve(store, request.path_params["task"])
        spans = store.spans(task)
        try:
            return shown(self._explain(spans))
        except Exception as error:  # whatever one task does to us, the reader is to know which, and the log where
            self._unforeseen.met(error)
            raise UnexplainedError(
                f"Task {task} could not be explained: {type(error).__name__}: {error}.",
                fix="This is a fault of Headway: please report it, with the lines that it has put into its log. The "
                "other tasks are not concerned.",
            ) from error

    def _routed(self) -> Sequence[Routed]:
        if self._store is None:
            return ()
        rows = [row for row in self._store.tasks(_RECEIPT_TASKS) if row.spans <= _RECEIPT_SPANS]
        spans = [span for row in rows for span in self._store.spans(row.task)]
        routed = [one for span in spans if (one := _receipt_of(span)) is not None]
        return sorted(routed, key=lambda one: -one.at)[:_RECEIPTS]


def _receipt_of(span: Span) -> Routed | None:
    if not isinstance(span.work, ModelCall) or span.work.route is None:
        return None
    return Routed(task=span.task, at=span.start, receipt=span.work.route)


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(TASKS))
    limit = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= limit <= MAX_TASKS:
        raise BadInputError(f"limit={text!r} is no number of tasks.", fix=f"Give 1 to {MAX_TASKS}.")
    return limit


def _json(document: str | bytes, status: int = 200) -> Response:
    return Response(document, status, media_type="application/json")


def _quoted(text: str) -> str:
    return quote(text, safe="")


_FORMATS: Final = {"figures": figures, "quoted": _quoted}
