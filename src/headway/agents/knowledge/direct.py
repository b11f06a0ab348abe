"""The direct way: search once, answer in one call."""

from collections.abc import Sequence
from typing import Final

from headway.agents.knowledge.assignment import ANSWER_TOKENS, Assignment, Outcome, shown
from headway.agents.knowledge.conversation import Conversation
from headway.agents.knowledge.quotes import RULES
from headway.agents.knowledge.retrieval.index import Passage

SYSTEM: Final = f"You answer questions from the passages that you are given. {RULES}"


async def answer_directly(task: Assignment, found: Sequence[Passage]) -> Outcome:
    """One streamed call on what was found for the question itself."""
    numbered = {number: passage.chunk for number, passage in enumerate(found, 1)}
    conversation = Conversation(
        task.model,
        [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"{shown(numbered)}\n\nAnswer in two sentences, then quote: {task.question}"},
        ],
    )
    task.on_step("answer")
    text = await conversation.stream("answer", max_tokens=ANSWER_TOKENS, on_text=task.on_text)
    return Outcome(text=text, calls=tuple(conversation.calls), shown=numbered)
