"""From keys and tenants as a person wrote them to the door that is opened."""

from collections.abc import Callable, Mapping
from pathlib import Path

from headway.app.config import written as tables
from headway.core.access import Tenant, TenantId
from headway.core.errors import BadInputError
from headway.core.limits import CallerLimits, Limit, Measure, TaskLimits, read_limit
from headway.gateway.door_opening import Keeping
from headway.gateway.stores import keys_on_server, limits_on_server


def keeping_of(file: tables.File, folder: Path, environment: Mapping[str, str]) -> Keeping | None:
    """What callers' keys open; ``None``: nobody is asked for a key.

    Args:
        file: the configuration, flags included.
        folder: what its paths are relative to.
        environment: where addresses with passwords are.

    Raises:
        BadInputError: an address is of nothing that is known, or its variable is not set.
    """
    if file.keys is None and not file.tenants:
        return None
    keys = file.keys or tables.Keys()
    return Keeping(
        keys=_where(keys.store, keys.store_env, "store", keys_on_server, folder, environment),
        limits=_where(keys.limits, keys.limits_env, "limits", limits_on_server, folder, environment),
        tenants=tuple([_tenant(name, written) for name, written in file.tenants.items()]),
    )


def _where(
    written: str | None,
    variable: str | None,
    name: str,
    on_server: Callable[[str], bool],
    folder: Path,
    environment: Mapping[str, str],
) -> str | None:
    if variable is not None:
        written = environment.get(variable)
        if not written:
            raise BadInputError(
                f"keys.{name}_env names the environment variable {variable}, which is not set.",
                fix=f"Put the address there: export {variable}=…",
            )
    return written if written is None or on_server(written) else str(folder / written)


def _tenant(name: str, written: tables.Tenant) -> Tenant:
    def limit(key: str, measure: Measure) -> Limit | None:
        value = getattr(written, key)
        return None if value is None else read_limit(value, measure, f"tenants.{name}.{key}")

    return Tenant(
        id=TenantId(name),
        name=written.title,
        models=tuple(written.models),
        limits=CallerLimits(
            requests_per_minute=limit("rpm", "requests"),
            tokens_per_minute=limit("tpm", "tokens"),
            concurrency=limit("concurrency", "concurrency"),
            money_per_day=limit("day", "money"),
            money_per_month=limit("month", "money"),
        ),
        task=TaskLimits(
            calls=limit("task_calls", "calls"),
            tokens=limit("task_tokens", "tokens"),
            money=limit("task_money", "money"),
            seconds=limit("task_seconds", "seconds"),
        ),
    )
