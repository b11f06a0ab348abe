"""A configuration out of its text: every mistake at once, each with its line."""

import reprlib
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from headway.app.config.contradictions import contradictions, unknown_tiers
from headway.app.config.places import Key, Places, pieces
from headway.app.config.written import File
from headway.core.budget import read_budget
from headway.core.errors import BadInputError, NotFoundError
from headway.core.own_prices import read_prices

_FIX: Final = "Mend the lines named; `headway check --schema` prints what each table may hold."


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a configuration."""

    line: int | None
    """From 1; ``None``: it is nowhere in the text."""
    key: str
    """Where it is, e.g. ``replicas[1].url``; empty: the file as a whole."""
    problem: str


class BadConfigError(BadInputError):
    """A configuration that cannot be used.

    Args:
        name: what the file is called.
        mistakes: all of them, by line.
    """

    def __init__(self, name: str, mistakes: tuple[Mistake, ...]) -> None:
        lines = "\n".join(f"  {name}:{_line(mistake)} {_shown(mistake)}" for mistake in mistakes)
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        super().__init__(f"{name} has {count}.\n{lines}", fix=_FIX)
        self.mistakes = mistakes


def load_config(path: Path) -> File:
    """The configuration in a file.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: it cannot be read.
        BadConfigError: it has mistakes.
    """
    return read_config(text_of(path), str(path))


def text_of(path: Path) -> str:
    """The text of a configuration.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFoundError(
            f"There is no {path}.", fix="Name a TOML file; docs/config.md has one to begin with."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} cannot be read: {error}.", fix="Give a TOML file in UTF-8.") from error


def read_config(text: str, name: str) -> File:
    """The configuration in a text.

    Raises:
        BadConfigError: it has mistakes.
    """
    file, mistakes = examine(text, name)
    refuse(name, mistakes)
    return file


def refuse(name: str, mistakes: Iterable[Mistake]) -> None:
    """Tell mistakes by their lines, if there are any.

    Raises:
        BadConfigError: there are.
    """
    found = tuple(sorted(mistakes, key=lambda mistake: mistake.line or 0))
    if found:
        raise BadConfigError(name, found)


def examine(text: str, name: str) -> tuple[File, list[Mistake]]:
    """What can be read of a configuration, and all that is wrong with it; a table with a mistake is left out.

    Args:
        text: TOML.
        name: what to call it in errors.

    Raises:
        BadConfigError: it is no TOML, so that nothing can be read.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfigError(name, (_no_toml(error, text),)) from error
    mistakes: list[Mistake] = []
    places = Places(text)
    broken = set[str | int]()
    try:
        file = File.model_validate(document)
    except ValidationError as error:
        details = error.errors(include_url=False)
        mistakes += [_mistake(detail, places) for detail in details]
        broken = {detail["loc"][0] for detail in details}
        rest = {table: value for table, value in document.items() if table not in broken}
        file = File.model_validate(
            rest | {table: {} for table in broken & {"embedded"}}
        )  # whatever they are, there are
    tiers = () if "tiers" in broken else unknown_tiers(file)
    mistakes += [mistake_at(places, key, problem) for key, problem in (*contradictions(file), *tiers)]
    for table, reader in (("budget", read_budget), ("prices", read_prices)):
        if table in document:
            try:
                reader(text, name)
            except BadInputError as error:
                problem = str(error).removeprefix(name).lstrip(": ")
                line = places.line(pieces(problem)) or places.line((table,))
                mistakes.append(Mistake(line=line, key="", problem=problem))
    return file, mistakes


def mistake_at(places: Places, key: Key, problem: str) -> Mistake:
    """What is wrong with what ``key`` is."""
    return Mistake(line=places.line(key), key=dotted(key), problem=problem)


def _no_toml(error: tomllib.TOMLDecodeError, text: str) -> Mistake:
    problem = str(error)
    words, _, place = problem.rpartition(" (at line ")
    if words:
        return Mistake(line=int(place.partition(",")[0]), key="", problem=f"this is no TOML: {words}")
    return Mistake(line=text.rstrip().count("\n") + 1, key="", problem=f"this is no TOML: {problem}")


def _mistake(detail: ErrorDetails, places: Places) -> Mistake:
    key: Key = detail["loc"]
    match detail["type"]:
        case "extra_forbidden":
            problem = "there is no such key"
        case "missing":
            problem = "is missing"
        case "value_error":
            problem = detail["msg"].removeprefix("Value error, ")
        case _:
            problem = f"{detail['msg'].removeprefix('Input ')}, not {reprlib.repr(detail['input'])}"
    return mistake_at(places, key, problem)


def dotted(key: Key) -> str:
    """A key as a person writes it, e.g. ``replicas[1].url``."""
    text = ""
    for piece in key:
        text += f"[{piece}]" if isinstance(piece, int) else f".{piece}" if text else piece
    return text


def _line(mistake: Mistake) -> str:
    return "" if mistake.line is None else f"{mistake.line}:"


def _shown(mistake: Mistake) -> str:
    return f"{mistake.key}: {mistake.problem}" if mistake.key else mistake.problem
