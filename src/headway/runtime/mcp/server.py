"""Which servers there are, what they may take, and what is believed of their tools."""

import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from headway.core.errors import BadInputError

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")


class McpServer(Struct, frozen=True, kw_only=True):
    """What servers have in common. What one says of its own tools' harmlessness is a stranger's word, not believed.

    Raises:
        BadInputError: the name cannot be a part of a tool's, or a limit makes no sense.
    """

    name: str
    """Up to 32 letters, digits, ``-`` and single ``_``; its tools are called ``name__tool``."""
    only: frozenset[str] | None = None
    """The tools that are wanted, by the names that the server has for them, as in the next three; ``None``: all."""
    pure: frozenset[str] = frozenset()
    """Tools that give the same for the same arguments for ever."""
    reads: frozenset[str] = frozenset()
    """Tools that look at the world and leave it as it is."""
    idempotent: frozenset[str] = frozenset()
    """Tools that change the world, and come to the same when they are called twice. Only of these and of the other two
    are calls made again whose connection was lost."""
    timeout: float = 60.0
    """Seconds that a call may take, waiting for a connection included."""
    start_timeout: float = 60.0
    """Seconds until a connection has to be there and the tools to be known; a program may be fetched first."""
    most_bytes: int = 1_000_000
    """Of one message, as it is sent. An answer that is longer is a failure of that call."""
    concurrency: int = 8
    """Calls of one tool at once."""
    connections: int = 1
    """Kept at once; each is a process where the server is a program. More than one only where the server remembers
    nothing between calls."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if not _NAME.fullmatch(self.name) or "__" in self.name:
            raise BadInputError(
                f"{self.name!r} cannot be a server's name.", fix="Use up to 32 letters, digits, - and single _."
            )
        for name, sound, fix in (
            ("timeout", self.timeout > 0 and isfinite(self.timeout), "It is seconds, above 0."),
            ("start_timeout", self.start_timeout > 0 and isfinite(self.start_timeout), "It is seconds, above 0."),
            ("most_bytes", self.most_bytes >= 1, "It is bytes, 1 or more."),
            ("concurrency", self.concurrency >= 1, "It is 1 or more."),
            ("connections", self.connections >= 1, "It is 1 or more."),
        ):
            if not sound:
                raise BadInputError(f"{self.name}: {name}={getattr(self, name)} makes no sense.", fix=fix)


class McpCommand(McpServer, frozen=True, kw_only=True):
    """A server that is a program: it is started, and spoken to over its standard input and output."""

    command: tuple[str, ...]
    """The program and its arguments."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Beside HOME, LOGNAME, PATH, SHELL, TERM and USER, which are all that it gets of this process's; never logged."""
    folder: Path | None = None
    """Where it is started; ``None``: where this process is."""

    def __post_init__(self) -> None:
        """Refuse what cannot be started."""
        super().__post_init__()
        if isinstance(self.command, str) or not self.command or not all(self.command):
            raise BadInputError(
                f"{self.name}: command is {self.command!r}.", fix='Give a tuple of words: ("npx", "-y", "a-server").'
            )


class McpEndpoint(McpServer, frozen=True, kw_only=True):
    """A server at a URL, spoken to over streamable HTTP."""

    url: str
    """Like http://127.0.0.1:8000/mcp."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Sent with every request, like ``{"authorization": "Bearer …"}``; never logged."""

    def __post_init__(self) -> None:
        """Refuse what is no URL."""
        super().__post_init__()
        if not self.url.startswith(("http://", "https://")):
            raise BadInputError(f"{self.name}: {self.url!r} is no http(s) URL.", fix="It looks like http://host/mcp.")
