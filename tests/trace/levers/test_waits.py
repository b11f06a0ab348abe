from msgspec import structs
from savings import levers, seconds, usage
from tasks import call

from headway.core.span import ErrorType
from headway.core.usage import EngineTimings


def test_no_queue() -> None:
    # sent at 0, first token at 2, of which the engine prefilled .5
    engine = EngineTimings(prefill_tokens=5, prefill_seconds=0.5, decode_tokens=5, decode_seconds=1)
    assert seconds([call("a", 0, 3, marks=(0, 2, 3), engine=engine)])["no queue"] == 1.5


def test_failed_calls_cost_their_time() -> None:
    failed = structs.replace(call("a", 0, 2, usage=usage(100, 10)), error=ErrorType("upstream_closed"))
    found = levers([failed, call("b", 2.5, 4)])["no failed calls"]
    assert (found.seconds, found.tokens, found.cost) == (2, 110, 120)
