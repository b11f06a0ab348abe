"""What is wrong with a configuration though each of its lines is well: names of nothing, variables that are not set."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from headway.app.config.contradictions import Found
from headway.app.config.places import Key, Places
from headway.app.config.reading import Mistake, examine, mistake_at, refuse, text_of
from headway.app.config.serving import service_of
from headway.app.config.written import File, Keys
from headway.core.errors import BadInputError
from headway.gateway import policies
from headway.gateway.redis_client import redis_url
from headway.gateway.stores import keys_on_server, limits_on_server

_ADD: Final = "add it to the models of one that does"


def check_config(path: Path, environment: Mapping[str, str]) -> None:
    """Find out whether a file could be served from, with these environment variables.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: it cannot be read.
        BadConfigError: it has mistakes.
    """
    text, name = text_of(path), str(path)
    file, found = examine(text, name)
    places = Places(text)
    told = (
        *_unset(file, environment),
        *_unkept(file, environment),
        *_unserved(file),
        *_policies(file),
        *_unrecorded(file),
    )
    found += [mistake_at(places, key, problem) for key, problem in told]
    if not found:
        found = [Mistake(line=None, key="", problem=problem) for problem in _as_a_whole(file, path, environment)]
    refuse(name, found)


def _unset(file: File, environment: Mapping[str, str]) -> Iterator[Found]:
    named: list[tuple[Key, str | None]] = [
        (("replicas", i, "key_env"), one.key_env) for i, one in enumerate(file.replicas)
    ]
    named.append((("export", "headers_env"), file.export.headers_env))
    named.append((("tasks", "redis_env"), file.tasks.redis_env))
    if file.cache is not None:
        named.append((("cache", "redis_env"), file.cache.redis_env))
    if file.keys is not None:
        named += [(("keys", "store_env"), file.keys.store_env), (("keys", "limits_env"), file.keys.limits_env)]
    for key, variable in named:
        if variable is not None and not environment.get(variable):
            yield key, f"the environment variable {variable} is not set"


def _unkept(file: File, environment: Mapping[str, str]) -> Iterator[Found]:
    """Addresses at which nothing can be kept, written down or in a variable."""
    keys = file.keys or Keys()
    for name, where, variable, on_server in (
        ("store", keys.store, keys.store_env, keys_on_server),
        ("limits", keys.limits, keys.limits_env, limits_on_server),
    ):
        found = {name: where, f"{name}_env": None if variable is None else environment.get(variable)}
        for key, address in found.items():
            try:
                on_server(address or "")
            except BadInputError as error:
                yield ("keys", key), f"{error.what} {error.fix}"
    for table, variable in (("tasks", file.tasks.redis_env), ("cache", file.cache and file.cache.redis_env)):
        if variable and (address := environment.get(variable)):
            try:
                redis_url(address)
            except ValueError as error:
                yield (table, "redis_env"), f"what the environment variable {variable} holds cannot be used: {error}"


def _policies(file: File) -> Iterator[Found]:
    shadow = file.schedule.shadow if file.schedule is not None else None
    for key, policy in ((("gateway", "policy"), file.gateway.policy), (("schedule", "shadow"), shadow)):
        if policy is not None:
            try:
                policies.load(policy)
            except BadInputError as error:
                yield key, f"{error.what} {error.fix}".rstrip()


def _unrecorded(file: File) -> Iterator[Found]:
    """What is made of what is recorded, where nothing is."""
    for key, wanted in ((("export", "endpoint"), file.export.endpoint), (("log", "calls"), file.log.calls)):
        if wanted and not file.gateway.record:
            yield key, "it is made of what is recorded, and recording is off; record, or leave it out"


def _unserved(file: File) -> Iterator[Found]:
    """Models that no replica serves; known only where every one declares what it serves."""
    if file.embedded is not None or not file.replicas or not all(one.models for one in file.replicas):
        return
    served = {model for one in file.replicas for model in one.models}
    tables = [("models", name, model.models) for name, model in file.models.items()]
    tables += [("tiers", name, tier.models) for name, tier in file.tiers.items()]
    for name, model in file.models.items():
        judge = None if model.escalate is None else model.escalate.judge
        if judge is not None and judge not in served:
            yield ("models", name, "escalate", "judge"), f"no replica serves {judge!r}; {_ADD}"
    for table, name, wanted in tables:
        for i, model in enumerate(wanted):
            if model not in served:
                hint = (
                    "a name under [models] does not count: write what it stands for" if model in file.models else _ADD
                )
                yield (table, name, "models", i), f"no replica serves {model!r}; {hint}"


def _as_a_whole(file: File, path: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """What only putting it together shows; whether the local model's weights are there is not the file's matter."""
    try:
        service_of(file.model_copy(update={"embedded": None}), path.absolute().parent, environment)
    except BadInputError as error:
        yield f"{error.what} {error.fix}".rstrip()
