"""Tests of solvers run twice where there are native sweeps: with them and without."""

from __future__ import annotations

import os
import shutil

import pytest
from problems import SWEEPS

from wassemble.solvers.native_sweep import find_native


def need_native() -> None:
    """Skip a test where native sweeps are not built; fail where they could have been."""
    if find_native() is None:
        if os.environ.get("CI") and shutil.which(os.environ.get("CXX", "c++")):
            pytest.fail("native sweeps are not installed: pip install ./native")
        pytest.skip("wassemble-native is not installed")


@pytest.fixture(scope="module", params=SWEEPS)
def sweeps(request):
    """For modules that say so: every test with native sweeps and with those of NumPy alone."""
    if request.param == "native":
        need_native()
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WASSEMBLE_NATIVE", "0")
        yield


@pytest.fixture
def native():
    """The package of native sweeps."""
    need_native()
    return find_native()


@pytest.fixture
def only_numpy(monkeypatch):
    """Sweeps of NumPy alone."""
    monkeypatch.setenv("WASSEMBLE_NATIVE", "0")
