"""From what a person wrote, in a file or as flags, to what is served."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from headway.app.config.caching import caching_of
from headway.app.config.exporting import endpoint_of
from headway.app.config.keeping import keeping_of
from headway.app.config.naming import catalog_of
from headway.app.config.resending import breakers_of, fanout_of, hedging_of, retries_of
from headway.app.config.written import Embedded, File, Gateway, Keys, Limits, Replica, Tasks
from headway.app.service import Embedded as ServedEngines
from headway.app.service import Service, SharedTasks
from headway.core import config, fleet, own_prices
from headway.core.errors import BadInputError
from headway.core.log_lines import LogFormat
from headway.gateway import policies, scheduling
from headway.gateway.engines import EngineSpec
from headway.gateway.models import find
from headway.gateway.observer.endpoint import Endpoint

_RECORD: Final = "Record (`record = true` under [gateway], no --no-record), or leave it out."
_WAY_OUT: Final = "Give bytes or e.g. 16MiB for a size, seconds or e.g. 2min for a time."


def with_flags(file: File, gateway: Mapping[str, object], limits: Mapping[str, str | None]) -> File:
    """The configuration with what the command line says in place of what the file does.

    Args:
        file: as it was read.
        gateway: by the key of ``[gateway]``; ``None``: not given.
        limits: by the key of ``[gateway.limits]``, as text.

    Raises:
        BadInputError: a limit cannot be what was given.
    """
    given = {key: value for key, value in gateway.items() if value is not None}
    changed = {"limits": _limits(file.gateway.limits, limits), **given}
    return file.model_copy(update={"gateway": Gateway.model_validate(dict(file.gateway) | changed)})


def with_keys(file: File, keys: str | None, limits: str | None) -> File:
    """The configuration with where the command line says that keys and use are kept; with either, keys are needed."""
    if keys is None and limits is None:
        return file
    written = file.keys or Keys()
    changed = dict[str, str | None]()
    if keys is not None:
        changed |= {"store": keys if "://" in keys else str(Path(keys).absolute()), "store_env": None}
    if limits is not None:
        changed |= {"limits": limits if "://" in limits else str(Path(limits).absolute()), "limits_env": None}
    return file.model_copy(update={"keys": written.model_copy(update=changed)})


def with_log(file: File, form: LogFormat | None, *, calls: bool | None) -> File:
    """The configuration with what the command line says about the log."""
    given = {name: value for name, value in (("format", form), ("calls", calls)) if value is not None}
    return file.model_copy(update={"log": file.log.model_copy(update=given)})


def _limits(written: Limits, flags: Mapping[str, str | None]) -> Limits:
    given = {name: _plain(text) for name, text in flags.items() if text is not None}
    try:
        return Limits.model_validate(dict(written) | given)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        flag = f"--{detail['loc'][0]}".replace("_", "-")
        problem = detail["msg"].removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
        raise BadInputError(f"{flag} cannot be {detail['input']!r}: {problem}.", fix=_WAY_OUT) from error


def _plain(text: str) -> str | float:
    """A number where the text is one, else the text, whose unit tells."""
    try:
        return int(text) if text.removeprefix("-").isdigit() else float(text)
    except ValueError:
        return text


def service_of(file: File, folder: Path, environment: Mapping[str, str]) -> Service:
    """What to serve.

    Args:
        file: the configuration, flags included.
        folder: what its paths are relative to.
        environment: where the replicas' keys are.

    Raises:
        BadInputError: two replicas have one id, or a key's variable is not set.
        NotFoundError: the local model is not there.
    """
    gateway, turns = file.gateway, _scheduling(file)
    store = folder / gateway.store if gateway.store is not None else config.default_store()
    return Service(
        upstreams=replicas_of(file.replicas, environment),
        embedded=None if file.embedded is None else _engines(file.embedded, folder),
        host=gateway.host,
        port=gateway.port,
        workers=gateway.workers,
        allow_hosts=tuple(gateway.allow_hosts),
        admin_port=gateway.admin_port if gateway.admin else None,
        store=store if gateway.record else None,
        keep_text=gateway.keep_text,
        policy=gateway.policy or (policies.DEFAULT if turns is None else scheduling.DEFAULT),
        scheduling=turns,
        limits=config.Limits(**dict(gateway.limits)),
        drain=gateway.drain,
        export=_export(file, environment),
        log=file.log.format,
        log_calls=_log_calls(file),
        catalog=catalog_of(file),
        keeping=keeping_of(file, folder, environment),
        retries=retries_of(file.retries),
        breakers=breakers_of(file.breakers),
        hedging=hedging_of(file.hedging),
        fanout=fanout_of(file.fanout),
        tasks=_tasks(file.tasks, environment),
        caching=caching_of(file.cache, environment),
        prices=own_prices.prices_in({"prices": file.prices or {}}, "The configuration"),
    )


def _scheduling(file: File) -> scheduling.Scheduling | None:
    written = file.schedule
    if written is None or not written.on:
        return None
    return scheduling.Scheduling(
        order=written.order,
        admit_tasks=written.admit_tasks,
        patience=written.patience,
        weights=written.weights,
        batch=frozenset(written.batch),
        shadow=written.shadow,
        most_waiting=written.most_waiting,
        longest_wait=written.longest_wait,
    )


def _export(file: File, environment: Mapping[str, str]) -> Endpoint | None:
    written = file.export
    if file.gateway.record:
        return endpoint_of(written.endpoint, written.headers_env, environment)
    if written.endpoint is not None:
        raise BadInputError("What is exported is what is recorded, and recording is off.", fix=_RECORD)
    return None


def _tasks(written: Tasks, environment: Mapping[str, str]) -> SharedTasks:
    redis = written.redis
    if written.redis_env is not None:
        redis = environment.get(written.redis_env)
        if not redis:
            raise BadInputError(
                f"Tasks need the address of Redis, and the environment variable {written.redis_env} is not set.",
                fix=f"Put it there: export {written.redis_env}=redis://…",
            )
    return SharedTasks(redis=redis, ttl=written.ttl, patience=written.patience)


def _log_calls(file: File) -> bool:
    if file.log.calls and not file.gateway.record:
        raise BadInputError("The log of calls is made of what is recorded, and recording is off.", fix=_RECORD)
    return file.log.calls


def called(replica: Replica) -> str:
    """By its id; without one by its host and port."""
    return replica.id or urlsplit(replica.url).netloc


def replicas_of(written: Sequence[Replica], environment: Mapping[str, str]) -> tuple[fleet.Replica, ...]:
    """The replicas with their keys; one without an id is called by its host and port.

    Raises:
        BadInputError: two have one id, or a key's variable is not set.
    """
    replicas: dict[str, fleet.Replica] = {}
    for one in written:
        name = called(one)
        if name in replicas:
            raise BadInputError(f"Two replicas are called {name!r}.", fix="Tell them apart: give each an id.")
        key = None if one.key_env is None else environment.get(one.key_env)
        if one.key_env is not None and not key:
            raise BadInputError(
                f"The replica {name!r} needs a key, and the environment variable {one.key_env} is not set.",
                fix=f"Put the API key into it: export {one.key_env}=…",
            )
        replicas[name] = fleet.Replica(
            id=fleet.ReplicaId(name),
            url=one.url,
            engine=one.kind,
            models=tuple(one.models),
            speaks=tuple(one.speaks),
            api_key=key,
        )
    return tuple(replicas.values())


def _engines(written: Embedded, folder: Path) -> ServedEngines:
    spec = EngineSpec(
        weights=find(None if written.weights is None else folder / written.weights),
        slots=written.slots,
        context=written.context,
        threads=written.threads,
        cache_mib=written.cache_mib,
    )
    return ServedEngines(spec=spec, count=written.replicas)
