"""Prices that a person writes: for own models, and where the list is not what one pays."""

import tomllib
from collections.abc import Mapping
from math import inf

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError
from headway.core.money import Price


class _Written(Struct, forbid_unknown_fields=True):
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class _File(Struct):
    prices: dict[str, _Written] = msgspec.field(default_factory=dict[str, _Written])


def read_prices(text: str, name: str) -> dict[str, Price]:
    """The tables ``[prices."MODEL"]`` of a TOML file, by the model's name: US dollars per million tokens.

    Args:
        text: the file's text.
        name: what to call it in errors.

    Raises:
        BadInputError: it is no TOML, or a price is missing, negative or misspelt.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(f"{name} has no prices that can be read: {error}.", fix=_FIX) from error
    return prices_in(document, name)


def prices_in(document: Mapping[str, object], name: str) -> dict[str, Price]:
    """The same of a file whose TOML was read.

    Raises:
        BadInputError: a price is missing, negative or misspelt.
    """
    try:
        found = msgspec.convert(document, _File).prices
    except msgspec.ValidationError as error:
        raise BadInputError(f"{name} has no prices that can be read: {error}.", fix=_FIX) from error
    return {model: _price(written, f'{name}: prices."{model}"') for model, written in found.items()}


_FIX = 'Write e.g. [prices."my-model"] input = 0.15, output = 0.60, cache_read = 0.02: US dollars per million tokens.'


def _price(written: _Written, where: str) -> Price:
    return Price(
        input=_rate(written.input, f"{where}.input"),
        output=_rate(written.output, f"{where}.output"),
        cache_read=None if written.cache_read is None else _rate(written.cache_read, f"{where}.cache_read"),
        cache_write=None if written.cache_write is None else _rate(written.cache_write, f"{where}.cache_write"),
    )


def _rate(dollars: float, where: str) -> int:
    if not 0 <= dollars < inf:
        raise BadInputError(f"{where} is {dollars}, which is no price.", fix=_FIX)
    return round(dollars * 1_000_000)
