"""A call that its caller made again is one call of the loop: its failed tries and the pauses are none of their own."""

import pytest
from findings import broken, found, told
from msgspec import structs
from savings import levers, seconds
from tasks import call, step

from headway.core.span import ModelCall, Span
from headway.trace.anatomy import dissect
from headway.trace.phases import HOP, RETRY
from headway.trace.prices import price_for
from headway.trace.resent import last_tries
from headway.trace.study import study


#  a 0-.1 failed | .5 pause | b .6-.7 failed | .5 pause | c 1.2 - 1.4 - 2.2
def retried() -> list[Span]:
    failed = [broken(call("a", 0, 0.1), "upstream_closed"), broken(call("b", 0.6, 0.7), "upstream_closed")]
    return [*failed, call("c", 1.2, 2.2, marks=(1.2, 1.4, 2.2))]


def test_failed_tries_and_pauses_are_failed_attempts_and_no_hops() -> None:
    anatomy = dissect(retried())
    assert anatomy.phases[RETRY] == pytest.approx(1.2)
    assert HOP not in anatomy.phases
    assert sum(anatomy.phases.values()) == pytest.approx(2.2)


def test_a_call_that_was_tried_three_times_is_one_iteration() -> None:
    anatomy = dissect(retried())
    assert (anatomy.n, anatomy.calls, anatomy.failures) == (1, 3, 2)
    (only,) = anatomy.iterations
    assert (only.span, only.ttft) == ("c", pytest.approx(0.2))
    assert (only.retry, only.prefill, only.decode) == (pytest.approx(1.2), pytest.approx(0.2), pytest.approx(0.8))


def test_what_its_caller_sent_again_is_counted() -> None:
    assert dissect(retried()).retries == 2
    assert dissect([*retried()[:2], call("c", 1.2, 2.2, attempts=3)]).retries == 4
    assert dissect([*retried()[:2], call("c", 1.2, 2.2, attempts=None)]).retries is None


def test_without_failures_there_are_no_pauses_and_no_iteration_goes() -> None:
    saved = seconds(retried())
    assert saved["no failed calls"] == pytest.approx(1.2)
    assert "no hop" not in saved
    assert not {lever.key for lever in levers(retried()).values()} & {"one-call", "one-iteration-fewer"}


def test_the_first_call_is_answered_at_once_though_the_tries_of_the_answer_stay() -> None:
    # a planning call of 1 s, then the tries: what one call saves is the planning, not the failures
    spans = [call("p", 0, 1), broken(call("a", 1, 2)), call("b", 2.5, 4)]
    assert seconds(spans)["answer in one call"] == pytest.approx(1)


def test_a_call_that_failed_to_the_end_saves_nothing_for_the_next_one_would_fail_too() -> None:
    spans = [broken(call("a", 0, 1)), broken(call("b", 1.5, 2.5))]
    assert "no failed calls" not in levers(spans)
    assert dissect(spans).phases[RETRY] == pytest.approx(1.5)


def test_neither_hops_nor_turns_are_found_where_a_call_was_made_again() -> None:
    assert found(retried()).keys() >= {"retries"}
    assert found(retried())["retries"].seconds == pytest.approx(1.2)
    assert not found(retried()).keys() & {"hop-gaps", "one-turn-dominates"}


def test_a_pause_inside_a_step_is_not_that_steps() -> None:
    inside = [step("root", 0, 3), broken(call("a", 0.5, 1, "root")), call("b", 2, 3, "root")]
    anatomy = dissect(inside)
    assert (anatomy.phases[HOP], anatomy.phases[RETRY]) == (pytest.approx(0.5), pytest.approx(1.5))


def test_another_question_is_an_iteration_of_its_own() -> None:
    spans = [broken(told(call("a", 0, 1), ("user", "this"))), told(call("b", 2, 3), ("user", "that"))]
    anatomy = dissect(spans, prices=price_for)
    assert (anatomy.n, anatomy.retries, study(spans).again) == (2, 0, {})


def test_the_last_try_among_those_on_the_path() -> None:
    assert last_tries({1: 2, 2: 3}, [1, 2, 3, 4]) == {1: 3, 2: 3, 3: 3, 4: 4}
    assert last_tries({1: 2, 2: 3}, [1, 3]) == {1: 1, 3: 3}


def test_failed_attempts_are_not_said_to_be_shown_as_model_time() -> None:
    assert not any("unsplit" in note for note in dissect(retried()).unknowns)


def counts(made: Span, before: int) -> Span:
    """A call whose caller counts how often it had sent it before."""
    assert isinstance(made.work, ModelCall)
    return structs.replace(made, work=structs.replace(made.work, sent_before=before))


def again(*spans: Span) -> dict[str, str]:
    seen = study(spans)
    return {seen.tree.spans[i].id: seen.tree.spans[after].id for i, after in seen.again.items()}


def test_a_callers_own_count_tells_which_calls_are_one_though_another_lies_between_them() -> None:
    spans = [
        counts(broken(call("a", 0, 1)), 0),
        counts(call("x", 1.1, 2), 0),  # another of the agent's, at the same time
        counts(broken(call("b", 1.5, 2.5)), 1),
        counts(call("c", 3, 4), 2),
    ]
    assert again(*spans) == {"a": "b", "b": "c"}
    assert dissect(spans).retries == 2


def test_a_call_that_its_caller_counts_as_a_new_one_is_no_retry() -> None:
    spans = [counts(broken(call("a", 0, 1)), 0), counts(call("b", 1.5, 2), 0)]
    assert again(*spans) == {}
    assert dissect(spans).n == 2


def test_an_agent_may_ask_the_same_anew_though_its_client_did_not_send_it_again() -> None:
    first, second = counts(broken(call("a", 0, 1)), 0), counts(call("b", 1.5, 2), 0)
    assert again(told(first, ("user", "this")), told(second, ("user", "this"))) == {"a": "b"}


def test_two_tries_that_failed_at_once_have_a_retry_each() -> None:
    spans = [
        counts(broken(call("a", 0, 1)), 0),
        counts(broken(call("b", 0, 1.2)), 0),
        counts(call("c", 1.1, 2), 1),
        counts(call("d", 1.3, 2), 1),
    ]
    assert again(*spans) == {"a": "c", "b": "d"}
