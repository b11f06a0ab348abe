"""What calls cost: asked before they are made, and after. One's own prices come before the list's."""

import time
from collections.abc import Callable, Container, Mapping

from headway.core.access import Caller
from headway.core.money import MicroUsd, Price, cost
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.policy.limits.estimate import estimate
from headway.policy.limits.grant import Ask
from headway.trace.prices import price_of

_FREE = Price(input=0, output=0)


class Tariff:
    """Prices by the model's name.

    Args:
        own: prices of one's own, by model.
        local: models that only engines of one's own serve: their tokens cost nothing, unless ``own`` says otherwise.
        wall: epoch seconds, for prices that change.
    """

    def __init__(
        self, own: Mapping[str, Price], local: Container[str], *, wall: Callable[[], float] = time.time
    ) -> None:
        self.adopt(own)
        self._local = local
        self._wall = wall

    def adopt(self, own: Mapping[str, Price]) -> None:
        """Go by other prices of one's own from now on."""
        self._own = dict(own)

    def warm(self) -> None:
        """Read the price list, which takes most of a second once: for a thread, before the first call comes."""
        price_of("gpt-4o", "openai", input_tokens=1)

    def price(self, model: str, input_tokens: int) -> Price | None:
        """The price of a call's tokens; ``None``: unknown."""
        own = self._own.get(model)
        if own is not None:
            return own
        if model in self._local:
            return _FREE
        return price_of(model, None, input_tokens=max(input_tokens, 1), at=self._wall())

    def ask(
        self,
        caller: Caller,
        task: TaskId,
        model: str,
        prompt: bytes | memoryview,
        *,
        max_output: int | None,
        choices: int = 1,
        fresh: bool = False,
        added: int = 0,
    ) -> Ask:
        """What a call may use, for `Limiter.reserve`.

        Args:
            caller: whose call it is.
            task: which task it belongs to.
            model: by the name whose price counts.
            prompt: messages and tools, as they were sent.
            max_output: the request's bound on output tokens; ``None``: none.
            choices: how many answers it asks for.
            fresh: as `Ask.fresh`.
            added: tokens of input that come to the prompt.
        """
        price = self.price(model, len(prompt) // 4)
        expected = estimate(prompt, max_output=max_output, choices=choices, price=price, added=added)
        return Ask(caller, task, expected.tokens, expected.money, fresh)

    def used(self, model: str, usage: Usage) -> tuple[int | None, MicroUsd | None]:
        """What a call has used, for `Limiter.settle`: tokens and money, each ``None`` where unknown.

        Where the engine does not say what came from its cache, all input is charged in full.
        """
        tokens_in, tokens_out = usage.input_tokens, usage.output_tokens
        if tokens_in is None or tokens_out is None:
            return None, None
        price = self.price(model, tokens_in)
        if price is None:
            return tokens_in + tokens_out, None
        money = cost(usage, price)
        if money is None:
            money = cost(usage, Price(input=price.input, output=price.output))
        return tokens_in + tokens_out, money
