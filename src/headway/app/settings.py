"""What `headway.toml` says: budgets and own prices."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from headway.core.budget import Budget, read_budget
from headway.core.errors import BadInputError, NotFoundError
from headway.core.own_prices import read_prices
from headway.trace.prices import PriceOf, with_own

DEFAULT: Final = Path("headway.toml")


class Settings(Struct, frozen=True, kw_only=True):
    """One file's settings."""

    path: Path
    text: str
    prices: PriceOf

    def budget(self) -> Budget:
        """Its budget.

        Raises:
            BadInputError: it has none, or a broken one.
        """
        return read_budget(self.text, str(self.path))


def load(path: Path | None) -> Settings:
    """The settings in a file; those of ``headway.toml`` in this directory, if there is one, where none is named.

    Raises:
        NotFoundError: the named file is not there.
        BadInputError: it cannot be read.
    """
    found = path or DEFAULT
    try:
        text = found.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if path is not None:
            raise NotFoundError(f"There is no {path}.", fix="Make one with `headway budget suggest`.") from error
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{found} cannot be read: {error}.", fix="Give a TOML file in UTF-8.") from error
    return Settings(path=found, text=text, prices=with_own(read_prices(text, str(found))))
