"""The agent as a task of `headway.runtime`: its calls within a budget, its calls and searches in one record."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from headway.agents.knowledge.agent import WAYS, KnowledgeAnswer, ask
from headway.agents.knowledge.assignment import Mode
from headway.agents.knowledge.model import Heard, Message, RefusedError
from headway.agents.knowledge.retrieval.index import Index, Passage
from headway.agents.knowledge.tools import by_tools
from headway.core.errors import BadInputError, UpstreamError
from headway.core.span import Retrieval
from headway.runtime import Budget, Reply, Run, Task, task

REFUSALS: Final = frozenset({400, 422})


def answering(
    index: Index,
    model: str,
    *,
    budget: Budget,
    on_text: Callable[[str], None] = lambda _text: None,
    on_step: Callable[[str], None] = lambda _step: None,
    mode: Mode = "direct",
    threshold: float | None = None,
) -> Task[[str], KnowledgeAnswer]:
    """A task that answers a question; start it in a `Runtime` that has models.

    Args:
        index: the documents.
        model: the model's name at the runtime's endpoint.
        budget: what an answer may take.
        on_text: as for `ask`, and so are the others.
        on_step: what is done next.
        mode: how the agent goes about it.
        threshold: the support below which no model is asked.
    """

    @task(budget=budget)
    async def knowledge(run: Run, question: str) -> KnowledgeAnswer:
        return await ask(
            question,
            RunIndex(run, index),
            RunModel(run, model),
            on_text=on_text,
            on_step=on_step,
            way=by_tools(run, model) if mode == "tools" else WAYS[mode],
            threshold=threshold,
        )

    return knowledge


class RunModel:
    """A model that a run asks.

    Args:
        run: pays, and records.
        name: the model's name at the task's endpoint.
    """

    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self._name = name

    async def whole(
        self, messages: Sequence[Message], *, max_tokens: int, response_format: Mapping[str, Any] | None = None
    ) -> Heard:
        """The next message; see `Model.whole`.

        Raises:
            OverBudgetError: the task's budget does not hold it.
        """
        extra = {"response_format": response_format} if response_format else {}
        return _heard(await self._ask(messages, max_tokens, say=False, **extra))

    async def streamed(self, messages: Sequence[Message], *, max_tokens: int, on_text: Callable[[str], None]) -> Heard:
        """The next message as it comes; see `Model.streamed`.

        Raises:
            OverBudgetError: the task's budget does not hold it.
        """
        return _heard(await self._ask(messages, max_tokens, say=on_text))

    async def _ask(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        *,
        say: bool | Callable[[str], None],
        **extra: Any,  # noqa: ANN401 - the API's own
    ) -> Reply:
        chat = self._run.chat
        try:
            return await chat(
                list(messages), model=self._name, max_tokens=max_tokens, say=say, temperature=0.0, **extra
            )
        except BadInputError as error:
            refused = getattr(error.__cause__, "status_code", None) in REFUSALS
            raise (RefusedError if refused else UpstreamError)(error.what, fix=error.fix) from error


def _heard(reply: Reply) -> Heard:
    return Heard(text=reply.text, usage=reply.usage, finish_reason=reply.finish_reason, ttft=reply.ttft)


class RunIndex:
    """An index whose searches are in a run's record."""

    def __init__(self, run: Run, index: Index) -> None:
        self._run = run
        self._index = index
        self.chunks = index.chunks
        self.embedder = index.embedder

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """As `Index.search`."""
        with self._run.timed("retrieval documents", Retrieval(source="documents")) as span:
            found = await self._index.search(query, k)
            span.work = Retrieval(source="documents", results=len(found))
        return found
