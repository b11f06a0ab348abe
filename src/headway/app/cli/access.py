"""What the commands about keys, tenants and audit share: where things are kept, who acts, how rows are printed."""

import getpass
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeVar

import msgspec
import typer

if TYPE_CHECKING:
    from headway.core.access import Key, Role, Tenant
    from headway.core.limits import Limit, Measure
    from headway.gateway.keys import Change
    from headway.policy.limits.book import Book

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output, for a machine.")]
Keys = Annotated[
    str | None,
    typer.Option(
        "--keys",
        envvar="HEADWAY_KEYS",
        help="Where keys are: a file, or postgresql://…; default: in your data directory.",
    ),
]
Limits = Annotated[
    str | None,
    typer.Option(
        "--limits", envvar="HEADWAY_LIMITS", help="Where use is counted: a file, or redis://…; default: with the keys."
    ),
]
_SPAN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|h|d)")
_UNITS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class _Closing(Protocol):
    def close(self) -> None: ...


_C = TypeVar("_C", bound=_Closing)


@contextmanager
def said(opened: _C) -> Generator[_C]:
    """``opened``, closed at the end."""
    try:
        yield opened
    finally:
        opened.close()


def change() -> "Change":
    """That this user changes something now."""
    from headway.gateway.keys import Change

    return Change(f"cli:{getpass.getuser()}", time.time())


def span(text: str, where: str) -> float:
    """Seconds, as a person writes them: ``90 d``, ``12 h``, ``30 min``, ``45 s``.

    Raises:
        BadInputError: it is no such thing.
    """
    from headway.core.errors import BadInputError

    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise BadInputError(f"{where} is {text!r}, which is no time.", fix='Write e.g. "90 d", "12 h" or "30 min".')
    return float(match[1]) * _UNITS[match[2]]


def read_role(text: str) -> "Role":
    """A role by name.

    Raises:
        BadInputError: there is none of this name.
    """
    from headway.core.access import Role
    from headway.core.errors import BadInputError

    try:
        return msgspec.convert(text, Role)
    except msgspec.ValidationError as error:
        raise BadInputError(f"There is no role {text!r}.", fix="Use member, viewer, operator or admin.") from error


def to_json(schema: str, name: str, value: object, **more: object) -> str:
    """One JSON document, with the name of its schema."""
    return msgspec.json.encode({"schema": schema, name: value, **more}).decode()


def key_rows(keys: "Sequence[Key]", book: "Book") -> list[dict[str, Any]]:
    """The keys as rows, with what they have used."""
    return [
        {
            "id": key.id,
            "tenant": key.tenant,
            "name": key.name,
            "role": key.role,
            "prefix": f"{key.prefix}…",
            "state": _state(key),
            "models": list(key.models),
            "limits": _limits(key),
            "used": _used("key", key.id, book),
        }
        for key in keys
    ]


def tenant_rows(tenants: "Sequence[Tenant]", book: "Book") -> list[dict[str, Any]]:
    """The tenants as rows, with what they have used."""
    return [
        {
            "id": tenant.id,
            "name": tenant.name,
            "state": "switched off" if tenant.disabled else "active",
            "models": list(tenant.models),
            "limits": _limits(tenant),
            "used": _used("tenant", tenant.id, book),
        }
        for tenant in tenants
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as text, columns as wide as they need be."""
    head = list(rows[0])
    lines = [head, *([_cell(row[name]) for name in head] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def moment(at: float) -> str:
    """A time as a person reads it, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _cell(value: str | int | list[str] | dict[str, str]) -> str:
    match value:
        case dict():
            return ", ".join(f"{name} {one}" for name, one in value.items()) or "-"
        case list():
            return ", ".join(value) or "all"
        case str() | int():
            return str(value) or "-"


def _state(key: "Key") -> str:
    if key.disabled:
        return "revoked"
    if key.expires is None:
        return "active"
    return f"{'expired' if key.expires <= time.time() else 'expires'} {moment(key.expires)}"


def _limits(owner: "Key | Tenant") -> dict[str, str]:
    from headway.core.limits import CALLER_LIMITS, TASK_LIMITS

    found: dict[str, str] = {}
    for before, limits, known in (("", owner.limits, CALLER_LIMITS), ("task_", owner.task, TASK_LIMITS)):
        for name, (measure, _) in known.items():
            limit: Limit | None = getattr(limits, name)
            if limit is not None:
                found[before + name] = _level(limit, measure)
    return found


def _level(limit: "Limit", measure: "Measure") -> str:
    from headway.core.limits import shown

    warn = "" if limit.warn is None else f" (warns at {shown(limit.warn, measure)})"
    return shown(limit.stop, measure) + warn


def _used(scope: str, account: str, book: "Book") -> dict[str, str]:
    from headway.core.limits import shown
    from headway.policy.limits.periods import counter_name

    now = time.time()
    names = {window: counter_name(scope, account, "money", window, now) for window in ("day", "month")}
    uses = book.uses(tuple(names.values()))
    return {window: shown(use.used, "money") for window, use in zip(names, uses, strict=True) if use.used}
