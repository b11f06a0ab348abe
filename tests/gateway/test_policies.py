"""Routing policies are found by name, Headway's own like anybody's."""

from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest

from headway.core.errors import BadInputError
from headway.gateway import policies
from headway.policy.routing.least_loaded import LeastLoaded


def test_the_built_in_policy_is_registered_like_any_other() -> None:
    assert policies.known()["least-loaded"].value == "headway.policy.routing.least_loaded:LeastLoaded"
    one, other = policies.load(), policies.load()
    assert isinstance(one, LeastLoaded)
    assert one is not other


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(BadInputError, match=r"no routing policy 'fastest'.*Installed are: .*least-loaded"):
        policies.load("fastest")


@pytest.mark.parametrize(
    "value", ["headway.not_there:Policy", "headway.policy.routing.least_loaded:NotThere", "math:nan"]
)
def test_a_plug_in_that_cannot_be_loaded_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint(name="broken", value=value, group=policies.GROUP)
    known: Callable[[], dict[str, EntryPoint]] = lambda: {"broken": broken}  # noqa: E731 - one line says it all
    monkeypatch.setattr(policies, "known", known)
    with pytest.raises(BadInputError, match=rf"'broken' \({value}\) cannot be loaded"):
        policies.load("broken")
