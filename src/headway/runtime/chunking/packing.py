"""Packing: parts in their order, as many in a chunk as its budget holds."""

from collections import deque
from collections.abc import Iterable, Iterator

from headway.runtime.chunking.chunk import Chunk, Part
from headway.runtime.chunking.cutting import most
from headway.runtime.chunking.measure import Measure


def packed(parts: Iterable[Part], budget: int, measure: Measure) -> Iterator[Chunk]:
    """Chunks of parts of which each fits alone; neighbours stay neighbours.

    Each part is counted once, and each chunk whole: parts together can have a token more than one by one.
    """
    held: list[Part] = []
    sizes: deque[int] = deque()
    size = 0
    for part in parts:
        tokens = measure.count(part.written)
        while held and size + tokens > budget:
            chunk = _first(held, budget, measure)
            yield chunk
            held = held[len(chunk.parts) :]
            size -= sum(sizes.popleft() for _ in chunk.parts)
        held.append(part)
        sizes.append(tokens)
        size += tokens
    while held:
        chunk = _first(held, budget, measure)
        yield chunk
        held = held[len(chunk.parts) :]


def _first(held: list[Part], budget: int, measure: Measure) -> Chunk:
    parts = tuple(held)
    chunk = chunk_of(parts, measure)
    if chunk.tokens <= budget:
        return chunk
    fitting = most(len(parts) - 1, lambda n: chunk_of(parts[:n], measure).tokens <= budget)
    return chunk_of(parts[: max(1, fitting)], measure)


def chunk_of(parts: tuple[Part, ...], measure: Measure, window: tuple[float, float] | None = None) -> Chunk:
    """A chunk of these parts, counted."""
    text = "".join(part.written for part in parts)
    return Chunk(parts=parts, tokens=measure.count(text), counted=measure.name, exact=measure.exact, window=window)
