"""What parts of a gateway tell each other: in this process at once, in other workers as soon as they hear of it."""

import logging
from collections.abc import Callable
from typing import Final

_LOG: Final = logging.getLogger(__name__)
Hears = Callable[[bytes], None]


class Bus:
    """News by topic. Whoever publishes hears it too, so that a change is made in one way wherever it comes from.

    News on its way to a worker that died, or that is not up yet, is lost to it: what has to outlive a worker is kept in
    a store.
    """

    def __init__(self) -> None:
        self._hearers: dict[str, list[Hears]] = {}
        self._pass_on: Callable[[str, bytes], None] | None = None

    def on(self, topic: str, handler: Hears) -> None:
        """Have ``handler`` told the news of a topic: on the event loop, so it must not take long."""
        self._hearers.setdefault(topic, []).append(handler)

    def publish(self, topic: str, payload: bytes) -> None:
        """Tell all who listen to ``topic``: those here before this returns."""
        self.hear(topic, payload)
        if self._pass_on is not None:
            self._pass_on(topic, payload)

    def hear(self, topic: str, payload: bytes) -> None:
        """News, from here or from elsewhere, for those who listen here."""
        for handler in self._hearers.get(topic, ()):
            try:
                handler(payload)
            except Exception:  # noqa: BLE001 - one who cannot bear the news must not keep it from the others
                _LOG.exception("news of %s could not be taken in", topic)

    def join(self, pass_on: Callable[[str, bytes], None]) -> None:
        """From now on, news from here goes to other workers by ``pass_on``; what they tell comes in by `hear`."""
        self._pass_on = pass_on
