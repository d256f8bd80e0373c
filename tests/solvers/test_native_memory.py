"""Native sweeps under the sanitizers of the compiler and under valgrind: in the long suite."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif("WASSEMBLE_LONG" not in os.environ, reason="make test-long"),
    pytest.mark.usefixtures("native"),
]
ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "solvers" / "test_native.py"
COMPILER = os.environ.get("CXX", "c++")


def runtime(name):
    """A library that comes with the compiler."""
    command = [COMPILER, f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_no_access_leaves_its_memory_and_nothing_is_undefined(tmp_path):
    package = tmp_path / "wassemble_native"
    shutil.copytree(ROOT / "native" / "src" / "wassemble_native", package)
    build = [sys.executable, ROOT / "native" / "hatch_build.py", "sanitized", package]
    subprocess.run(build, check=True)
    libraries = ("libasan.so", "libubsan.so", "libstdc++.so")
    switches = {
        "LD_PRELOAD": " ".join(map(runtime, libraries)),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it has until the end
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")]),
    }
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS]
    done = subprocess.run(run, env=os.environ | switches, cwd=ROOT, check=False)
    assert done.returncode == 0


_FEW = """
import numpy as np, scipy.sparse as sp, wassemble as ws
rng = np.random.default_rng(0)
for mass in (ws.Balanced(), ws.Unbalanced(2.0, epsilon=0.3)):
    for dtype in (np.float32, np.float64):
        scores = rng.dirichlet(np.ones(7), size=(3, 5)).astype(dtype)
        factors = rng.uniform(0.1, 1, size=(2, 11, 3)).astype(dtype)
        for kernel in (
            np.exp(-rng.uniform(0, 9, size=(7, 11))).astype(dtype),
            ws.kernels.LowRankKernel(factors[0, :7], factors[1]),
            sp.csr_array(np.where(rng.uniform(size=(7, 11)) < 0.5, 1, 0) + np.eye(7, 11)),
        ):
            for tolerance in (None, 1e-6):
                rule = ws.Barycenter(mass, max_sweeps=50, tolerance=tolerance)
                result = ws.solve_barycenter(scores, kernel, rule)
                assert result.solver.name == "native"
                rule.prepare(kernel, n_models=3, dtype=dtype)(scores[:, 0])
"""


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
def test_nothing_is_read_before_it_is_written():
    # Valgrind knows no AVX-512.
    switches = {"WASSEMBLE_NATIVE": "avx2", "PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1"}
    command = ["valgrind", "--quiet", sys.executable, "-c", _FEW]
    done = subprocess.run(
        command, env=os.environ | switches, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Python itself is not clean.
    assert [line for line in done.stderr.splitlines() if "sweeps_" in line] == [], done.stderr
