"""The model for a call: what a person pinned, else the first rule that is met, else what the name stands for."""

from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct

from headway.core.span import Receipt
from headway.policy.models.catalog import Alias, Catalog, Lane, Rule, Tier
from headway.policy.models.pins import Pins

POLICY: Final = "models"


class ModelRequest(Struct, frozen=True, kw_only=True):
    """What of a call decides on its model."""

    asked: str
    """The name that the client gave."""
    tenant: str = ""
    task: str = ""
    lane: Lane = "interactive"
    input_tokens: int | None = None
    """Estimated; ``None``: unknown, and no rule about it is met."""
    output_tokens: int | None = None
    """The most that the answer may have, where the client set it."""
    tools: tuple[str, ...] = ()
    """Names of the tools offered to the model."""
    images: bool = False
    calls: int = 0
    """That the task has made before this one."""
    escalated_to: str | None = None
    """The tier to which an earlier answer's failing sent it."""


class ModelDecision(Struct, frozen=True, kw_only=True):
    """The models that may answer, best first, and why; none: ``refusal`` says what stands in the way."""

    models: tuple[str, ...]
    tier: str | None
    receipt: Receipt
    refusal: Literal["tools", "context"] | None = None


def choose(request: ModelRequest, written: Catalog, pins: Pins, now: float) -> ModelDecision:
    """Decide on the models for ``request`` at ``now`` (epoch seconds)."""
    pin = pins.find(tenant=request.tenant, task=request.task, model=request.asked, now=now)
    if pin is not None:
        reason = f"pinned by {pin.by} until {_at(pin.until)}: {pin.reason}"
        return _decided((pin.to,), None, reason)
    alias = written.aliases.get(request.asked)
    if alias is None:
        return _decided((request.asked,), None, "asked for by its own name")
    name, reason = _tier(alias, request)
    if name is None:
        return _decided(alias.models, None, f"{alias.name!r} stands for it")
    tier = written.tiers[name]
    return _within(tier, request, reason)


def _tier(alias: Alias, request: ModelRequest) -> tuple[str | None, str]:
    if request.escalated_to is not None:
        return request.escalated_to, "an answer of a lesser tier was not good enough"
    for number, rule in enumerate(alias.rules, 1):
        if _met(rule, request):
            return rule.tier, f"rule {number} of {alias.name!r} is met"
    return alias.tier, f"no rule of {alias.name!r} is met" if alias.rules else f"{alias.name!r} is of this tier"


def _met(rule: Rule, request: ModelRequest) -> bool:
    longer = rule.over_input_tokens is None or (
        request.input_tokens is not None and request.input_tokens > rule.over_input_tokens
    )
    return (
        longer
        and (not rule.tenants or request.tenant in rule.tenants)
        and rule.lane in {None, request.lane}
        and rule.with_tools in {None, bool(request.tools)}
        and rule.with_images in {None, request.images}
        and (rule.after_calls is None or request.calls > rule.after_calls)
    )


def _within(tier: Tier, request: ModelRequest, reason: str) -> ModelDecision:
    barred = tier.permits(request.tools)
    if barred:
        names = ", ".join(sorted(barred))
        receipt = Receipt(policy=POLICY, winner="", reason=f"the tier {tier.name!r} does not permit the tools {names}")
        return ModelDecision(models=(), tier=tier.name, receipt=receipt, refusal="tools")
    length = (request.input_tokens or 0) + (request.output_tokens or 0)
    if tier.context is not None and length > tier.context:
        told = f"about {length:,} tokens are more than the {tier.context:,} of the tier {tier.name!r}"
        receipt = Receipt(policy=POLICY, winner="", reason=told)
        return ModelDecision(models=(), tier=tier.name, receipt=receipt, refusal="context")
    return _decided(tier.models, tier.name, reason)


def _decided(models: tuple[str, ...], tier: str | None, reason: str) -> ModelDecision:
    return ModelDecision(models=models, tier=tier, receipt=Receipt(policy=POLICY, winner=models[0], reason=reason))


def _at(when: float) -> str:
    """Seconds of the epoch as a person reads them: UTC, wherever it is read."""
    return datetime.fromtimestamp(when, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
