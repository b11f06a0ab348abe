"""Settings of properties that hold however busy the machine is."""

from hypothesis import HealthCheck, settings

UNHURRIED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
