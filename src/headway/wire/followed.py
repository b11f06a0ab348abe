"""What is followed in a streamed answer of any dialect: when its tokens came, and the text that a user can see."""

from typing import Final

from headway.core.span import Itl
from headway.wire.gaps import Gaps

MOST_TEXT: Final = 64 * 1024 * 1024


class FollowedAnswer:
    """One answer as far as it has come; what its events mean is the dialect's to say. Times are epoch seconds.

    Args:
        max_text: characters of text and of tools' arguments that are kept; what is beyond is only timed.
    """

    __slots__ = ("_gaps", "_room", "_text", "done", "failed", "first_token", "first_visible", "last_token")

    def __init__(self, max_text: int = MOST_TEXT) -> None:
        self.done = False
        """The mark that ends a stream was seen."""
        self.failed = False
        """The engine reported an error as an event."""
        self.first_token: float | None = None
        """When the first content, reasoning or tool delta came."""
        self.first_visible: float | None = None
        """When the first text came."""
        self.last_token: float | None = None
        self._room = max_text
        self._text: list[str] = []
        self._gaps = Gaps()

    def itl(self) -> Itl | None:
        """Summary of the gaps between token events."""
        return self._gaps.summary()

    def _token(self, now: float) -> None:
        """A delta came, whatever it adds to."""
        last, self.last_token = self.last_token, now
        if last is None:
            self.first_token = now
        else:
            self._gaps.add(now - last)

    def _keep(self, text: str, pieces: list[str]) -> None:
        """Keep ``text`` among ``pieces``, if there is room."""
        if self._room >= len(text):
            self._room -= len(text)
            pieces.append(text)

    def _say(self, text: str, now: float) -> None:
        """A delta of text that a user can see."""
        self._token(now)
        if self.first_visible is None:
            self.first_visible = now
        self._keep(text, self._text)
