"""The value of ``--upstream``: a base URL, then what there is to say about it, separated by commas."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import SplitResult, urlsplit

from headway.core.errors import BadInputError
from headway.core.fleet import Replica, ReplicaId

_FORM: Final = "Write it as URL[,model=NAME]…[,key-env=VARIABLE][,id=NAME], e.g. http://127.0.0.1:8000/v1,model=qwen3."


def read_upstreams(values: Sequence[str], environment: Mapping[str, str]) -> tuple[Replica, ...]:
    """The replicas that ``--upstream`` options name; without an ``id=``, one is called by its host and port.

    Raises:
        BadInputError: a value is no http(s) URL, an attribute is unknown or empty, the key's variable is not set,
            or two upstreams have the same id.
    """
    replicas: dict[ReplicaId, Replica] = {}
    for value in values:
        replica = _read(value, environment)
        if replica.id in replicas:
            raise BadInputError(f"Two upstreams are called {replica.id!r}.", fix="Tell them apart with id=NAME.")
        replicas[replica.id] = replica
    return tuple(replicas.values())


def _read(value: str, environment: Mapping[str, str]) -> Replica:
    address, *attributes = value.split(",")
    url = _url(address)
    models: list[str] = []
    key, name = None, url.netloc
    for attribute in attributes:
        word, _, text = (part.strip() for part in attribute.partition("="))
        match word:
            case "model" if text:
                models.append(text)
            case "id" if text:
                name = text
            case "key-env" if text:
                key = environment.get(text)
                if not key:
                    raise BadInputError(
                        f"--upstream {url.netloc}: the environment variable {text} is not set.",
                        fix=f"Put the API key into it: export {text}=…",
                    )
            case _:
                raise BadInputError(f"--upstream {url.netloc}: cannot read {attribute!r}.", fix=_FORM)
    path = url.path.rstrip("/") or "/v1"
    return Replica(id=ReplicaId(name), url=f"{url.scheme}://{url.netloc}{path}", models=tuple(models), api_key=key)


def _url(address: str) -> SplitResult:
    try:
        url = urlsplit(address.strip())
        port = url.port
    except ValueError as error:
        raise BadInputError(f"--upstream: {address!r} is no URL: {error}.", fix=_FORM) from error
    if url.username is not None or url.password is not None:
        raise BadInputError("--upstream: credentials do not belong in a URL.", fix="Name a variable with key-env=.")
    if url.scheme not in {"http", "https"} or not url.hostname or port == 0 or url.query or url.fragment:
        raise BadInputError(f"--upstream: {address!r} is no base URL of an HTTP server.", fix=_FORM)
    return url
