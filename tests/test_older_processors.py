"""Answers on an older processor are those of this one, but for the last digits.

`make test-portable` runs all tests so.
"""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from older_processors import OLDER, can_be, environment
from problems import MASSES, as_low_rank, as_sparse, make_case

import wassemble as ws

SIZES = {"n_models": 4, "n_samples": 70, "n_source": 45, "n_target": 37}


@cache
def answers():
    """The consensus of some problems, by name."""
    found = {}
    for dtype in (np.float32, np.float64):
        for mass in MASSES:
            for spread in (3.0, 120.0):  # plain and log arithmetic
                case = make_case(1, mass=mass, dtype=dtype, kernel_spread=spread, **SIZES)
                for kind in (np.asarray, as_sparse, as_low_rank):
                    kernel = kind(case.kernels[0])
                    name = f"{mass} {spread} {kind.__name__} {dtype.__name__}"
                    result = case.but(kernels=[kernel] * 4).solve(max_sweeps=200)
                    found[name] = result.barycenter
        rows = np.random.default_rng(2).dirichlet(np.ones(50), (3, 40)).astype(dtype)
        for mean in (ws.ARITHMETIC, ws.GEOMETRIC, ws.HELLINGER):
            found[f"{mean} {dtype.__name__}"] = mean.fuse(rows).scores
    return found


@pytest.mark.parametrize("older", OLDER)
def test_answers_do_not_depend_on_the_processor(older, tmp_path):
    if not can_be(older):
        pytest.skip(f"this processor cannot play one with {older}")
    place = tmp_path / "answers.npz"
    here = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    script = (
        "import sys, numpy as np\n"
        "from test_older_processors import answers, can_be\n"
        f"assert not can_be({older!r}), 'nothing was switched off'\n"
        "np.savez(sys.argv[1], **answers())"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(place)],
        env=os.environ | environment(older) | {"PYTHONPATH": here},
        check=True,
    )
    there = dict(np.load(place))
    expected = answers()
    assert there.keys() == expected.keys()
    for name, wanted in expected.items():
        # A row may stop a look sooner or later, within its tolerance.
        slack = 1e-4 if wanted.dtype == np.float32 else 1e-5
        np.testing.assert_allclose(
            there[name], wanted, rtol=slack, atol=slack * wanted.max(), err_msg=name
        )
