import json
from math import fsum

import msgspec
import pytest
from accounts import accounted
from msgspec.structs import replace

from headway.app.report.document import Account, task_json
from headway.trace.anatomy import Anatomy
from headway.trace.levers import Lever


def test_the_fields_of_schema_1_are_what_they_were(anatomy: Anatomy, levers: tuple[Lever, ...]) -> None:
    document = json.loads(task_json(accounted(anatomy, levers)))
    assert document["schema"] == "headway.explain/1"
    assert list(document) == [
        "schema",
        "task",
        "session",
        "started_at",
        "e2e_s",
        "iterations",
        "calls",
        "failures",
        "retries",
        "task_ttft_s",
        "task_ttft_at_most_s",
        "last_call_ttft_s",
        "human_s",
        "waited_before_s",
        "phases_s",
        "lead_in_s",
        "terms",
        "path",
        "spans",
        "detached",
        "usage",
        "cached_share",
        "cost_usd_micro",
        "at_least",
        "levers",
        "unknowns",
        "title",
        "findings",
        "record",
        "left_out",
        "what_if",
        "note",
    ]
    assert document["spans"][3] == {
        "id": "execute_tool calculator@8.4",
        "parent": None,
        "depth": 1,
        "kind": "tool",
        "name": "execute_tool calculator",
        "model": None,
        "start_s": 8.4,
        "end_s": 9.1,
        "on_path_s": 0.0,
        "slack_s": 1.8,
        "slack_known": True,
        "error": "tool_error",
        "waited_s": None,
        "waited_before_s": 0.0,
        "pieces": [{"span": "execute_tool calculator@8.4", "phase": "tool", "start_s": 8.4, "end_s": 9.1}],
        "identity": None,
    }
    assert document["spans"][1]["identity"] == {"evidence": "tool_result", "confidence": 1.0, "opens_task": False}
    assert document["terms"][0]["retry_s"] == 0.0
    assert document["levers"][1] == {
        "key": "made",
        "name": "the whole prefix from the cache",
        "saves_s": 4.1,
        "share": 0.1073,
        "tokens": None,
        "cost_usd_micro": 412,
        "tokens_at_least": None,
        "cost_usd_micro_at_least": None,
        "assumes": "all but the new messages are cached",
        "tradeoff": "None.",
        "rule": "prefill is linear in the tokens that are not cached",
        "how": "keep the beginning of the prompt constant",
    }


def test_it_reads_back_and_its_terms_sum_to_e2e(anatomy: Anatomy, levers: tuple[Lever, ...]) -> None:
    account = msgspec.json.decode(task_json(accounted(anatomy, levers)), type=Account)
    terms = [
        (term.hop_s, term.retry_s, term.queue_s, term.prefill_s, term.decode_s, term.unsplit_s, term.tools_s)
        for term in account.terms
    ]
    assert account.lead_in_s is not None
    assert fsum([account.lead_in_s, *(seconds or 0.0 for term in terms for seconds in term)]) == pytest.approx(
        account.e2e_s
    )
    assert fsum(piece.end_s - piece.start_s for piece in account.path) == pytest.approx(account.e2e_s)


def test_the_engines_pace_is_marked_as_its_own(anatomy: Anatomy) -> None:
    first, *others = anatomy.iterations
    marked = replace(anatomy, iterations=(replace(first, tpot=0.05, tpot_by_engine=True), *others))
    terms = json.loads(task_json(accounted(marked, ())))["terms"]
    assert [(term["tpot_s"], term["tpot_by_engine"]) for term in terms[:2]] == [(0.05, True), (0.038, False)]


def test_unknown_is_null_and_never_0(anatomy: Anatomy) -> None:
    document = json.loads(task_json(accounted(replace(anatomy, task_ttft=None, cached_share=None), ())))
    assert (document["cost_usd_micro"], document["task_ttft_s"], document["cached_share"]) == (None, None, None)
    assert document["usage"]["cache_write"] is None
    assert document["spans"][5]["slack_s"] is None, "infinite: nothing waits for it"


def test_what_lies_somewhere_in_unsplit_model_time_is_unknown(anatomy: Anatomy) -> None:
    first, *rest = anatomy.iterations
    unsplit = replace(first, prefill=0.0, decode=0.0, model_unsplit=7.5)  # its 0.67 s of queue were Headway's own
    terms = json.loads(task_json(accounted(replace(anatomy, iterations=(unsplit, *rest)))))["terms"]
    names = ("queue_s", "prefill_s", "decode_s", "unsplit_s")
    assert [terms[0][name] for name in names] == [0.67, None, None, 7.5]
    assert [terms[1][name] for name in names] == [0.0, 2.25, 11.4, 0.0]
