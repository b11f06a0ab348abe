"""What is wrong with a configuration though each of its lines is well: names of nothing, variables that are not set."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from headway.app.config.places import Key, Places
from headway.app.config.reading import BadConfigError, Mistake, dotted, load_config
from headway.app.config.serving import service_of
from headway.app.config.written import File, Keys
from headway.core.errors import BadInputError
from headway.gateway.stores import keys_on_server, limits_on_server


def check_config(path: Path, environment: Mapping[str, str]) -> None:
    """Find out whether a file could be served from, with these environment variables.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: it cannot be read.
        BadConfigError: it has mistakes.
    """
    file = load_config(path)
    places = Places(path.read_text(encoding="utf-8"))
    found = [
        Mistake(line=places.line(key), key=dotted(key), problem=problem)
        for key, problem in (
            *_unset(file, environment),
            *_unkept(file, environment),
            *_unknown_tiers(file),
            *_unserved(file),
        )
    ]
    if not found:
        found = [Mistake(line=None, key="", problem=problem) for problem in _as_a_whole(file, path, environment)]
    if found:
        raise BadConfigError(str(path), tuple(sorted(found, key=lambda mistake: mistake.line or 0)))


def _unset(file: File, environment: Mapping[str, str]) -> Iterator[tuple[Key, str]]:
    named: list[tuple[Key, str | None]] = [
        (("replicas", i, "key_env"), one.key_env) for i, one in enumerate(file.replicas)
    ]
    named.append((("export", "headers_env"), file.export.headers_env))
    if file.keys is not None:
        named += [(("keys", "store_env"), file.keys.store_env), (("keys", "limits_env"), file.keys.limits_env)]
    for key, variable in named:
        if variable is not None and not environment.get(variable):
            yield key, f"the environment variable {variable} is not set"


def _unkept(file: File, environment: Mapping[str, str]) -> Iterator[tuple[Key, str]]:
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


def _unknown_tiers(file: File) -> Iterator[tuple[Key, str]]:
    for name, model in file.models.items():
        wanted: list[tuple[Key, str | None]] = [(("models", name, "tier"), model.tier)]
        wanted += [(("models", name, "rules", i, "tier"), rule.tier) for i, rule in enumerate(model.rules)]
        for key, tier in wanted:
            if tier is not None and tier not in file.tiers:
                yield key, f"there is no tier {tier!r}; give it a table [tiers.{tier}]"


def _unserved(file: File) -> Iterator[tuple[Key, str]]:
    """Models that no replica serves; known only where every one declares what it serves."""
    if file.embedded is not None or not file.replicas or not all(one.models for one in file.replicas):
        return
    served = {model for one in file.replicas for model in one.models} | set(file.models)
    for name, model in file.models.items():
        for i, wanted in enumerate(model.models):
            if wanted not in served or (wanted == name and not any(name in one.models for one in file.replicas)):
                yield (
                    ("models", name, "models", i),
                    f"no replica serves {wanted!r}; add it to the models of one that does",
                )


def _as_a_whole(file: File, path: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """What only putting it together shows; whether the local model's weights are there is not the file's matter."""
    try:
        service_of(file.model_copy(update={"embedded": None}), path.absolute().parent, environment)
    except BadInputError as error:
        yield f"{error.what} {error.fix}".rstrip()
