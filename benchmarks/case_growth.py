"""Growth: samples, labels, models and threads."""

from __future__ import annotations

import gc
from dataclasses import replace
from itertools import repeat

import numpy as np
import psutil

import wassemble as ws
from benchmarks.case_captioning import neighbour_kernel, softmax_words
from benchmarks.measure import race

_BALANCED = ws.Barycenter(max_sweeps=5, tolerance=None)
_FIVE = replace(_BALANCED, mass=ws.Unbalanced(2.0, epsilon=0.3))


def run(*, quick: bool) -> dict:
    """Seconds against size, each axis alone."""
    return {
        "samples": _samples(quick=quick),
        "labels": _labels(quick=quick),
        "models": _models(quick=quick),
        "threads": _threads(quick=quick),
    }


def fuse(scores, kernel, **options):
    """Five sweeps of Algorithm 2."""
    return ws.fuse(scores, kernel=kernel, rule=_FIVE, kind="multilabel", **options)


def _dense(rng, n_models, n_samples, n_labels):
    scores = rng.uniform(0.01, 1, size=(n_models, n_samples, n_labels)).astype(np.float32)
    kernel = ws.kernels.DenseKernel(
        np.exp(-3 * rng.uniform(size=(n_labels, n_labels))).astype(np.float32)
    )
    return scores, kernel


def _samples(*, quick: bool) -> list[dict]:
    """Streams of chunks of 10,000 samples; the resident memory after each tenth."""
    rng = np.random.default_rng(0)
    chunk, kernel = _dense(rng, 8, 10_000, 80)
    rows = []
    for n_samples in (
        (1_000, 10_000, 50_000, 100_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
    ):
        piece = chunk[:, : min(n_samples, 10_000)]
        n_chunks = max(1, n_samples // 10_000)
        memory: list[float] = []

        def stream(piece=piece, n_chunks=n_chunks, memory=memory):
            memory.clear()
            chunks = repeat(piece, n_chunks)
            fusion = ws.Fusion(_FIVE, kernel, kind="multilabel")
            for number, _ in enumerate(ws.scale.fuse_stream(chunks, fusion)):
                if number % max(1, n_chunks // 10) == 0:
                    memory.append(psutil.Process().memory_info().rss / 2**20)

        gc.collect()
        timing = race({"stream": stream}, n_rounds=3 if n_samples < 500_000 else 1)["stream"]
        rows.append(
            {
                "n_samples": n_samples,
                "seconds": timing["seconds"],
                "microseconds_per_sample": 1e6 * timing["seconds"] / n_samples,
                "megabytes_gained": max(memory) - memory[0],
            }
        )
    return rows


def _labels(*, quick: bool) -> list[dict]:
    """Sparse kernels whose neighbours are near in the order of labels, and at random."""
    rows = []
    for n_labels in (80, 1_000, 10_000, 50_000, 100_000 if quick else 200_000):
        rng = np.random.default_rng(0)
        words = softmax_words(rng, 5, 5, n_labels, spread=1.0)
        n_neighbours = min(50, n_labels // 2)
        kernels = {
            "seconds": neighbour_kernel(rng, n_labels, n_neighbours, reach=500),
            "seconds_random": neighbour_kernel(rng, n_labels, n_neighbours),
        }
        timings = race(
            {
                name: lambda w=words, k=kernel: ws.fuse(w, kernel=k, rule=_BALANCED, normalize=True)
                for name, kernel in kernels.items()
            },
            n_rounds=3,
        )
        rows.append({"n_labels": n_labels} | {n: t["seconds"] for n, t in timings.items()})
    return rows


def _models(*, quick: bool) -> list[dict]:
    rows = []
    for n_models in (2, 4, 8, 16, 32, 64):
        scores, kernel = _dense(np.random.default_rng(0), n_models, 1_000 if quick else 4_000, 80)
        timing = race({"dense": lambda s=scores, k=kernel: fuse(s, k)}, n_rounds=3)["dense"]
        rows.append({"n_models": n_models, "seconds": timing["seconds"]})
    return rows


def _threads(*, quick: bool) -> list[dict]:
    scores, kernel = _dense(np.random.default_rng(0), 8, 6_000 if quick else 35_150, 80)
    timings = race(
        {str(n): lambda n=n: fuse(scores, kernel, n_threads=n) for n in (1, 2)},
        n_rounds=5,
    )
    return [{"n_threads": int(n), "seconds": t["seconds"]} for n, t in timings.items()]
