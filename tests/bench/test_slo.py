import pytest

from headway.bench.slo import Slo, slo
from headway.core.errors import BadInputError


def test_units_are_read() -> None:
    assert slo("task 20s") == Slo("task", 20.0)
    assert slo("ttft <= 500ms") == Slo("ttft", 0.5)
    assert slo("token_time 50ms") == Slo("token_time", 0.05)


@pytest.mark.parametrize("text", ["", "task", "task 20", "task 20m", "e2e 5s", "task -1s"])
def test_what_is_no_slo_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="no SLO"):
        slo(text)
