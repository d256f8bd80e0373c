"""What every test shares: seeded randomness and one Hypothesis profile."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "wassemble",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],  # the machine is, where it is busy
)
settings.load_profile("wassemble")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
