"""Answers of a type: what a model is told about them, and what is made of what it writes."""

import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from headway.core.errors import BadInputError

R = TypeVar("R")
_FENCED: Final = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


class Form(Generic[R]):
    """The form of an agent's answers.

    Args:
        kind: their type; ``str`` is the text as the model writes it, all else is JSON.
        check: looks at an answer and raises `BadInputError` or `ValueError` where it is not good enough.

    Raises:
        BadInputError: JSON cannot hold the type.
    """

    def __init__(self, kind: type[R], check: Callable[[R], object] | None) -> None:
        self._kind = kind
        self._check = check
        self.schema: dict[str, Any] | None = None
        """JSON Schema; ``None``: of plain text."""
        if kind is str:
            return
        try:
            self.schema = msgspec.json.schema(kind)
            self._decoder = msgspec.json.Decoder(kind)
            self._lax = msgspec.json.Decoder(kind, strict=False)
        except (TypeError, ValueError) as error:
            raise BadInputError(
                f"{kind!r} is no type of an answer: {error}.",
                fix="Use numbers, text, lists, dicts, dataclasses or Structs.",
            ) from error

    @property
    def told(self) -> str:
        """What a model is told of it; empty for plain text."""
        if self.schema is None:
            return ""
        text = msgspec.json.encode(self.schema).decode()
        return f"Your answer has to be JSON by this schema, and nothing but JSON: {text}"

    @property
    def options(self) -> dict[str, Any]:
        """Fields of a request by which an endpoint enforces it."""
        if self.schema is None:
            return {}
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": self.schema}}}

    def read(self, text: str) -> R:
        """The answer in what a model wrote.

        Raises:
            BadInputError: there is none, and why.
        """
        if not text.strip():
            raise BadInputError("It is empty.")
        answer: Any = text if self.schema is None else self._decoded(text)
        try:
            if self._check is not None:
                self._check(answer)
        except ValueError as error:
            raise BadInputError(str(error)) from error
        return answer

    def _decoded(self, text: str) -> R:
        if fenced := _FENCED.match(text):
            text = fenced[1]
        try:
            return self._decoder.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            try:  # models write numbers as text
                return self._lax.decode(text)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                raise BadInputError(f"{error}.") from error
