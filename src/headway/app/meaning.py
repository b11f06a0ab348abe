"""What a question means, by the bundled embedding model, for the gateway's cache."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headway.agents.knowledge.embed import E5Embedder

if TYPE_CHECKING:
    from headway.policy.cache.nearest import Vector


def bundled_meaning() -> "Callable[[str], Vector]":
    """A text's meaning; takes some 15 to 80 ms of a thread.

    Raises:
        MissingExtraError: the model is not installed.
    """
    model = E5Embedder()

    def meaning(text: str) -> "Vector":
        return model.vectors([text], is_query=True)[0]

    return meaning
