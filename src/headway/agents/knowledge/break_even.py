"""Searching against caching: after how many questions it pays to have put all documents before the question."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

from msgspec import Struct

from headway.agents.knowledge.agent import WAYS, KnowledgeAnswer, ask
from headway.agents.knowledge.assignment import Searched
from headway.agents.knowledge.model import Heard, Message, Model
from headway.core.errors import BadInputError, UpstreamError
from headway.core.usage import Usage


class Ways(Struct, frozen=True, kw_only=True):
    """What a question takes, in seconds until its answer begins or in micro-USD."""

    searched: float
    """Each question whose passages are searched for."""
    first: float
    """The first question with all documents before it: they are read."""
    later: float
    """Each later one: they come from the engine's cache."""


def break_even(ways: Ways) -> int | None:
    """The number of questions from which on caching took no more in all than searching.

    It is the least n with first + (n - 1) * later <= n * searched. ``None``: there is none, because a later question
    takes no less than one that is searched.
    """
    if ways.first <= ways.searched:
        return 1
    gain = ways.searched - ways.later
    return ceil((ways.first - ways.later) / gain) if gain > 0 else None


class Asked(Struct, frozen=True, kw_only=True):
    """What one question took."""

    seconds: float
    """From the question to the first text of its answer, the search included."""
    ttft: float
    """From the request to the first text."""
    usage: Usage


class Comparison(Struct, frozen=True, kw_only=True):
    """Both ways, measured on the same questions."""

    searched: tuple[Asked, ...]
    cached: tuple[Asked, ...]

    @property
    def seconds(self) -> Ways:
        """Means of both ways."""
        later = [one.seconds for one in self.cached[1:]]
        return Ways(
            searched=sum(one.seconds for one in self.searched) / len(self.searched),
            first=self.cached[0].seconds,
            later=sum(later) / len(later),
        )

    @property
    def prefill_rate(self) -> float | None:
        """Tokens that the engine read in a second before the first such answer; ``None``: it does not say how many."""
        first = self.cached[0]
        tokens, kept = first.usage.input_tokens, first.usage.cache_read
        return None if tokens is None or kept is None else (tokens - kept) / first.ttft

    def costs(self, price: Callable[[Usage], int | None]) -> Ways | None:
        """The same in micro-USD; ``None``: the price of a call is not known.

        Args:
            price: of a call, by its tokens, in micro-USD.
        """
        searched = [price(one.usage) for one in self.searched]
        first, *later = [price(one.usage) for one in self.cached]
        if first is None or None in searched or None in later:
            return None
        means = [sum(one for one in costs if one is not None) / len(costs) for costs in (searched, later)]
        return Ways(searched=means[0], first=float(first), later=means[1])


async def compare(
    questions: Sequence[str],
    index: Searched,
    model: Model,
    mark: str,
    on_step: Callable[[str], None] = lambda _step: None,
) -> Comparison:
    """Ask each question both ways, and time them.

    Args:
        questions: at least two: the first reads the documents, the others find them in the cache.
        index: the documents.
        model: who is asked; one call at a time.
        mark: put before what must not be in the engine's cache yet, so that an earlier comparison changes nothing;
            another each time.
        on_step: told in plain words what is done next.

    Raises:
        BadInputError: there are fewer than two questions.
        UpstreamError: the model did not answer, or not as a stream.
    """
    if len(questions) < 2:  # noqa: PLR2004 - see above
        raise BadInputError("One question cannot show what a later one takes.", fix="Give two or more.")
    searched = [
        _asked(await ask(question, index, _Marked(model, f"{mark}-{number}", -1), on_step=on_step))
        for number, question in enumerate(questions)
    ]
    cached = [
        _asked(await ask(question, index, _Marked(model, mark, 0), on_step=on_step, way=WAYS["cag"]))
        for question in questions
    ]
    return Comparison(searched=tuple(searched), cached=tuple(cached))


def _asked(answer: KnowledgeAnswer) -> Asked:
    call = answer.calls[-1]
    if call.ttft is None:
        raise UpstreamError("The endpoint did not stream, so nobody knows when its answers begin.")
    return Asked(seconds=answer.seconds - call.seconds + call.ttft, ttft=call.ttft, usage=call.usage)


class _Marked:
    """A model whose messages are known to no cache from the marked one on."""

    def __init__(self, model: Model, mark: str, at: int) -> None:
        self._model = model
        self._mark = mark
        self._at = at

    async def whole(
        self, messages: Sequence[Message], *, max_tokens: int, response_format: Mapping[str, Any] | None = None
    ) -> Heard:
        return await self._model.whole(self._marked(messages), max_tokens=max_tokens, response_format=response_format)

    async def streamed(self, messages: Sequence[Message], *, max_tokens: int, on_text: Callable[[str], None]) -> Heard:
        return await self._model.streamed(self._marked(messages), max_tokens=max_tokens, on_text=on_text)

    def _marked(self, messages: Sequence[Message]) -> list[Message]:
        marked = list(messages)
        marked[self._at] = marked[self._at] | {"content": f"({self._mark})\n{marked[self._at]['content']}"}
        return marked
