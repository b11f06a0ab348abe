"""The planning way: the model writes a plan, and the agent takes its steps in one growing conversation."""

from collections.abc import Sequence
from typing import Final, assert_never

from headway.agents.knowledge.assignment import ANSWER_TOKENS, Assignment, Outcome, shown
from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.conversation import Conversation
from headway.agents.knowledge.model import RefusedError
from headway.agents.knowledge.plan import PLAN_TOKENS, RESPONSE_FORMAT, Plan, PlanStep, by_rules, checked, opening
from headway.agents.knowledge.quotes import RULES
from headway.agents.knowledge.retrieval.index import Passage
from headway.core.errors import BadInputError

PASSAGES_PER_SEARCH: Final = 2
"""Several searches share one context, so each adds less than the direct way's one."""
NOTE_TOKENS: Final = 70
"""Room for a summary or an analysis: two sentences."""


async def answer_by_plan(task: Assignment, _found: Sequence[Passage]) -> Outcome:
    """Have a plan written, check it, and take its steps; the last one is the streamed answer.

    The conversation only ever grows, so each call finds the prefix of the last one in the engine's cache, and anyone
    who watches the wire sees one task.
    """
    conversation = Conversation(task.model, opening(task.question))
    plan = await _plan(task, conversation)
    found: dict[int, Chunk] = {}
    text = ""
    for step in plan.steps:
        task.on_step(f"{step.action}: {step.about}")
        text = await _take(step, task, conversation, found)
    return Outcome(text=text, calls=tuple(conversation.calls), shown=found, plan=plan)


async def _plan(task: Assignment, conversation: Conversation) -> Plan:
    task.on_step("plan")
    try:
        text = await conversation.reply("plan", max_tokens=PLAN_TOKENS, response_format=RESPONSE_FORMAT)
        steps = checked(text, conversation.calls[-1].finish_reason)
    except RefusedError as error:
        plan = Plan(
            steps=by_rules(task.question), source="rules", why=f"the endpoint refused to write one ({error.what})"
        )
    except BadInputError as error:
        plan = Plan(steps=by_rules(task.question), source="rules", why=error.what)
    else:
        plan = Plan(steps=steps, source="model")
    outline = " → ".join(step.action for step in plan.steps)
    reason = f", because of the model's own {plan.why}" if plan.why else ""
    task.on_step(f"plan by {plan.source}{reason}: {outline}")
    return plan


async def _take(step: PlanStep, task: Assignment, conversation: Conversation, found: dict[int, Chunk]) -> str:
    match step.action:
        case "search":
            best = [passage.chunk for passage in await task.index.search(step.about, PASSAGES_PER_SEARCH)]
            fresh = dict(enumerate((chunk for chunk in best if chunk not in found.values()), len(found) + 1))
            result = shown(fresh) if fresh else "Nothing that was not found before."
            conversation.used("search", step.about, result)
            found |= fresh
            return ""
        case "summarise":
            conversation.used(
                "summarise", step.about, f"Write two sentences: what do the passages say about {step.about}?"
            )
            return await conversation.reply("summarise", max_tokens=NOTE_TOKENS)
        case "analyse":
            conversation.used("analyse", step.about, f"Write two sentences: what follows from this for {step.about}?")
            return await conversation.reply("analyse", max_tokens=NOTE_TOKENS)
        case "answer":
            conversation.used("answer", step.about, f"{RULES}\nAnswer in two sentences, then quote: {task.question}")
            return await conversation.stream("answer", max_tokens=ANSWER_TOKENS, on_text=task.on_text)
        case _:
            assert_never(step.action)
