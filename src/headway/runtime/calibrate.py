"""A short calibration: some real calls at several widths, so that an estimate knows how fast a model is."""

from collections.abc import Sequence
from typing import Final

from headway.core.errors import BadInputError
from headway.runtime.estimate import Known
from headway.runtime.history import known_of
from headway.runtime.models import Message
from headway.runtime.run import Run

WIDTHS: Final = (1, 2, 4, 8, 16)
_ROUNDS: Final = 2
"""Calls at each width for each of its places: in the first all begin together, as they seldom do in a scatter."""
_STREAMED: Final = 4


async def calibrate(
    run: Run,
    prompts: Sequence[str | Sequence[Message]],
    *,
    model: str,
    max_tokens: int = 64,
    widths: Sequence[int] = WIDTHS,
) -> Known:
    """Ask a model for real at one width after another: twice as many calls as places, 62 in all by default.

    Up to 4 at once are streamed, which tells first tokens; more are not, because reading many streams takes a client so
    much of its processor that it would measure itself.

    They are paid from the run's purse, and recorded as all calls are, so that `Run.estimate` knows of them.

    Args:
        run: of the task.
        prompts: some of those that are planned, of different lengths; each width gets some from all over. With fewer
            prompts than calls they come again, which an engine that keeps prompts answers faster.
        model: its name.
        max_tokens: most tokens of an answer.
        widths: calls at once; four or more show a knee, and none is looked for beyond the widest.

    Raises:
        BadInputError: there are no prompts, or a width is below 1.
        ItemsFailedError: a call failed.
    """
    if not prompts:
        raise BadInputError("There are no prompts to calibrate with.", fix="Give some of those that are planned.")

    async def ask(item: Run, asked: tuple[str | Sequence[Message], bool]) -> None:
        prompt, timed = asked
        await item.chat(messages(prompt), model=model, max_tokens=max_tokens, say=unheard if timed else False)

    asked = 0
    for width in widths:
        count = _ROUNDS * max(1, width)
        chosen = [prompts[(asked + number * len(prompts) // count) % len(prompts)] for number in range(count)]
        await run.map(ask, [(prompt, width <= _STREAMED) for prompt in chosen], limit=width)
        asked += count
    return await known_of(run.shared.spans, model, run.models.provider)


def unheard(_text: str) -> None:
    """Whom an answer is streamed to that nobody watches, so that its first token is timed."""


def messages(prompt: str | Sequence[Message]) -> Sequence[Message]:
    """A text as what a user says; messages as they are."""
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
