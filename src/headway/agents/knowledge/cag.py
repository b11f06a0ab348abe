"""The cached way (cache-augmented generation): all documents are in the prompt, before the question.

What comes before the question is the same to the byte as long as the documents are, so an engine that keeps prefixes
reads it once; every later question costs only itself.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from headway.agents.knowledge.assignment import ANSWER_TOKENS, Assignment, Outcome
from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.conversation import Conversation
from headway.agents.knowledge.quotes import RULES
from headway.agents.knowledge.retrieval.index import Passage
from headway.agents.knowledge.text import about_tokens
from headway.core.errors import BadInputError

MOST: Final = 200_000
"""Tokens, roughly, that all documents may have: more fits into few models."""


async def answer_from_all(task: Assignment, _found: Sequence[Passage]) -> Outcome:
    """One streamed call with all documents before the question.

    Raises:
        BadInputError: the documents are too long.
    """
    sections = sections_of(task.index.chunks)
    conversation = Conversation(
        task.model,
        [
            {"role": "system", "content": prefix(sections)},
            {"role": "user", "content": f"Answer in two sentences, then quote: {task.question}"},
        ],
    )
    task.on_step("answer from all documents")
    text = await conversation.stream("answer", max_tokens=ANSWER_TOKENS, on_text=task.on_text)
    return Outcome(text=text, calls=tuple(conversation.calls), shown=dict(enumerate(sections, 1)))


def sections_of(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """What stands at one place of a document as one passage, in the documents' order."""
    grouped = groupby(chunks, key=lambda chunk: (chunk.document, chunk.title, chunk.place))
    return tuple(
        Chunk(document=document, title=title, place=place, text="\n".join(chunk.text for chunk in group))
        for (document, title, place), group in grouped
    )


def prefix(sections: Sequence[Chunk]) -> str:
    """What every question about these documents begins with.

    Raises:
        BadInputError: it is longer than `MOST`.
    """
    numbered = (
        f"[{number}] {', '.join(filter(None, (part.title, part.place)))}\n{part.text}"
        for number, part in enumerate(sections, 1)
    )
    text = "\n\n".join([f"You answer questions from the passages below. {RULES}", *numbered])
    tokens = about_tokens(text)
    if tokens > MOST:
        raise BadInputError(
            f"The documents have about {tokens:,} tokens; the limit of the cached way is {MOST:,}.",
            fix="Name fewer documents, or let the agent search them: --mode direct.",
        )
    return text
