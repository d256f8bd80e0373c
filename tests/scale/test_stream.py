"""Predictions in pieces, and predictions on disk."""

import subprocess
import sys

import numpy as np
import pytest
from problems import make_case

import wassemble as ws


def test_chunks_give_the_consensus_of_the_whole():
    case = make_case(1, n_samples=300)
    whole = ws.fuse(case.histograms, kernel=case.kernels[0], weights=case.weights)
    chunks = ([h[start : start + 70] for h in case.histograms] for start in range(0, 300, 70))
    pieces = list(
        ws.scale.fuse_stream(chunks, ws.Fusion(kernel=case.kernels[0], weights=case.weights))
    )
    assert [len(piece) for piece in pieces] == [70, 70, 70, 70, 20]
    np.testing.assert_allclose(np.concatenate(pieces), whole, rtol=1e-12)


def test_a_stream_asks_for_a_chunk_only_when_it_is_its_turn():
    asked = []

    def chunks():
        for number in range(3):
            asked.append(number)
            yield make_case(number).histograms

    stream = ws.scale.fuse_stream(chunks(), ws.Fusion(kernel=make_case(0).kernels[0]))
    next(stream)
    assert asked == [0]


_MEMMAP = """
import resource, sys
import numpy as np
import wassemble as ws

folder, n_samples = sys.argv[1], int(sys.argv[2])
shape = (4, n_samples, 50)
scores = np.lib.format.open_memmap(f"{folder}/in.npy", "w+", np.float32, shape)
for start in range(0, n_samples, 10_000):
    scores[:, start : start + 10_000] = np.random.default_rng(start).uniform(size=(4, 1, 50))
scores.flush()
del scores
scores = np.load(f"{folder}/in.npy", mmap_mode="r")
out = np.lib.format.open_memmap(f"{folder}/out.npy", "w+", np.float32, (n_samples, 60))
kernel = np.exp(-np.random.default_rng(0).uniform(size=(50, 60)))
resource.setrlimit(resource.RLIMIT_DATA, (400 * 2**20,) * 2)  # anonymous memory only
rule = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None)
ws.fuse(scores, kernel=kernel, rule=rule, kind="multilabel", out=out, n_threads=4)
assert np.isfinite(out[-1]).all() and (out[-1] > 0).all()
print("done")
"""


def test_files_larger_than_the_memory_allowed_go_through(tmp_path):
    code = [sys.executable, "-c", _MEMMAP, str(tmp_path), "600000"]  # 480 MB in, 144 MB out
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"out": np.empty((4, 5))}, r"`out` must be a floating NumPy array of shape \(4, 6\)"),
        ({"out": np.broadcast_to(0.0, (4, 6))}, "`out` must be writeable"),
        ({"out": [0.0]}, "`out` must be a floating NumPy array"),
        ({"out": np.empty((4, 6), dtype=int)}, "got int64 of shape"),
        ({"out": np.empty((4, 6)), "kernel": None, "rule": ws.ARITHMETIC}, r"of shape \(4, 5\)"),
    ],
)
def test_a_wrong_place_for_the_output_is_refused(options, words):
    case = make_case(2)
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.fuse(case.histograms, **({"kernel": case.kernels[0]} | options))


def test_a_single_sample_has_no_place_for_an_output():
    with pytest.raises(ws.InvalidInputError, match="single sample"):
        ws.fuse([[0.5, 0.5]], kernel=np.ones((2, 2)), out=np.empty((1, 2)))
