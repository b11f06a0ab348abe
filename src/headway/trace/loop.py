"""The task's loop: the model calls on its critical path, each with what came before the next one."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from headway.trace.path import Tile


class Turn(Struct, frozen=True):
    """One iteration: a model call on the path (the tree's index) and its tiles, in order of time."""

    call: int
    tiles: list[Tile]


def turns_of(tiles: Iterable[Tile], calls: AbstractSet[int]) -> tuple[list[Tile], list[Turn]]:
    """The tiles before the first call of the path, then its turns; every tile is in exactly one place.

    A call's tiles belong to its own turn; whatever else comes before the next call appears belongs to the turn begun
    last, a tool's time around its sub-agents' calls included.
    """
    lead_in: list[Tile] = []
    turns: list[Turn] = []
    begun: dict[int, Turn] = {}
    for tile in tiles:
        if tile.owner in calls:
            turn = begun.get(tile.owner)
            if turn is None:
                turn = begun[tile.owner] = Turn(tile.owner, [])
                turns.append(turn)
            turn.tiles.append(tile)
        elif turns:
            turns[-1].tiles.append(tile)
        else:
            lead_in.append(tile)
    return lead_in, turns


def seconds(tiles: Sequence[Tile]) -> float:
    """Their length in all."""
    return sum(tile.end - tile.start for tile in tiles)
