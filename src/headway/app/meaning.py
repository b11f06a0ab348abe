"""What a question means, by the bundled embedding model, for the gateway's cache."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headway.agents.knowledge.embed import E5Embedder
from headway.gateway.caches.opening import Caching, Opening, open_cache

if TYPE_CHECKING:
    from headway.policy.cache.nearest import Vector


def opening_of(caching: Caching | None) -> Opening | None:
    """What opens the cache; ``None``: none is configured. The model is loaded only where a rule compares by meaning.

    Raises:
        MissingExtraError: it is, and the model is not installed.
    """
    if caching is None:
        return None
    return partial(open_cache, caching, bundled_meaning() if caching.needs_meanings else None)


def bundled_meaning() -> "Callable[[str], Vector]":
    """A text's meaning; takes some 15 to 80 ms of a thread.

    Raises:
        MissingExtraError: the model is not installed.
    """
    model = E5Embedder()

    def meaning(text: str) -> "Vector":
        return model.vectors([text], is_query=True)[0]

    return meaning
