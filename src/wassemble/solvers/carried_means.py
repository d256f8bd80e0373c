"""Rules without sweeps: each model is carried through its kernel, then they are combined."""

from collections.abc import Callable

import numpy as np

from wassemble._arrays import (
    Array,
    convert_like,
    detached,
    log_of,
    log_quotient,
    namespace,
    new_zeros,
    widest_float,
)
from wassemble._checks import check_count
from wassemble.solvers.loop import Status
from wassemble.solvers.problem import FusionProblem
from wassemble.solvers.rules import Fused
from wassemble.solvers.tiles import ONE_PASS, Group, run_tiles

# Rows that are looked at together.
_N_CHECKED = 4096
# Sums of rows below which quotients may leave the range of their type.
_SMALL = 1e-18


def fuse_carried(
    problem: FusionProblem,
    combine: Callable[[Array, Array], Array],
    *,
    size: int = ONE_PASS,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    out: np.ndarray | None = None,
) -> Fused:
    """Carry every model to the target labels and ``combine(images, weights)`` them.

    ``images`` are (n_models, n_rows, n_target), about ``size`` numbers at a time; weights have
    three axes, of which those of rows and labels may have length 1.
    """
    if n_threads is not None:
        check_count(n_threads, "n_threads")
    shape = (problem.n_samples, problem.n_target)
    scores = new_zeros(shape, problem.like, problem.dtype)
    if out is not None and not problem.may_share_memory(out):
        scores = out
    statuses = np.full(problem.n_samples, Status.CONVERGED, dtype=np.int8)
    if not all(kernel.is_identity for kernel in problem.voting_kernels):
        problem.find_out_whether_histograms(_N_CHECKED)

    def fuse(start: int, stop: int) -> None:
        tile = problem.tile(start, stop)
        keeps_mass = problem.are_histograms
        carried = [_carry(group, keeps_mass=keeps_mass) for group in tile.groups]
        weights = tile.weights
        images = carried[0] if len(carried) == 1 else namespace(weights).concat(carried)
        if tile.models != sorted(tile.models):  # sums are taken in the order of the models
            order = np.argsort(tile.models)
            images, weights = images[order], weights[order]
        consensus = combine(images, weights)
        scores[start:stop] = consensus
        statuses[start:stop] = _judge(detached(consensus), images, tile.groups)

    n_rows = max(problem.rows_per_tile(size), 1)
    run_tiles(fuse, problem.n_samples, n_rows, n_threads, progress)
    if out is not None and scores is not out:
        out[...] = scores
        scores = out
    return Fused(
        scores, statuses, problem.are_histograms, drops_sample_axis=problem.drops_sample_axis
    )


def _carry(group: Group, *, keeps_mass: bool) -> Array:
    """Images of a group's models, (n_models, n_rows, n_target)."""
    kernel, histograms = group.kernel, group.histograms
    if kernel.is_identity:
        return histograms
    if not keeps_mass:
        return kernel.apply_transpose(histograms)
    xp = namespace(histograms)  # K^T (mu / K 1)
    sums = convert_like(kernel.row_sums, histograms)
    if kernel.keeps_logs or bool(xp.any((sums > 0) & (sums < _SMALL))):
        wide = xp.astype(histograms, widest_float(histograms), copy=False)
        logs = log_quotient(log_of(wide), convert_like(kernel.log_row_sums, wide))
        return xp.astype(xp.exp(kernel.log_apply_transpose(logs)), histograms.dtype, copy=False)
    return kernel.apply_transpose(
        xp.where(sums > 0, histograms / xp.where(sums > 0, sums, 1.0), 0.0)
    )


def _judge(consensus: np.ndarray, images: Array, groups: list[Group]) -> np.ndarray:
    """How each row ended."""
    status = np.full(len(consensus), Status.CONVERGED, dtype=np.int8)
    for group in groups:
        leads = group.kernel.leads_somewhere
        if not leads.all():
            stuck = (detached(group.histograms) > 0) & ~leads
            status[stuck.any(axis=(0, 2))] = Status.UNREACHABLE_MASS
    is_empty = ~consensus.any(axis=1)
    if is_empty.any():  # models that are sure of different labels, or that all say "none"
        status[is_empty & detached(images).any(axis=(0, 2))] = Status.NO_MASS
    finite = np.isfinite(consensus)
    if not finite.all():
        status[~finite.all(axis=1)] = Status.DIVERGED
    return status
