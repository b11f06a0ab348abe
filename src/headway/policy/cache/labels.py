"""By what kept answers can be found again to be dropped: their tags, tenant, rule and version."""

from functools import lru_cache
from typing import Final

from msgspec import Struct

from headway.core.errors import BadInputError
from headway.policy.cache.worthy import is_tag

EVERYTHING = "all"
_KNOWN: Final = 4096
"""Sets of labels that are remembered: most answers have the same, and each would make its own."""


def scope_of_tenant(tenant: str) -> str:
    """Whose answers a tenant's are."""
    return f"tenant:{tenant}"


@lru_cache(maxsize=_KNOWN)
def labels_of(scope: str, rule: str, version: str, tags: frozenset[str]) -> frozenset[str]:
    """All that an answer can be found by; one value for all that are found by the same."""
    common = [EVERYTHING, f"in\0{scope}", f"rule\0{rule}", f"version\0{rule}\0{version}"]
    return frozenset(
        [*common, *[f"tag\0{tag}" for tag in tags], *[f"in\0{scope}\0tag\0{tag}" for tag in tags]],
    )


class Drop(Struct, frozen=True, kw_only=True):
    """Which answers are to go: those with one of these tags, those of a rule or of a version of it, or all.

    With a tenant, only those of that tenant, which can be told apart by tags alone.
    """

    tags: tuple[str, ...] = ()
    tenant: str | None = None
    rule: str | None = None
    version: str | None = None
    everything: bool = False

    def labels(self) -> frozenset[str]:
        """What those answers are found by.

        Raises:
            BadInputError: nothing is named, what is named does not go together, or a tag is none.
        """
        for tag in self.tags:
            if not is_tag(tag):
                raise BadInputError(f"{tag!r} is no tag.", fix="A tag is up to 64 letters, digits and . _ : / @ + -")
        match self:
            case Drop(tags=(), tenant=None, rule=None, version=None, everything=True):
                return frozenset({EVERYTHING})
            case Drop(tags=(_, *_), rule=None, version=None, everything=False):
                within = "" if self.tenant is None else f"in\0{scope_of_tenant(self.tenant)}\0"
                return frozenset(f"{within}tag\0{tag}" for tag in self.tags)
            case Drop(tags=(), tenant=str() as tenant, rule=None, version=None, everything=False):
                return frozenset({f"in\0{scope_of_tenant(tenant)}"})
            case Drop(tags=(), tenant=None, rule=str() as rule, version=None, everything=False):
                return frozenset({f"rule\0{rule}"})
            case Drop(tags=(), tenant=None, rule=str() as rule, version=str() as version, everything=False):
                return frozenset({f"version\0{rule}\0{version}"})
            case _:
                raise BadInputError(
                    "What is to be dropped is not clear.",
                    fix="Name tags, maybe of a tenant; or a tenant; or a rule, maybe a version of it; or all.",
                )
