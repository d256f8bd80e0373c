"""Heads in onnxruntime beside the library: one sample, a batch, and 10,000 labels."""

from __future__ import annotations

import json
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import scipy.sparse as sp

import wassemble as ws
from benchmarks.measure import agree, on_numpy, race
from wassemble.export import export_onnx, load_head

RULE = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None)
N_NEIGHBORS = 50


def run(*, quick: bool) -> dict:
    """Seconds of a call on one thread, in float32."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(80, 50))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cost = np.square(vectors[:, None] - vectors).sum(axis=2).astype(np.float32)
    dense = ws.kernels.from_cost(cost, RULE.mass.epsilon)
    n_labels = 1_000 if quick else 10_000
    sparse = _draw_neighbors(n_labels, rng)
    cases = {"one sample": (dense, 8, 1), "2,000 samples": (dense, 8, 2_000)}
    cases[f"{n_labels:,} labels"] = (sparse, 5, 4)
    timings: dict[str, Any] = {}
    operators = {}
    for name, (kernel, n_models, n_samples) in cases.items():
        scores = rng.uniform(0.01, 1, size=(n_models, n_samples, kernel.shape[0]))
        found, operators[name] = _race(kernel, scores.astype(np.float32), 5 if quick else 15)
        timings |= {f"{contender}, {name}": timing for contender, timing in found.items()}
    return {"timings": timings, "operators": operators}


def _race(
    kernel: ws.Kernel, scores: np.ndarray, n_rounds: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    labels = [str(place) for place in range(kernel.shape[0])]
    models = {f"model {place}": ws.LabelSpace(labels) for place in range(len(scores))}
    named = ws.LabelledKernel(kernel, labels, labels)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "head.onnx"
        fusion = ws.Fusion(RULE, named, kind="multilabel")
        export_onnx(fusion, path, models=models, abstentions=False)
        head = load_head(path)
        given = dict(zip(models, scores, strict=True))
        inputs = head.read(given)
        operators = _time_operators(path, inputs, n_rounds)

    def fuse() -> np.ndarray:
        return RULE.fuse(scores, kernel, holds="scores", n_threads=1).scores

    contenders = {
        "onnxruntime": lambda: head.run(inputs)["scores"],
        "head": lambda: head(given)["scores"],
        "fuse": fuse,
        "fuse on NumPy": lambda: on_numpy(fuse),
    }
    agree({name: call() for name, call in contenders.items()}, rtol=2e-3)
    found = race(contenders, n_rounds=n_rounds, at_least=0.02, clock=time.process_time)
    return found, operators


def _time_operators(
    path: Path, inputs: dict[str, np.ndarray], n_rounds: int
) -> dict[str, dict[str, float]]:
    """How many operators of each kind there are, and their seconds by onnxruntime's own profiler.

    It counts whole microseconds: those of one sample are too coarse to be added up.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    options.enable_profiling = True
    options.profile_file_prefix = str(path)
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for _ in range(n_rounds):
        session.run(None, inputs)
    fastest: dict[tuple[str, str], float] = {}
    for event in json.loads(Path(session.end_profiling()).read_text()):
        if event["name"].endswith("_kernel_time"):
            key = event["args"]["op_name"], event["name"]
            fastest[key] = min(event["dur"] / 1e6, fastest.get(key, math.inf))
    kinds = {kind: [s for (k, _), s in fastest.items() if k == kind] for kind, _ in fastest}
    return {kind: {"n": len(each), "seconds": sum(each)} for kind, each in kinds.items()}


def _draw_neighbors(n_labels: int, rng: np.random.Generator) -> ws.Kernel:
    """A kernel with so many similar labels for each."""
    columns = rng.integers(n_labels, size=(n_labels, N_NEIGHBORS - 1))
    columns = np.hstack([np.arange(n_labels)[:, None], columns])
    data = np.exp(-rng.random(columns.shape)).astype(np.float32)
    starts = np.arange(0, columns.size + 1, N_NEIGHBORS)
    shape = (n_labels, n_labels)
    return ws.kernels.SparseKernel(sp.csr_array((data.ravel(), columns.ravel(), starts), shape))
