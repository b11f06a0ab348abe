import gc
from collections.abc import Iterator

import pytest

from headway.gateway.collector import collect_seldom


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # Python's own: a gateway that another test ran in this process may have changed it
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_what_is_there_is_never_looked_at_again_and_what_comes_more_seldom() -> None:
    first, *others = gc.get_threshold()
    collect_seldom()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] > first
    assert list(gc.get_threshold()[1:]) == others
    assert gc.isenabled()
