"""Five small repositories with a bug each, to try the agent on."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from headway.core.errors import NotFoundError

_HERE: Final = Path(__file__).with_name("examples")


class Example(Struct, frozen=True):
    """A repository, the report of its bug, and its logs."""

    repo: Path
    report: Path
    logs: tuple[str, ...]


def names() -> tuple[str, ...]:
    """What there is."""
    return tuple(sorted(path.name for path in _HERE.iterdir() if (path / f"{path.name}.md").is_file()))


def example(name: str) -> Example:
    """One of them.

    Raises:
        NotFoundError: none is called so.
    """
    if name not in names():
        raise NotFoundError(f"No example is called {name!r}.", fix=f"There are {', '.join(names())}.")
    folder = _HERE / name
    return Example(folder / "repo", folder / f"{name}.md", tuple(str(path) for path in sorted(folder.glob("*.log"))))
