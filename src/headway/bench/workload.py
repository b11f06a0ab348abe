"""What is played: sessions out of a file, or made of a shape; and how a report says so."""

import json
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from msgspec import Struct

from headway.bench.graph import Session, checked
from headway.bench.shapes import Sizes, made
from headway.core.errors import BadInputError

_SCHEMA: Final = "headway.workload/1"
_FILE_LIMIT: Final = 256 * 1024 * 1024


class Workload(Struct, frozen=True, kw_only=True):
    """Sessions without end, and what they are."""

    written: str
    """For a person."""
    digest: str
    """16 hex digits; two workloads with the same one play the same sessions from the same seed."""
    sessions: Callable[[], Iterator[Session]]
    """From the first on, each time it is asked."""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    schema: str
    sessions: tuple[Session, ...]


_decoder: Final = msgspec.json.Decoder(_File)


def of_shape(shape: str, sizes: Sizes, seed: int) -> Workload:
    """Sessions of ``shape``, each drawn anew; the same ``seed`` draws the same ones."""
    lengths = {
        "system": sizes.system,
        "input": sizes.input.written,
        "output": sizes.output.written,
        "tool": sizes.tool.written,
        "think": sizes.think.written,
        "steps": sizes.steps.written,
        "width": sizes.width,
    }
    written = f"{shape}: {', '.join(f'{name} {value}' for name, value in lengths.items())}"

    def sessions() -> Iterator[Session]:
        dice = Random(seed)  # noqa: S311 - the same every time on purpose
        while True:
            yield checked(made(shape, sizes, dice), shape)

    return Workload(written=written, digest=_digest({"shape": shape, "seed": seed, **lengths}), sessions=sessions)


def of_file(path: Path) -> Workload:
    """The sessions of a file, in order, again and again.

    Raises:
        BadInputError: it cannot be read, or a session in it cannot be played; the message says where.
    """
    try:
        if path.stat().st_size > _FILE_LIMIT:
            raise BadInputError(f"{path} is larger than {_FILE_LIMIT >> 20} MiB.", fix="Split it.")
        data = path.read_bytes()
        found = _decoder.decode(data)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}.", fix="Check the path.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInputError(f"{path} is no workload: {error}.", fix=f"Write it as {_SCHEMA} says.") from error
    if found.schema != _SCHEMA or not found.sessions:
        raise BadInputError(
            f"{path} has schema {found.schema!r} and {len(found.sessions)} sessions.",
            fix=f"Give schema {_SCHEMA!r} and at least one session.",
        )
    for number, session in enumerate(found.sessions):
        checked(session, f"{path}: sessions[{number}]")
    digest = _digest(json.loads(data))
    return Workload(
        written=f"{path.name}: {len(found.sessions)} sessions, again and again",
        digest=digest,
        sessions=lambda: cycle(found.sessions),
    )


def _digest(value: object) -> str:
    return blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=8).hexdigest()
