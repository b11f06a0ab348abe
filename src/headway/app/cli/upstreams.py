"""The value of ``--upstream``: a base URL, then what there is to say about it, separated by commas."""

from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError

from headway.app.config.written import Replica
from headway.core.errors import BadInputError

_FORM: Final = (
    "Write it as URL[,model=NAME]…[,speaks=DIALECT]…[,kind=llama.cpp][,key-env=VARIABLE][,id=NAME], "
    "e.g. http://127.0.0.1:8000/v1,model=qwen3."
)


def read_upstreams(values: Sequence[str]) -> list[Replica]:
    """The replicas that ``--upstream`` options name.

    Raises:
        BadInputError: a value is no http(s) URL, or an attribute is unknown or empty.
    """
    return [_read(value) for value in values]


def _read(value: str) -> Replica:
    address, *attributes = (part.strip() for part in value.split(","))
    fields: dict[str, Any] = {"url": address}
    for attribute in attributes:
        word, _, text = (part.strip() for part in attribute.partition("="))
        match word:
            case "model" if text:
                fields.setdefault("models", []).append(text)
            case "speaks" if text:
                fields.setdefault("speaks", []).append(text)
            case "id" | "kind" if text:
                fields[word] = text
            case "key-env" if text:
                fields["key_env"] = text
            case _:
                raise BadInputError(f"--upstream: cannot read {attribute!r}.", fix=_FORM)
    try:
        return Replica.model_validate(fields)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise BadInputError(f"--upstream: {problem}.", fix=_FORM) from error
