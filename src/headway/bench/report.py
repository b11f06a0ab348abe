"""A campaign as it is kept and read again: figures, what they were made under, whether they can be trusted."""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from headway.bench.calibrate import Calibration
from headway.bench.figures import Figures
from headway.bench.statement import Statement
from headway.core.errors import BadInputError

SCHEMA: Final = "headway.bench/1"


class Report(Struct, frozen=True, kw_only=True):
    """One campaign."""

    schema: str = SCHEMA
    statement: Statement
    figures: Figures
    troubles: tuple[str, ...]
    """What the client did to the numbers; where there is any they are not to be used."""
    slos: tuple[str, ...]
    interrupted: bool
    cpu_share: float
    """Of a core, used by the client."""
    calibration: Calibration
    """How late the client reads what is sent to it."""

    @property
    def valid(self) -> bool:
        """Whether its numbers are the endpoint's."""
        return not self.troubles


def encode(report: Report) -> bytes:
    """As JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2)


def read(path: Path) -> Report:
    """A report that was kept.

    Raises:
        BadInputError: it cannot be read, or is none.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}.", fix="Check the path.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} is no report: {error}.", fix="Keep one with `headway bench run --out`.") from error
    if found.schema != SCHEMA:
        raise BadInputError(f"{path} has schema {found.schema!r}, not {SCHEMA!r}.", fix="Run it again.")
    return found
