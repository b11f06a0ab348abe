import msgspec

from headway.core.errors import BadInputError, HeadwayError, MissingExtraError
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import HumanWait, ModelCall, Retrieval, Span, Step, ToolUse, Work
from headway.core.task import SpanId, TaskId
from headway.core.usage import Usage


def test_a_replicas_key_never_shows_in_its_repr() -> None:
    replica = Replica(id=ReplicaId("a"), url="http://127.0.0.1:1/v1", api_key="sk-secret")
    assert "secret" not in repr(replica)
    assert "secret" not in f"{replica}"


def test_an_error_says_what_failed_and_then_the_way_out() -> None:
    assert str(BadInputError("bad line 3.", fix="Remove it.")) == "bad line 3. Remove it."
    assert str(HeadwayError("alone")) == "alone"
    assert "pip install 'headway[embedded]'" in str(MissingExtraError("The local engine", "embedded"))


def test_every_kind_of_work_survives_the_store_format() -> None:
    works: tuple[Work, ...] = (
        ModelCall(model="m", usage=Usage(input_tokens=0)),
        ToolUse(name="t", inferred=True),
        Retrieval(results=3),
        Step(agent="a"),
        HumanWait(),
    )
    for work in works:
        span = Span(task=TaskId("t"), id=SpanId("s"), parent=None, name="n", start=1.0, end=None, work=work)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(span), type=Span) == span


def test_unknown_and_zero_tokens_stay_apart_in_the_store_format() -> None:
    packed = msgspec.msgpack.encode(Usage(input_tokens=0))
    assert msgspec.msgpack.decode(packed, type=Usage) == Usage(input_tokens=0, output_tokens=None)
