"""The way by tools: the model searches on its own, as often as it needs, until it can answer."""

import re
from collections.abc import Sequence
from typing import Final

from headway.agents.knowledge.assignment import ANSWER_TOKENS, Assignment, Outcome, Searched, Way, shown
from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.conversation import CallRecord
from headway.agents.knowledge.direct import SYSTEM
from headway.agents.knowledge.retrieval.index import Passage
from headway.core.errors import BadInputError
from headway.runtime import Agent, Answered, Policy, Run, Tool, tool

PASSAGES_PER_SEARCH: Final = 3
ITERATIONS: Final = 8
"""Model calls: who has not found it in seven searches will not."""
HOW: Final = (
    "If the passages do not suffice, search again in other words with the tool `search`, or look at what stands around "
    "a passage with the tool `around`, before you say that they do not hold the answer."
)
_NUMBER: Final = re.compile(r"^\[(\d{1,9})\] ", re.MULTILINE)


def by_tools(run: Run, model: str) -> Way:
    """The way by tools, as a part of a run.

    Args:
        run: whose agent it is; it pays, and records.
        model: the model's name at the task's endpoint. One that calls no tools answers from the first search.
    """

    async def answer(task: Assignment, found: Sequence[Passage]) -> Outcome:
        first = {passage.number: passage.chunk for passage in found}
        policy = Policy(iterations=ITERATIONS, max_tokens=ANSWER_TOKENS, options={"temperature": 0.0})
        agent = Agent(model, tools_of(task), policy, system=f"{SYSTEM} {HOW}", name="searcher")
        task.on_step("answer, with tools")
        question = f"{shown(first)}\n\nAnswer in two sentences, then quote: {task.question}"
        answered = await agent.ask(run, question)
        task.on_text(answered.value)
        return Outcome(text=answered.value, calls=_calls(answered), shown=first | _shown(answered, task.index))

    return Way(mode="tools", searches=True, answer=answer)


def tools_of(task: Assignment) -> list[Tool]:
    """What a model may do with the documents. Passages keep their numbers, whoever shows them and when."""
    index = task.index

    @tool(purity="reads")
    async def search(run: Run, query: str) -> str:  # noqa: D417 - the model reads this, and gives no run
        """Find the passages that fit a query best.

        Args:
            query: what to look for, in the language of the documents.
        """
        del run
        task.on_step(f"search: {query}")
        found = await index.search(query, PASSAGES_PER_SEARCH)
        return shown({passage.number: passage.chunk for passage in found}) or "Nothing."

    @tool(purity="reads")
    async def around(run: Run, passage: int) -> str:  # noqa: D417 - as above
        """Show a passage with the one before and the one after it in the same document.

        Args:
            passage: its number.
        """
        del run
        task.on_step(f"look around: passage {passage}")
        chunks = index.chunks
        if not 1 <= passage <= len(chunks):
            raise BadInputError(f"There is no passage {passage}.", fix=f"There are 1 to {len(chunks)}.")
        near = range(max(1, passage - 1), min(len(chunks), passage + 1) + 1)
        same = [number for number in near if chunks[number - 1].document == chunks[passage - 1].document]
        return shown({number: chunks[number - 1] for number in reversed(same)})

    return [search, around]


def _shown(answered: Answered[str], index: Searched) -> dict[int, Chunk]:
    """What tools showed, by what is on record of them; so it is the same when a task is taken up again."""
    results = [str(message["content"]) for message in answered.messages if message["role"] == "tool"]
    results += [dropped.text for dropped in answered.dropped]
    numbers = {int(number) for result in results for number in _NUMBER.findall(result)}
    return {number: index.chunks[number - 1] for number in sorted(numbers) if 1 <= number <= len(index.chunks)}


def _calls(answered: Answered[str]) -> tuple[CallRecord, ...]:
    return tuple(
        CallRecord(step="answer", seconds=turn.seconds, ttft=None, usage=turn.usage, finish_reason=turn.finish_reason)
        for turn in answered.turns
    )
