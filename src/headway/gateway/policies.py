"""Routing policies by name: whatever is installed under the entry-point group, Headway's own among them."""

from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from headway.core.errors import BadInputError
from headway.policy.route import RoutePolicy

GROUP: Final = "headway.route_policies"
DEFAULT: Final = "least-loaded"


def known() -> dict[str, EntryPoint]:
    """Every installed policy by name; nothing is imported."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def load(name: str = DEFAULT) -> RoutePolicy:
    """A new policy of this name.

    Raises:
        BadInputError: no installed package registers it, or what it registers cannot be used.
    """
    policies = known()
    entry = policies.get(name)
    if entry is None:
        raise BadInputError(
            f"There is no routing policy {name!r}.",
            fix=f"Installed are: {', '.join(sorted(policies)) or 'none; reinstall headway'}.",
        )
    try:
        policy = entry.load()()
    except Exception as error:  # the code of a plug-in may fail in any way, and its name is what the reader needs
        raise BadInputError(
            f"The routing policy {name!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}.",
            fix="Repair or uninstall the package that registers it.",
        ) from error
    return cast("RoutePolicy", policy)
