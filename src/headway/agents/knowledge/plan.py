"""Plans: what the model may propose, how a proposal is checked, and the plan that rules make when it fails."""

import re
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError

Action = Literal["search", "summarise", "analyse", "answer"]
ACTIONS: Final[tuple[str, ...]] = get_args(Action)

MAX_STEPS: Final = 5
MAX_ABOUT: Final = 80
"""Characters that a step may say what it is about with."""

PLAN_TOKENS: Final = 220
"""Room for five steps; a plan that needs more has lost itself."""


class PlanStep(Struct, frozen=True):
    """One step and what it is about."""

    action: Action
    about: str


class Plan(Struct, frozen=True, kw_only=True):
    """The steps that are taken, and who chose them."""

    steps: tuple[PlanStep, ...]
    source: Literal["model", "rules"]
    why: str = ""
    """Why the model's own plan was not used; empty where it was."""


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "minItems": 2,
            "maxItems": MAX_STEPS,
            "items": {
                "type": "object",
                "properties": {
                    "action": {"enum": list(ACTIONS)},
                    "about": {"type": "string", "minLength": 3, "maxLength": MAX_ABOUT},
                },
                "required": ["action", "about"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["steps"],
    "additionalProperties": False,
}
"""What is asked of the model. Every length is bounded: an open string lets a small model run on for ever."""

RESPONSE_FORMAT: Final[dict[str, Any]] = {"type": "json_schema", "json_schema": {"name": "plan", "schema": SCHEMA}}

EXAMPLES: Final[tuple[tuple[str, tuple[PlanStep, ...]], ...]] = (
    (
        "Why was the ferry late, and who was told?",
        (
            PlanStep("search", "why the ferry was late"),
            PlanStep("search", "who was told about the late ferry"),
            PlanStep("summarise", "why the ferry was late"),
            PlanStep("answer", "why the ferry was late and who was told"),
        ),
    ),
    (
        "How do I renew a passport?",
        (
            PlanStep("search", "renewing a passport"),
            PlanStep("summarise", "how to renew a passport"),
            PlanStep("answer", "how to renew a passport"),
        ),
    ),
)
"""Without examples small models rarely choose well; with them they sometimes copy, which `checked` notices."""


def opening(question: str) -> list[dict[str, Any]]:
    """The messages that ask for a plan."""
    messages = [
        {
            "role": "system",
            "content": "You answer questions from documents. Plan the steps as JSON first. "
            f"Actions: {', '.join(ACTIONS)}.",
        }
    ]
    for asked, steps in EXAMPLES:
        plan = msgspec.json.encode({"steps": steps}).decode()
        messages += [{"role": "user", "content": f"Plan for: {asked}"}, {"role": "assistant", "content": plan}]
    return [*messages, {"role": "user", "content": f"Plan for: {question}"}]


class _Proposal(Struct, frozen=True):
    steps: tuple[PlanStep, ...]


def checked(text: str, finish_reason: str | None) -> tuple[PlanStep, ...]:
    """The steps of a plan that the model wrote.

    Raises:
        BadInputError: it is no plan; the message says what is wrong with it.
    """
    if finish_reason == "length":
        raise BadInputError(f"it was cut off at {PLAN_TOKENS} tokens")
    try:
        steps = msgspec.json.decode(text[text.find("{") : text.rfind("}") + 1], type=_Proposal).steps
    except msgspec.DecodeError as error:  # wrong types, missing fields and unknown actions too
        raise BadInputError(f"it is not the JSON that was asked for ({error})") from error
    actions = [step.action for step in steps]
    if not 2 <= len(steps) <= MAX_STEPS:  # noqa: PLR2004 - a search and an answer
        raise BadInputError(f"it has {len(steps)} steps; 2 to {MAX_STEPS} are allowed")
    if actions[0] != "search":
        raise BadInputError(f"it begins with {actions[0]!r}; it must search first")
    if actions[-1] != "answer" or actions.count("answer") > 1:
        raise BadInputError("it must answer once, as its last step")
    for number, step in enumerate(steps, 1):
        _check_about(number, step.about)
    return steps


def _check_about(number: int, about: str) -> None:
    if not about.strip() or len(about) > MAX_ABOUT:
        raise BadInputError(f"step {number} names its subject in {len(about)} characters; 1 to {MAX_ABOUT} are allowed")
    if about.lower() in {step.about for _, example in EXAMPLES for step in example}:
        raise BadInputError(f"step {number} is copied from an example ({about!r})")


def by_rules(question: str) -> tuple[PlanStep, ...]:
    """A plan that needs no model: search for each part of the question, summarise what was found, answer."""
    parts = [part.strip() for part in re.split(r"[,;]? and |[;?]", question) if len(part.split()) > 1][:2]
    about = question[:MAX_ABOUT]
    searches = [PlanStep("search", part[:MAX_ABOUT]) for part in parts or [about]]
    return (*searches, PlanStep("summarise", about), PlanStep("answer", about))
