"""Explicit identity: what a caller says about its call in headers, checked before it is believed."""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from headway.core.task import SessionId, SpanId, TaskId

TASK_HEADER = "x-headway-task"
TRACE_HEADER = "traceparent"
SESSION_HEADERS = (
    "x-session-id",
    "x-session-affinity",  # OpenCode
    "x-claude-code-session-id",
    "session-id",  # Codex
    "session_id",  # Codex, older
    "x-litellm-trace-id",
)
"""Headers by which known agents name their session, most specific claim first."""
RETRY_HEADER = "x-stainless-retry-count"
"""How often the clients of OpenAI and Anthropic have sent this call before; each of their requests has it."""
IDENTITY_HEADERS = frozenset({TASK_HEADER, TRACE_HEADER, RETRY_HEADER, *SESSION_HEADERS})
"""All that `declared` reads: a gateway need pass no others on."""

MAX_NAME = 128
"""Longest task or session name that a caller may choose, in characters."""

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.ASCII)
_COUNT = re.compile(r"\d{1,6}", re.ASCII)
_PRINTABLE = re.compile(rf"[!-~](?:[ -~]{{0,{MAX_NAME - 2}}}[!-~])?", re.ASCII)


class Declared(Struct, frozen=True, gc=False):
    """What the caller declared; ``None`` where it said nothing that can be believed."""

    task: TaskId | None = None
    session: SessionId | None = None
    parent: SpanId | None = None
    """The caller's own span, from ``traceparent``."""
    resent: bool = False
    """The caller has sent this call before, and sends it again because it failed."""


_NOTHING = Declared()


def declared(headers: Mapping[str, str], tenant: str, body_session: str | None = None) -> Declared:
    """Read the identity headers (lower-case names) of one call.

    ``x-headway-task`` outranks ``traceparent`` as the name of the task; the session is named by the first of
    `SESSION_HEADERS` that is there, else by ``body_session``. A value that is malformed, longer than `MAX_NAME`
    or not printable ASCII counts as absent: a bad header must not fail a call, and content still tells.
    """
    if not headers and body_session is None:
        return _NOTHING
    trace = _traceparent(headers.get(TRACE_HEADER))
    task = _name(headers.get(TASK_HEADER)) or (trace[0] if trace else None)
    session = next((name for h in SESSION_HEADERS if (name := _name(headers.get(h)))), None) or _name(body_session)
    return Declared(
        task=TaskId(scoped(tenant, task)) if task else None,
        session=SessionId(scoped(tenant, session)) if session else None,
        parent=SpanId(trace[1]) if trace else None,
        resent=bool(sent_before(headers.get(RETRY_HEADER))),
    )


def scoped(tenant: str, name: str) -> str:
    """A caller's name made the tenant's own, so that two tenants that choose one name never share a task.

    The empty tenant (a gateway without keys) keeps names as they are; any other appends ``@`` and a tag of the
    tenant. Whatever contains an ``@`` is tagged too, so no name can pose as another tenant's. A look-up by
    prefix still finds the task by the name that its caller knows.
    """
    return name if not tenant and "@" not in name else f"{name}@{_tag(tenant)}"


@lru_cache(maxsize=1024)
def _tag(tenant: str) -> str:
    """Sixteen hex digits; cryptographic, because names are chosen by people who may want them to collide."""
    return hashlib.blake2b(tenant.encode(), digest_size=8).hexdigest()


def _name(value: str | None) -> str | None:
    return value if value and _PRINTABLE.fullmatch(value) else None


def sent_before(value: str | None) -> int | None:
    """How often a call had been sent before, out of `RETRY_HEADER`; ``None`` where that is missing or no count."""
    return int(value) if value is not None and _COUNT.fullmatch(value) else None


def _traceparent(value: str | None) -> tuple[str, str] | None:
    """Trace id and span id by W3C Trace Context level 1; version 00 has nothing after its flags."""
    match = _TRACEPARENT.fullmatch(value) if value else None
    if match is None:
        return None
    version, trace, span, rest = match.groups()
    if version == "ff" or (version == "00" and rest is not None) or not trace.strip("0") or not span.strip("0"):
        return None
    return trace, span
