"""The gateway's limits: a file's, and over them the command line's."""

from collections.abc import Mapping

from pydantic import ValidationError

from headway.app.config.written import Limits
from headway.core import config
from headway.core.errors import BadInputError


def limits_of(written: Limits, flags: Mapping[str, str | None]) -> config.Limits:
    """The limits to serve with.

    Args:
        written: those of the file, or the defaults.
        flags: by the name of the limit, what was given on the command line, as text; ``None``: nothing.

    Raises:
        BadInputError: a flag is no size or no time, or a limit is 0.
    """
    given = {name: _plain(text) for name, text in flags.items() if text is not None}
    try:
        found = Limits.model_validate(written.model_dump() | given)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        flag = f"--{detail['loc'][0]}".replace("_", "-")
        problem = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
        raise BadInputError(
            f"{flag} cannot be {detail['input']!r}: {problem}.",
            fix="Give bytes or e.g. 16MiB for a size, seconds or e.g. 2min for a time.",
        ) from error
    for name, value in found.model_dump().items():
        if value <= 0:
            raise BadInputError(
                f"The limit {name} is {value}: nothing would ever be served.",
                fix=f"Leave it out for {getattr(config.Limits(), name)}.",
            )
    return config.Limits(**found.model_dump())


def _plain(text: str) -> str | float:
    """A number where the text is one, else the text, whose unit tells."""
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text
