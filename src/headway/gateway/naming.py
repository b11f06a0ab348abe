"""Which models may answer a call: what its name stands for, by the written rules, and who comes after whom."""

from collections import OrderedDict
from typing import Final

import msgspec
from msgspec import Struct, structs

from headway.gateway.front import Request
from headway.gateway.journal import TALK, CallRecord
from headway.gateway.ladder import Escalations, Ladder, Rung
from headway.gateway.responses import Failure, failure
from headway.policy.limits.estimate import estimate
from headway.policy.models.catalog import Alias, Catalog
from headway.policy.models.choose import ModelRequest, choose
from headway.policy.models.pins import Pins
from headway.wire.dialect import Asked
from headway.wire.model_field import with_model

_IMAGES: Final = (b'"image"', b'"image_url"', b'"input_image"')
_TASKS: Final = 10_000
"""Whose calls are counted; those that were seen longest ago are forgotten."""
_NO_PINS: Final = Pins()
"""A pinned call has no tier."""
_CODES: Final = {"tools": ("tools_not_permitted", 403), "context": ("context_too_long", 413)}


class _Function(Struct, frozen=True):
    name: str = ""


class _Tool(Struct):
    name: str = ""
    type: str = ""
    function: _Function = _Function()


_tools: Final = msgspec.json.Decoder(list[_Tool] | None)


class Chain:
    """The models that may answer one call, best first, and its body as the one that is asked now gets it."""

    __slots__ = ("_asked", "_body", "_left", "body", "ladder", "model", "models", "notes")

    def __init__(
        self, body: bytes, asked: str, models: tuple[str, ...], notes: tuple[str, ...], ladder: Ladder | None = None
    ) -> None:
        self._body = body
        self._asked = asked
        self.models = models
        self._left = models[1:]
        self.model = models[0]
        self.body = self._named()
        self.notes = notes
        """Why this one: a sentence for each step."""
        self.ladder = ladder
        """The better tiers, where an answer may turn out not to be good enough; ``None``: whatever it is will do."""

    @property
    def more(self) -> bool:
        """Whether another may be asked."""
        return bool(self._left)

    def next(self, why: str) -> None:
        """The one asked now cannot answer: it is the next one's turn."""
        failed, self.model, self._left = self.model, self._left[0], self._left[1:]
        self.body = self._named()
        self.notes += (f"{failed} could not answer ({why}), so {self.model} is asked.",)

    def better(self, models: tuple[str, ...], *notes: str) -> "Chain":
        """The same call for the models of a better tier."""
        return Chain(self._body, self._asked, models, self.notes + notes)

    def _named(self) -> bytes:
        return self._body if self.model == self._asked else with_model(self._body, self.model)


class Naming:
    """The catalogue at work."""

    def __init__(self, catalog: Catalog) -> None:
        self.pins = Pins()
        """What a person said against the rules; the gateway's own, where there is one."""
        self.escalations = Escalations()
        self._calls: OrderedDict[str, int] = OrderedDict()
        self.adopt(catalog)

    def adopt(self, catalog: Catalog) -> None:
        """Go by another catalogue from now on."""
        self._catalog = catalog
        self.known = catalog.aliases
        """Names that are not the models' own."""
        self._counts = any(rule.after_calls is not None for alias in catalog.aliases.values() for rule in alias.rules)

    @property
    def names(self) -> tuple[str, ...]:
        """What clients may ask for beside the models' own names."""
        return tuple(self.known)

    def choose(self, record: CallRecord, asks: Asked, request: Request, now: float) -> Chain | Failure | None:
        """The models that may answer; ``None``: the one that was asked for, by its own name."""
        if asks.model not in self.known and not self._pinned(record, asks.model, now):
            return None
        question = self._question(record, asks, request)
        decision = choose(question, self._catalog, self.pins, now)
        if decision.refusal is not None:
            code, status = _CODES[decision.refusal]
            record.receipt = decision.receipt
            return failure(code, status, f"{asks.model!r} cannot be asked this: {decision.receipt.reason}.")
        note = f"{decision.models[0]} is asked: {decision.receipt.reason}."
        ladder = None
        if decision.tier is not None and record.operation == TALK:
            ladder = self._ladder(self.known[asks.model], decision.tier, question)
        notes = (note,) if ladder is None else (note, *ladder.notes)
        return Chain(request.body, asks.model, decision.models, notes, ladder)

    def _ladder(self, alias: Alias, tier: str, question: ModelRequest) -> Ladder | None:
        """The tiers at which a call may be repeated; ``None``: there is none."""
        known = alias.escalates
        above, left_out = list[Rung](), list[str]()
        for better in known[known.index(tier) + 1 :] if tier in known else ():
            decision = choose(structs.replace(question, escalated_to=better), self._catalog, _NO_PINS, 0.0)
            if decision.refusal is None:
                above.append(Rung(better, decision.models))
            else:
                left_out.append(f"It would not be repeated at {better!r}: {decision.receipt.reason}.")
        if not above:
            return None
        alias = structs.replace(alias, escalates=(tier, *[rung.tier for rung in above]))
        return Ladder(alias, tier, tuple(above), tuple(left_out), self.escalations)

    def _pinned(self, record: CallRecord, model: str, now: float) -> bool:
        pins = self.pins
        return pins.any and pins.find(tenant=record.tenant, task=record.task, model=model, now=now) is not None

    def _question(self, record: CallRecord, asks: Asked, request: Request) -> ModelRequest:
        body = request.body
        return ModelRequest(
            asked=asks.model,
            tenant=record.tenant,
            task=record.task,
            lane=record.lane,
            input_tokens=estimate(body, max_output=0, price=None).tokens,
            output_tokens=asks.output_limit,
            tools=_names(bytes(asks.tools)),
            images=any(mark in body for mark in _IMAGES),
            calls=self._made(record.task) if self._counts and record.task else 0,
        )

    def _made(self, task: str) -> int:
        """Calls that the task has made before this one."""
        calls = self._calls
        made = calls.pop(task, 0)
        calls[task] = made + 1
        if len(calls) > _TASKS:
            calls.popitem(last=False)
        return made


def _names(tools: bytes) -> tuple[str, ...]:
    """Names of the tools that a request offers; of those that a provider runs itself, their types."""
    try:
        offered = _tools.decode(tools) or []
    except msgspec.DecodeError:
        return ()  # whoever is asked will refuse them
    return tuple([tool.function.name or tool.name or tool.type for tool in offered])
