import pytest

from headway.bench.calibrate import calibrate, told
from headway.bench.connection import Received
from headway.bench.known import CHUNKS
from headway.core.errors import WorkerError


def chunk(content: str) -> bytes:
    return b'data: {"choices": [{"index": 0, "delta": {"content": "%b"}}]}\n\n' % content.encode()


async def test_every_chunk_of_every_stream_is_read_after_it_was_sent() -> None:
    found = await calibrate(streams=3)
    assert found.chunks == 3 * (CHUNKS - 1), "the last one brings the end and no time"
    assert 0 < found.p50 <= found.p99 <= found.worst


def test_the_error_is_from_sent_to_read() -> None:
    reads = [(10.0 + n / 10, chunk(repr(10.0 + n / 10 - n / 1000))) for n in range(1, 101)]  # read n ms late
    found = told([Received(asked=0.0, status=200, reads=[*reads, (20.1, b"data: [DONE]\n\n")])])
    assert (found.p50, found.p99, found.worst) == pytest.approx((0.050, 0.099, 0.100))


def test_a_broken_stream_measures_nothing() -> None:
    with pytest.raises(WorkerError, match="broke: closed"):
        told([Received(asked=0.0, error="closed")])
