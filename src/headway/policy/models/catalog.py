"""What is written down about models: names that clients use, tiers, and rules that choose between them."""

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from headway.core.errors import BadInputError
from headway.policy.models.doubts import Doubts

ToolPolicy = Literal["all", "none"]
Lane = Literal["interactive", "batch"]


class Tier(Struct, frozen=True, kw_only=True):
    """A grade of service: basic, standard, premium, or what one calls them."""

    name: str
    models: tuple[str, ...]
    """As replicas serve them: the one that answers, then those that do where it cannot."""
    context: int | None = None
    """Longest prompt and answer together, in tokens; ``None``: not limited here."""
    tools: ToolPolicy | frozenset[str] = "all"
    """Tools that a call may offer the model: all, none, or those named."""

    def permits(self, tools: Iterable[str]) -> tuple[str, ...]:
        """Of these tools, those that are not permitted."""
        match self.tools:
            case "all":
                return ()
            case "none":
                return tuple(tools)
            case named:
                return tuple(tool for tool in tools if tool not in named)


class Rule(Struct, frozen=True, kw_only=True):
    """When all that it names is so, its tier is taken. What it does not name may be anything."""

    tier: str
    tenants: frozenset[str] = frozenset()
    lane: Lane | None = None
    over_input_tokens: int | None = None
    """The prompt is longer than this."""
    with_tools: bool | None = None
    with_images: bool | None = None
    after_calls: int | None = None
    """The task has made more calls than this."""


class Alias(Struct, frozen=True, kw_only=True):
    """A name that clients ask for."""

    name: str
    models: tuple[str, ...] = ()
    """What answers, then what does where that cannot; none: a tier does."""
    tier: str | None = None
    """The tier where no rule is met."""
    rules: tuple[Rule, ...] = ()
    """The first that is met decides."""
    escalates: tuple[str, ...] = ()
    """Tiers from the least to the best, along which a call may be repeated when its answer is not good enough."""
    doubts: Doubts = Doubts()
    """What makes it not good enough."""
    judge: str | None = None
    """The model that is asked how good an answer is, as replicas serve it; ``None``: none is."""


class Catalog(Struct, frozen=True):
    """All aliases and tiers. A model that has no alias is known by its own name."""

    aliases: Mapping[str, Alias] = field(default_factory=dict[str, Alias])
    tiers: Mapping[str, Tier] = field(default_factory=dict[str, Tier])


def catalog(aliases: Iterable[Alias], tiers: Iterable[Tier]) -> Catalog:
    """A catalogue whose parts fit together.

    Raises:
        BadInputError: two have one name, a tier has no model, or something names a tier that there is not.
    """
    graded, named = dict[str, Tier](), dict[str, Alias]()
    for tier in tiers:
        if tier.name in graded:
            raise BadInputError(f"There are two tiers {tier.name!r}.", fix="Give each a name of its own.")
        if not tier.models:
            raise BadInputError(f"The tier {tier.name!r} has no model.", fix="Name at least one in models.")
        graded[tier.name] = tier
    for alias in aliases:
        if alias.name in named:
            raise BadInputError(f"There are two models {alias.name!r}.", fix="Give each a name of its own.")
        if not alias.models and alias.tier is None:
            raise BadInputError(f"The model {alias.name!r} has nothing that answers.", fix="Give it models, or a tier.")
        wanted = [*(rule.tier for rule in alias.rules), *alias.escalates, *([alias.tier] if alias.tier else [])]
        unknown = next((tier for tier in wanted if tier not in graded), None)
        if unknown is not None:
            known = ", ".join(sorted(graded)) or "none"
            raise BadInputError(
                f"The model {alias.name!r} names the tier {unknown!r}, which there is not.", fix=f"Tiers are: {known}."
            )
        named[alias.name] = alias
    return Catalog(named, graded)
