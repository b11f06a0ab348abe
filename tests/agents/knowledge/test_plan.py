import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agents.knowledge.plan import (
    ACTIONS,
    EXAMPLES,
    MAX_ABOUT,
    MAX_STEPS,
    SCHEMA,
    PlanStep,
    by_rules,
    checked,
    opening,
)
from headway.core.errors import BadInputError


def plan(*steps: tuple[str, str]) -> str:
    return json.dumps({"steps": [{"action": action, "about": about} for action, about in steps]})


GOOD = plan(("search", "the key"), ("analyse", "the key"), ("answer", "the key"))


def test_a_good_plan_is_taken_as_it_is() -> None:
    assert checked(GOOD, "stop") == (
        PlanStep("search", "the key"),
        PlanStep("analyse", "the key"),
        PlanStep("answer", "the key"),
    )


def test_words_around_the_json_are_passed_over() -> None:
    assert len(checked(f"Here is the plan:\n```json\n{GOOD}\n```", "stop")) == 3


@pytest.mark.parametrize(
    ("text", "finish", "message"),
    [
        (GOOD, "length", "cut off at 220 tokens"),
        ("", "stop", "not the JSON"),
        ("I would search first.", "stop", "not the JSON"),
        (GOOD[:-2], "stop", "not the JSON"),
        ('{"steps": 3}', "stop", "not the JSON"),
        ('{"plan": []}', "stop", "not the JSON"),
        (plan(("search", "x"), ("dance", "x"), ("answer", "x")), "stop", "dance"),
        (plan(("answer", "x")), "stop", "it has 1 steps; 2 to 5"),
        (plan(*[("search", "x")] * 5, ("answer", "x")), "stop", "it has 6 steps"),
        (plan(("summarise", "x"), ("answer", "x")), "stop", "must search first"),
        (plan(("search", "x"), ("summarise", "x")), "stop", "must answer once"),
        (plan(("search", "x"), ("answer", "x"), ("answer", "x")), "stop", "must answer once"),
        (plan(("search", " "), ("answer", "x")), "stop", "step 1 names its subject"),
        (plan(("search", "x"), ("answer", "y" * 81)), "stop", "step 2 .* in 81 characters"),
        (plan(("search", "Renewing a passport"), ("answer", "x")), "stop", "step 1 is copied from an example"),
    ],
)
def test_a_bad_plan_is_refused_with_its_fault(text: str, finish: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        checked(text, finish)


@given(st.text(max_size=1000))
def test_the_rules_make_a_plan_that_passes_for_any_question(question: str) -> None:
    steps = by_rules(question.strip() or "x")
    assert checked(plan(*((step.action, step.about) for step in steps)), "stop") == steps


def test_the_rules_search_for_each_part_of_the_question() -> None:
    steps = by_rules("Why was it late, and who was told?")
    assert [(step.action, step.about) for step in steps] == [
        ("search", "Why was it late"),
        ("search", "who was told"),
        ("summarise", "Why was it late, and who was told?"),
        ("answer", "Why was it late, and who was told?"),
    ]


def test_every_length_in_the_schema_is_bounded() -> None:
    def check(schema: dict[str, Any]) -> None:
        match schema.get("type"):
            case "string":
                assert schema["maxLength"] == MAX_ABOUT
            case "array":
                assert schema["maxItems"] == MAX_STEPS
                check(schema["items"])
            case "object":
                assert schema["additionalProperties"] is False
                for inner in schema["properties"].values():
                    check(inner)
            case _:
                assert schema == {"enum": list(ACTIONS)}

    check(SCHEMA)


def test_the_examples_are_good_plans_and_the_question_comes_last() -> None:
    messages = opening("Why?")
    assert messages[-1] == {"role": "user", "content": "Plan for: Why?"}
    for _, steps in EXAMPLES:
        renamed = plan(*((step.action, f"{step.about}!") for step in steps))
        assert len(checked(renamed, "stop")) == len(steps)
