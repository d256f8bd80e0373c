"""`solve_barycenter_distributed`: the paper's m machines, each with its own models.

Every rank sweeps its models; the ranks meet in line p of Algorithms 1 and 2, the power mean
over all models. That is one all-reduce of ``(n_samples, n_target)`` numbers per sweep: a sum
of weighted logs (balanced) or of weighted powers. In log arithmetic powers are taken relative
to the last sweep's consensus, which every rank has; the first sweep, and one that moves the
consensus a thousandfold, exchange the largest image too. Where the residual is looked at
(`Stopping.watches`), a second, small all-reduce of three numbers per sample tells who has
finished.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._arrays import Array, detached, find_torch
from wassemble._checks import check_weights_sum, fail
from wassemble.kernels import Kernel, as_kernel
from wassemble.scale.ranks.exchange import Ranks
from wassemble.scale.ranks.row_blocks import RowBlockKernel
from wassemble.solvers import Barycenter, BarycenterProblem, BarycenterResult, Status
from wassemble.solvers.barycenter import solve
from wassemble.solvers.weights import check_weights

# Samples checked at a time.
_N_CHECKED = 4096


@dataclass(frozen=True)
class SharedBarycenter:
    """A consensus that several ranks found together; the same on each of them but for `local`.

    That is what this rank knows: couplings and contributions of its own models; None if none of
    them votes. A coupling of a model whose kernel is split has the rows of this rank, and all
    ranks that share it must ask for it together.
    """

    barycenter: Array  # (n_samples, n_target) or (n_target,)
    status: np.ndarray | Status  # how each row ended: codes to compare with `Status`
    residual: np.ndarray | float  # of the model that moved most, whichever rank holds it
    n_sweeps: np.ndarray | int  # until the row stopped
    local: BarycenterResult | None


def solve_barycenter_distributed(
    histograms: Sequence[Any],
    kernels: Any,
    rule: Barycenter = Barycenter(),
    *,
    weights: Any = None,
    normalize: bool = False,
    group: Any = None,
    n_threads: int | None = None,
) -> SharedBarycenter:
    """Entropic Wasserstein barycenter of models that are on several ranks.

    Every rank of the group calls it at the same time, with the same samples, options and
    target labels, and gets the same answer: that of `solve_barycenter` with all models, to
    float tolerance.

    Parameters
    ----------
    histograms : list of arrays of shape (n_samples, n_source)
        The models of this rank, of one floating type on all ranks; may be empty. A model
        whose kernel is a `RowBlockKernel` is on several ranks, each with the columns of
        its own source labels.
    kernels : Kernel, array or sparse matrix, or one per model
        Those of this rank's models. Split ones stand in the order in which they were made.
    weights : array of shape (n_models,) or (n_models, n_target), optional
        Of this rank's models; those of all ranks sum to 1 (a split model counts once).
        Uniform over the models of all ranks if no rank gives any.
    rule, normalize, n_threads
        As in `solve_barycenter`.
    group : torch.distributed.ProcessGroup, optional
        The default group if not given. In a group of your own each rank must have a vote.
        In the default one, ranks without a vote wait for the whole solve in one exchange: the
        ``timeout`` of `init_process_group` must be longer than that.

    Returns
    -------
    shared : SharedBarycenter
        Tensors in give a tensor out, without gradients: those do not cross ranks.
    """
    ranks = Ranks(group)
    with ranks.together():
        share = _Share(histograms, kernels, weights)
    told = ranks.gather(np.array([share.n_models, share.n_whole, share.weights is not None]))
    share.settle_weights(told)
    voting = ranks.gather(np.array([share.votes]))[:, 0]
    if not voting.any():
        fail("some rank must hold a model of weight above 0; got none.")
    if rule.debias or rule.mixed_precision or rule.n_top is not None:
        fail(
            "ranks know a mass, a number of sweeps and a tolerance; got debias, n_top or"
            f" mixed_precision in {rule!r}."
        )
    options = {"rule": rule, "normalize": normalize}
    if voting.all():
        return _shared(_solve(share, ranks, options, n_threads))
    voters = ranks.subset(np.flatnonzero(voting).tolist())
    with ranks.together():  # those without a vote wait here
        result = None if voters is None else _solve(share, voters, options, n_threads)
    return _spread(result, ranks, int(np.argmax(voting)))


class _Share:
    """The models of one rank."""

    def __init__(self, histograms: Sequence[Any], kernels: Any, weights: Any) -> None:
        self.histograms = list(histograms)
        self.n_models = len(self.histograms)
        each = kernels if isinstance(kernels, list | tuple) else [kernels] * self.n_models
        if len(each) != self.n_models:
            fail(
                f"`kernels` must be one kernel for all {self.n_models} models of this rank or one"
                f" per model; got {len(each)}."
            )
        made = {id(kernel): as_kernel(kernel) for kernel in each}
        self.kernels: list[Kernel] = [made[id(kernel)] for kernel in each]
        tensor = find_torch(self.histograms, weights, [kernel.tensor for kernel in self.kernels])
        if tensor is not None and any(
            getattr(value, "requires_grad", False) for value in (*self.histograms, weights)
        ):
            fail(
                "`histograms` and `weights` must not require gradients on several ranks; they do.",
                hint="`tensor.detach()`; gradients go through `solve_barycenter`",
            )
        self._n_blocks = np.array([kernel.n_blocks for kernel in self.kernels])
        self.weights: np.ndarray | None = None
        self.has_rounded_weights = False  # to a type of fewer digits than float64
        if weights is not None:
            n_target = self.kernels[0].shape[1] if self.kernels else 0
            given = check_weights(detached(weights), self.n_models, n_target, whole=False)
            self.weights = given.astype(np.float64)
            self.has_rounded_weights = given.dtype != np.float64
        numbers = [k.number for k in self.kernels if isinstance(k, RowBlockKernel)]
        if sorted(numbers) != numbers:  # other ranks would add up other kernels' products
            fail("split kernels must stand in the order in which they were made; they do not.")

    @property
    def n_whole(self) -> float:
        """Number of models, of a split one this rank's part."""
        return float((1 / self._n_blocks).sum())

    @property
    def votes(self) -> bool:
        """Whether some model has a weight above 0."""
        return self.weights is not None and bool((self.weights > 0).any())

    def settle_weights(self, told: np.ndarray) -> None:
        """Weights as line p counts them; ``told`` is what each rank says of its models."""
        n_models, n_whole, has_weights = told.T
        has_models = n_models > 0
        if not has_weights[has_models].any():
            self.weights = np.full(self.n_models, 1 / n_whole.sum())
        elif not has_weights[has_models].all():
            without = np.flatnonzero(has_models & (has_weights == 0)).tolist()
            fail(f"`weights` must be given on every rank or on none; got none on ranks {without}.")
        if self.weights is not None:  # each part of a split model brings the whole image
            parts = self._n_blocks if self.weights.ndim == 1 else self._n_blocks[:, None]
            self.weights = self.weights / parts


