"""What every test shares: its tier, Hypothesis profiles, seeded randomness.

`make test` leaves out what needs more than Python packages and what is slow, and says so; `make
test-all` runs that too. A test belongs to them by its file, listed here, or by a mark of its own.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

# Workers of pytest run side by side, one to a core: where BLAS or OpenMP had threads on all cores,
# they would wait for each other in turns, and small problems would take three times as long. Set
# before NumPy is there, and for workers and commands that tests start.
for _library in ("MKL", "OMP", "OPENBLAS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

TESTS = Path(__file__).parent
# What tests need beyond Python packages, and the files of those that do.
NEEDS = {
    "browser": "a browser",
    "node": "Node",
    "postgres": "PostgreSQL",
    "cluster": "a cluster",
    "slow": "time",
}
PLACES = {
    "browser": "report/test_browser.py web/test_browser_*.py export/test_page.py",
    "node": "export/test_node.py export/test_page.py",
    "cluster": "scale/test_cluster.py scale/test_guide.py scale/test_kills.py scale/test_rank*.py",
    "slow": "paper/* test_shell_blocks.py test_wheel.py ensemble/test_types.py"
    " web/test_hostile.py web/test_limits.py web/test_openapi.py web/test_serve.py"
    " web/study/test_durability.py",
}
# The mathematics and its laws, `pytest -m fast`, but for some that take their time.
FAST = ("kernels", "metrics", "solvers")
NOT_FAST = ("closed_forms", "devices", "exact", "exact_unbalanced", "fuzz", "gradients", "newton")
NOT_FAST += ("ordered", "rules", "sample_weights", "several_fixed_points", "tiles")

_ALWAYS = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow],  # the machine is, where it is busy
}
settings.register_profile("quick", max_examples=15, **_ALWAYS)
settings.register_profile("thorough", max_examples=100, **_ALWAYS)
settings.load_profile("quick")


def pytest_addoption(parser):
    parser.addoption(
        "--leave-rest",
        action="store_true",
        help="skip what needs more than Python packages, and what is slow: `make test`",
    )


def pytest_ignore_collect(collection_path, config):
    """Nothing outside of their folders is fast: it need not be looked at."""
    is_above = TESTS.is_relative_to(collection_path)
    if config.option.markexpr == "fast" and not is_above and not _is_fast(collection_path):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        reasons = _mark(item)
        if reasons and config.option.leave_rest:
            needs = " and ".join(reasons)
            item.add_marker(pytest.mark.skip(f"needs {needs}: `make test-all` runs it"))


def _mark(item):
    """Give a test the marks of its tier; what it needs."""
    for name in _tiers(item.path):
        item.add_marker(name)
    reasons = [words for name, words in NEEDS.items() if item.get_closest_marker(name)]
    if not reasons and _is_fast(item.path):
        item.add_marker("fast")
    return reasons


@cache
def _tiers(path):
    """The marks that a file gives to its tests, of which it may have thousands."""
    return [
        name
        for name, places in PLACES.items()
        if any(path.match(f"tests/{place}") for place in places.split())
    ]


@cache
def _is_fast(path):
    name = path.stem.removeprefix("test_")
    return name not in NOT_FAST and any(path.is_relative_to(TESTS / each) for each in FAST)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
