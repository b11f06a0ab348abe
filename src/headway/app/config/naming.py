"""From models and tiers as a person wrote them to the catalogue that calls are answered by."""

from headway.app.config import written as tables
from headway.policy.models.catalog import Alias, Catalog, Rule, Tier, catalog
from headway.policy.models.doubts import Doubts


def catalog_of(file: tables.File) -> Catalog | None:
    """The catalogue; ``None``: models are known by their own names alone.

    Raises:
        BadInputError: a name stands for nothing, or names a tier that there is not.
    """
    if not file.models and not file.tiers:
        return None
    return catalog(
        [_alias(name, written) for name, written in file.models.items()],
        [_tier(name, written) for name, written in file.tiers.items()],
    )


def _alias(name: str, written: tables.Model) -> Alias:
    escalate = written.escalate
    return Alias(
        name=name,
        models=tuple(written.models),
        tier=written.tier,
        rules=tuple(map(_rule, written.rules)),
        escalates=() if escalate is None else tuple(escalate.tiers),
        doubts=Doubts() if escalate is None else _doubts(escalate),
        judge=None if escalate is None else escalate.judge,
    )


def _doubts(written: tables.Escalate) -> Doubts:
    return Doubts(
        mean_logprob=written.mean_logprob,
        schema=written.json_schema,
        refused=written.refusal,
        judge=None if written.judge is None else written.judge_below,
    )


def _rule(written: tables.ModelRule) -> Rule:
    return Rule(
        tier=written.tier,
        tenants=frozenset(written.tenants),
        lane=written.lane,
        over_input_tokens=written.over_input_tokens,
        with_tools=written.with_tools,
        with_images=written.with_images,
        after_calls=written.after_calls,
    )


def _tier(name: str, written: tables.Tier) -> Tier:
    tools = written.tools
    return Tier(
        name=name,
        models=tuple(written.models),
        context=written.context,
        tools=frozenset(tools) if isinstance(tools, list) else tools,
    )