def _solve(
    share: _Share, ranks: Ranks, options: dict[str, Any], n_threads: int | None
) -> BarycenterResult:
    """The result of the ranks that vote."""
    with ranks.together():
        problem = BarycenterProblem(
            share.histograms, share.kernels, weights=share.weights, exchange=ranks, **options
        )
        is_split = [kernel.is_split for kernel in problem.kernels]
        split = [m for m in problem.model_order if is_split[m]]
        problem.check_entries([m for m in problem.model_order if not is_split[m]], _N_CHECKED)
        problem.check_entries(split, _N_CHECKED, sums=False)
    _check_same(problem, ranks)
    totals = detached(problem.weights).astype(np.float64).sum(axis=0)
    totals = ranks.sum(np.broadcast_to(totals, problem.n_target))
    is_rounded = ranks.largest(np.array([float(share.has_rounded_weights)]))[0] > 0
    check_weights_sum(totals[None].astype(np.float32 if is_rounded else np.float64))
    with ranks.together():  # ranks that share a model exchange its sums, and refuse it alike
        problem.check_entries(split, _N_CHECKED)
    return solve(problem, n_threads=n_threads)


def _check_same(problem: BarycenterProblem, ranks: Ranks) -> None:
    """Refuse shares that do not fit together, on every rank alike."""
    tolerance = -1.0 if problem.tolerance is None else problem.tolerance
    facts = {
        "number of samples": problem.n_samples,
        "number of target labels": problem.n_target,
        "bytes per number": problem.dtype.itemsize,
        "array library (1: torch, 0: NumPy)": problem.like is not None,
        "order of the power mean (0: balanced)": problem.mass.order,
        "tolerance (-1: none)": tolerance,
        "max_sweeps": problem.rule.max_sweeps,
        "normalize": problem.normalize,
    }
    told = ranks.gather(np.array(list(facts.values()), dtype=np.float64))
    for name, values in zip(facts, told.T, strict=True):
        if (values != values[0]).any():
            got = ", ".join(f"{value:g}" for value in values)
            fail(f"every rank must have the same {name}; got {got}.")


def _shared(result: BarycenterResult) -> SharedBarycenter:
    return SharedBarycenter(
        result.barycenter, result.status, result.residual, result.n_sweeps, result
    )


def _spread(result: BarycenterResult | None, ranks: Ranks, source: int) -> SharedBarycenter:
    """What the ranks that vote found, on the others too."""
    sizes = np.zeros(5, dtype=np.int64)
    if result is not None:
        problem = result.problem
        flags = (problem.dtype.itemsize, problem.like is not None, problem.drops_sample_axis)
        sizes[:] = (problem.n_samples, problem.n_target, *flags)
    n_samples, n_target, n_bytes, is_torch, drops_sample_axis = ranks.broadcast(sizes, source)
    barycenter = np.zeros((n_samples, n_target), dtype=f"f{n_bytes}")
    rows = np.zeros((3, n_samples))
    if result is not None:
        barycenter = detached(result.barycenters)
        rows[:] = result.statuses, result.residuals, result.sweeps
    barycenter = ranks.broadcast(barycenter, source)
    status, residual, n_sweeps = ranks.broadcast(rows, source)
    if result is not None:
        return _shared(result)
    whole: Array = ranks.to_tensor(barycenter) if is_torch else barycenter
    if drops_sample_axis:
        last = Status(int(status[0])), float(residual[0]), int(n_sweeps[0])
        return SharedBarycenter(whole[0], *last, None)
    return SharedBarycenter(
        whole, status.astype(np.int8), residual, n_sweeps.astype(np.int64), None
    )
