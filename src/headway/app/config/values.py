"""What stands in the tables of `headway.toml`: times, sizes, URLs and ports, and how a person may write them."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from headway.app.config.exporting import traces_url
from headway.app.config.urls import http_url
from headway.core import budget
from headway.core.errors import BadInputError
from headway.gateway.redis_client import redis_url
from headway.wire.dialects import BY_NAME

_SIZE: Final = re.compile(r"([0-9]+)\s*(B|KiB|MiB|GiB)")
_BASE: Final = "http://127.0.0.1:8000/v1"
_SIZES: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def _size(value: object) -> object:
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise ValueError(f"{value!r} is no size; write bytes, or e.g. 64 KiB, 16 MiB")
        return int(match[1]) * _SIZES[match[2]]
    return value


def _read_by(reader: Callable[[str | float, str], float]) -> Callable[[Any], float]:
    """One of `core.budget`'s readers, its errors in pydantic's terms."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"{value!r} is neither a number nor text with a unit")  # noqa: TRY004 - pydantic's contract
        try:
            return reader(value, "it")
        except BadInputError as error:
            raise ValueError(str(error).removeprefix("it ")) from error

    return read


def _base_url(value: str) -> str:
    url = http_url(value, instead="name an environment variable with key_env", example=_BASE)
    if url.query:
        raise ValueError(f"{value!r} ends in a query, to which no path can be added; write e.g. {_BASE}")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/') or '/v1'}"


def _dialect(value: str) -> str:
    if value not in BY_NAME:
        raise ValueError(f"{value!r} is no dialect; there are {', '.join(BY_NAME)}")
    return value


_UNITS: Final = {"type": ["number", "string"]}
Seconds = Annotated[
    float,
    BeforeValidator(_read_by(budget.seconds)),
    WithJsonSchema(_UNITS | {"examples": [0.4, "400 ms", "1.5 s", "2 min"]}),
]
"""A time: a number of seconds, or text with a unit."""
Wait = Annotated[Seconds, Field(gt=0)]
"""A time that is not nothing: as a limit, nothing would ever be served."""
Bytes = Annotated[
    int, BeforeValidator(_size), Field(gt=0), WithJsonSchema({"type": ["integer", "string"], "examples": ["16 MiB"]})
]
Url = Annotated[str, AfterValidator(_base_url), WithJsonSchema({"type": "string", "format": "uri"})]
TracesUrl = Annotated[str, AfterValidator(traces_url), WithJsonSchema({"type": "string", "format": "uri"})]
RedisUrl = Annotated[
    str,
    AfterValidator(redis_url),
    WithJsonSchema({"type": "string", "pattern": "^(redis|rediss|unix)://", "examples": ["redis://127.0.0.1:6379/1"]}),
]
Port = Annotated[int, Field(ge=0, le=65535)]
DialectName = Annotated[str, AfterValidator(_dialect), WithJsonSchema({"enum": sorted(BY_NAME)})]


class Table(BaseModel):
    """A table: no other keys than those named, and no value of another type made to fit."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)
