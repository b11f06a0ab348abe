"""Python's garbage collector, set for a server that makes next to no cycles."""

import gc
from typing import Final

_THRESHOLD: Final = 10_000
"""Objects made and still there since it was last run; Python's own is 700, which is some ten calls under way."""


def collect_seldom() -> None:
    """Let it run more seldom, and never look at what is there already; call it once all that stays is loaded.

    What a call made is freed when it is let go of. The collector only finds cycles, of which a connection leaves one.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_THRESHOLD, *gc.get_threshold()[1:])
