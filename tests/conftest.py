"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A machine that is busy with other things takes its time over an example, and that is no failure.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
