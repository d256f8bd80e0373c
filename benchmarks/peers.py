"""The peers: other libraries, the obvious way to write it, and the floor nobody can pass."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import race
from wassemble._threads import count_threads
from wassemble.solvers.tiles import rows_per_tile

__all__ = ["floor", "ott_balanced", "pot_balanced", "pot_loop", "products", "whole_batch"]


def pot_loop(scores, cost, mass, n_sweeps, samples=None):
    """POT's `barycenter_unbalanced`, one sample after the other: it knows no batches."""
    import ot

    samples = range(scores.shape[1]) if samples is None else samples
    out = np.empty((len(samples), cost.shape[1]), dtype=scores.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a fixed number of sweeps did not converge
        for row, sample in enumerate(samples):
            out[row] = ot.unbalanced.barycenter_unbalanced(
                scores[:, sample].T,
                cost,
                mass.epsilon,
                mass.mass_penalty,
                numItermax=n_sweeps,
                stopThr=0,
            )
    return out


def whole_batch(library, scores, kernel, mass, n_sweeps):
    """Algorithms 1 and 2 as one writes them in NumPy or torch: the whole batch at once."""
    v = library.ones((*scores.shape[:2], kernel.shape[1]), dtype=scores.dtype)
    for _ in range(n_sweeps):
        u = (scores / (v @ kernel.T)) ** mass.exponent
        image = u @ kernel
        if mass.order == 0:
            p = library.exp(library.log(image).mean(axis=0))
        else:
            p = (image**mass.order).mean(axis=0) ** (1 / mass.order)
        v = (p / image) ** mass.exponent
    return p


def floor(scores, kernel, n_sweeps, n_threads=2):
    """The matrix products, logarithms and exponentials of Algorithm 2, and nothing else."""
    n_models, n_samples, n_labels = scores.shape
    n_rows = rows_per_tile(n_models, n_labels)
    transposed = np.ascontiguousarray(kernel.T)

    def tile(start):
        x = scores[:, start : start + n_rows].reshape(-1, n_labels)
        image, powers = np.empty_like(x), np.empty_like(x)
        for sweep in range(n_sweeps):
            if sweep:  # the first K v is a row sum
                np.matmul(x, transposed, out=image)
            np.log2(x, out=powers)
            np.exp2(powers, out=powers)
            np.matmul(x, kernel, out=image)
            np.log2(image, out=powers)
            np.exp2(powers, out=powers)

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(tile, range(0, n_samples, n_rows)))


def products(histograms, kernel, n_sweeps):
    """Seconds of the matrix products alone, of as many sweeps as each sample took."""
    rows = np.ascontiguousarray(histograms[:, :64].reshape(-1, kernel.shape[0]))
    image = np.empty((len(rows), kernel.shape[1]), rows.dtype)
    timing = race({"product": lambda: np.matmul(rows, kernel, out=image)}, at_least=0.02)
    with_models = 2 * n_sweeps.sum() * len(histograms)
    return timing["product"]["seconds"] * float(with_models) / len(rows) / count_threads(None)


def pot_balanced(histograms, cost, epsilon, tolerance, max_sweeps):
    """POT's balanced barycenter in logs, one sample after the other; and its sweeps."""
    import ot

    out, sweeps = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in range(histograms.shape[1]):
            p, log = ot.bregman.barycenter(
                np.ascontiguousarray(histograms[:, sample].T),
                cost,
                epsilon,
                method="sinkhorn_log",
                numItermax=max_sweeps,
                stopThr=tolerance,
                log=True,
            )
            out.append(p)
            sweeps.append(log["niter"])
    return np.stack(out), np.array(sweeps)


def ott_balanced(histograms, cost, epsilon, tolerance, max_sweeps):
    """A jitted OTT-JAX solver over the batch, ``vmap`` over samples; call it with histograms."""
    import jax
    import jax.numpy as jnp
    from ott.geometry import geometry
    from ott.problems.linear import barycenter_problem
    from ott.solvers.linear import discrete_barycenter

    jax.config.update("jax_enable_x64", histograms.dtype == np.float64)
    points = geometry.Geometry(cost_matrix=jnp.asarray(cost), epsilon=epsilon)
    solver = discrete_barycenter.FixedBarycenter(
        threshold=tolerance, max_iterations=max_sweeps, lse_mode=True
    )

    def solve(sample):
        found = solver(barycenter_problem.FixedBarycenterProblem(points, sample))
        return found.histogram, found.errors

    batched = jax.jit(jax.vmap(solve))
    samples = jnp.asarray(histograms.transpose(1, 0, 2))

    def run():
        histogram, errors = jax.block_until_ready(batched(samples))
        return np.asarray(histogram), np.asarray(errors)

    return run
