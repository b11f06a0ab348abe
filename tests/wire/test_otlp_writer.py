import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from otlp_messages import spans

from headway.wire.otel import RawSpan
from headway.wire.otlp import from_json, seconds
from headway.wire.otlp_writer import nanoseconds, to_json


@settings(max_examples=100, deadline=None)
@given(st.lists(spans(), max_size=4))
def test_what_is_written_is_read_again(raws: list[RawSpan]) -> None:
    assert from_json(to_json(raws)).spans == raws


@given(st.floats(1e-6, 4e9))
def test_times_survive_nanoseconds(when: float) -> None:
    assert seconds(nanoseconds(when)) == pytest.approx(when, abs=1e-9)


@given(st.floats(1e9, 4e9))
def test_epoch_times_survive_nanoseconds_exactly(when: float) -> None:
    assert seconds(nanoseconds(when)) == when
