import os
import subprocess
import sys

import pytest

from headway.app.demo.counters import Counters, fetch_counters, judge, read_counters, restarted
from headway.app.service import ReadyReplica
from headway.core.fleet import ReplicaId
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine

PAGE = """# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed, excluding cached tokens
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 31
llamacpp:prompt_tokens_cached_total 4
llamacpp:tokens_predicted_total 1e+01
llamacpp:prompt_tokens_seconds 35.5
"""


def counters(computed: int, cached: int, written: int) -> Counters:
    return Counters(computed=computed, cached=cached, written=written)


def replica(url: str, pid: int | None = None) -> ReadyReplica:
    return ReadyReplica(id=ReplicaId("r"), url=url, pid=pid)


def test_counters_are_read_from_the_engines_page() -> None:
    assert read_counters(PAGE) == counters(31, 4, 10)
    assert read_counters(PAGE.replace("prompt_tokens_cached_total", "other")) is None


BEFORE = {"a": counters(100, 10, 5), "b": counters(0, 0, 0)}
AFTER = {"a": counters(130, 15, 9), "b": counters(20, 0, 6)}


def test_growth_over_all_replicas_is_compared_with_the_report() -> None:
    # a: 30 computed, 5 cached, 4 written; b: 20, 0, 6. Input includes what the cache gave: 50 + 5.
    same = judge(BEFORE, AFTER, (), Usage(input_tokens=55, output_tokens=10, cache_read=5))
    assert same.agree is True
    assert same.words == "50 prompt tokens computed, 5 from the cache, 10 written"


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (Usage(input_tokens=55, output_tokens=11, cache_read=5), "written: report 11, engines 10"),
        (
            Usage(input_tokens=55, output_tokens=10, cache_read=6),
            "prompt tokens computed: report 49, engines 50; from the cache: report 6, engines 5",
        ),
    ],
)
def test_what_differs_is_told(report: Usage, words: str) -> None:
    verdict = judge(BEFORE, AFTER, (), report)
    assert verdict.agree is False
    assert verdict.words == words


def test_what_cannot_be_compared_says_why() -> None:
    report = Usage(input_tokens=55, output_tokens=10, cache_read=5)
    for verdict, reason in (
        (judge(BEFORE, AFTER, ("b",), report), "began anew: b"),
        (judge(BEFORE, {"a": AFTER["a"], "b": None}, (), report), "b gave no counters"),
        (judge(BEFORE, AFTER, (), Usage(input_tokens=55, output_tokens=10)), "does not know the tokens"),
    ):
        assert verdict.agree is None
        assert reason in verdict.words


async def test_an_engine_that_does_not_count_or_answer_is_unknown() -> None:
    async with FakeEngine() as engine:
        assert await fetch_counters([replica(engine.url)]) == {"r": None}
    assert await fetch_counters([replica(engine.url)]) == {"r": None}


def test_a_replica_whose_process_is_gone_was_restarted() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert restarted([replica("u", os.getpid())]) == ()
    assert restarted([replica("u", None)]) == ()
    assert restarted([replica("u", gone.pid)]) == ("r",)
