from collections.abc import Sequence

from msgspec import structs
from tasks import TASK, call, tool

from headway.core.span import ModelCall, Span
from headway.core.task import Evidence, Identity, SessionId
from headway.core.usage import EngineTimings, Usage
from headway.trace.reuse import rereads
from headway.trace.study import study


def counted(name: str, start: float, read: int | None, wrote: int | None, cached: int | None, **more: int) -> Span:
    usage = Usage(input_tokens=read, output_tokens=wrote, cache_read=cached, reasoning=more.get("reasoning"))
    return call(name, start, start + 1, usage=usage)


def found(spans: Sequence[Span]) -> tuple[dict[str, tuple[int, int, str]], int]:
    """Computed, fresh, and which call had read or written the rest."""
    case = study(spans)
    rereadings, untold = rereads(case)
    names = [span.id for span in case.tree.spans]
    return {names[i]: (one.computed, one.fresh, names[one.before]) for i, one in rereadings.items()}, untold


def by_evidence(span: Span, evidence: Evidence) -> Span:
    assert isinstance(span.work, ModelCall)
    identity = Identity(task=TASK, session=SessionId("s"), evidence=evidence, confidence=1.0)
    return structs.replace(span, work=structs.replace(span.work, identity=identity))


def test_what_the_call_before_had_read_and_written_need_not_be_computed_again() -> None:
    # 1000 + 50 are known; of b's 1200, 300 came from the cache, so 900 were computed: 150 are new
    spans = [counted("a", 0, 1000, 50, 0), tool("t", 1, 2), counted("b", 2, 1200, 10, 300)]
    assert found(spans) == ({"b": (900, 150, "a")}, 0)


def test_a_call_whose_cache_hit_in_full_reads_nothing_again() -> None:
    assert found([counted("a", 0, 1000, 50, 0), counted("b", 2, 1200, 10, 1050)]) == ({}, 0)


def test_reasoning_is_not_sent_again() -> None:
    # 50 written, 40 of them reasoning: 1010 are known, 190 new
    spans = [counted("a", 0, 1000, 50, 0, reasoning=40), counted("b", 2, 1200, 10, 0)]
    assert found(spans) == ({"b": (1200, 190, "a")}, 0)


def test_an_attempt_that_failed_uncounted_is_nobodys_beginning() -> None:
    """a was answered, x failed, and b, its retry, goes on from a; those two alone leave nothing untold."""
    failed = structs.replace(counted("x", 2, None, None, None), error="http_503")
    retried = [counted("a", 0, 1000, 50, 0), failed, counted("b", 4, 1200, 10, 0)]
    assert found(retried) == ({"b": (1200, 150, "a")}, 0)
    assert found([failed, counted("b", 4, 1200, 10, 0)]) == ({}, 0)


def test_one_token_is_always_computed() -> None:
    assert found([counted("a", 0, 1000, 50, 0), counted("b", 2, 1050, 10, 0)]) == (
        {"b": (1050, 1, "a")},
        0,
    )


def test_the_engines_own_count_of_computed_tokens_is_believed_first() -> None:
    engine = EngineTimings(prefill_tokens=400, prefill_seconds=0.1, decode_tokens=1, decode_seconds=0.1)
    later = call("b", 2, 3, usage=Usage(input_tokens=1200, output_tokens=1), engine=engine)
    assert found([counted("a", 0, 1000, 50, 0), later]) == ({"b": (400, 150, "a")}, 0)


def test_no_more_is_computed_than_there_is() -> None:
    engine = EngineTimings(prefill_tokens=5000, prefill_seconds=0.1, decode_tokens=1, decode_seconds=0.1)
    later = call("b", 2, 3, usage=Usage(input_tokens=1200, output_tokens=1), engine=engine)
    assert found([counted("a", 0, 1000, 50, 0), later]) == ({"b": (1200, 150, "a")}, 0)


def test_without_counts_it_cannot_be_told() -> None:
    assert found([counted("a", 0, 1000, 50, 0), counted("b", 2, 1200, 10, None)]) == ({}, 1)
    assert found([counted("a", 0, None, 50, 0), counted("b", 2, 1200, 10, 0)]) == ({}, 1)


def test_a_shorter_prompt_does_not_go_on_from_the_one_before() -> None:
    assert found([counted("a", 0, 1000, 50, 0), counted("b", 2, 900, 10, 0)]) == ({}, 0)


def test_a_prompt_that_was_opened_otherwise_does_not_either() -> None:
    first, second = counted("a", 0, 1000, 50, 0), counted("b", 2, 1200, 10, 0)
    assert found([first, by_evidence(second, "hand_over")]) == ({}, 0)
    assert set(found([first, by_evidence(second, "tool_result")])[0]) == {"b"}


def test_a_call_at_work_at_the_same_time_cannot_be_gone_on_from() -> None:
    assert found([counted("a", 0, 1000, 50, 0), counted("b", 0.5, 1200, 10, 0)]) == ({}, 0)


def test_a_sub_agent_goes_on_from_its_own_calls_only() -> None:
    inner = [
        structs.replace(counted(name, at, read, 10, 0), parent="t")
        for name, at, read in (("s", 1, 9000), ("u", 3, 9500))
    ]
    assert found([counted("a", 0, 1000, 50, 0), tool("t", 1, 5), *inner, counted("b", 5, 1200, 10, 0)]) == (
        {"u": (9500, 490, "s"), "b": (1200, 150, "a")},
        0,
    )
