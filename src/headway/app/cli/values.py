"""What people write as values of options."""

from collections.abc import Generator
from contextlib import contextmanager

from headway.core.errors import BadInputError, UsageError


@contextmanager
def values() -> Generator[None]:
    """Values of options are read in it: one that is none is a wrong use of the command, not a wrong input."""
    try:
        yield
    except BadInputError as error:
        raise UsageError(error.what, fix=error.fix) from error
