"""The direct way: search once, answer in one call."""

from typing import Final

from headway.agents.knowledge.assignment import ANSWER_TOKENS, Assignment, Outcome, shown
from headway.agents.knowledge.conversation import Conversation

PASSAGES: Final = 3
SYSTEM: Final = "You answer questions from the passages that you are given."


async def answer_directly(task: Assignment) -> Outcome:
    """Retrieve, then one streamed call."""
    task.on_step("search: the question itself")
    found = await task.index.search(task.question, PASSAGES)
    conversation = Conversation(
        task.client,
        task.model,
        [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"{shown(found)}\n\nAnswer in two sentences: {task.question}"},
        ],
        task.on_broken,
    )
    task.on_step("answer")
    await conversation.stream("answer", max_tokens=ANSWER_TOKENS, on_text=task.on_text)
    return Outcome(conversation=conversation, found=found)
