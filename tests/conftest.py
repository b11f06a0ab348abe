"""What tests of several packages share: patience with a busy machine, the real weights of the embedded model."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from headway.core.errors import HeadwayError
from headway.gateway.models import pull

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # a property holds however busy the machine is


@pytest.fixture(scope="session")
def weights() -> Path:
    """The embedded model's weights in the user's own cache, pulled once; skips where they cannot be had."""
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: pip install 'headway[embedded]'")
    try:
        return pull()
    except HeadwayError as error:
        pytest.skip(f"the embedded model's weights cannot be pulled: {error}")
