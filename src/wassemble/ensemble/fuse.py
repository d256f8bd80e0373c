"""`fuse`: predictions in, consensus out."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Unpack, overload

import numpy as np

from wassemble._arrays import Array, is_frame
from wassemble._checks import fail, refuse_names
from wassemble.ensemble.account import NO_MASS_REMEDY
from wassemble.ensemble.completion import Unobserved
from wassemble.ensemble.dask_arrays import are_dask_arrays, fuse_dask_arrays
from wassemble.ensemble.fuse_types import FrameT, FuseOptions
from wassemble.ensemble.histograms import to_histograms
from wassemble.ensemble.lazy import fuse_lazily, is_lazy, read_places
from wassemble.ensemble.plan import USUAL_MASS, check_rule
from wassemble.ensemble.tables import fuse_tables, name_models
from wassemble.errors import ConvergenceWarning
from wassemble.inputs import Kind, Predictions
from wassemble.kernels import IdentityKernel
from wassemble.labels import LabelSpace
from wassemble.solvers import (
    Balanced,
    Barycenter,
    BarycenterProblem,
    BarycenterResult,
    MassRule,
    Status,
    Unbalanced,
    solve_barycenter,
)
from wassemble.solvers.barycenter import solve

__all__ = ["are_named", "fuse"]

# Rows that are looked at together.
_N_CHECKED = 4096
# Share of a row's mass that `n_top` may drop without a word.
_MUCH_DROPPED = 0.05


@overload
def fuse(
    predictions: Mapping[str, Predictions] | Sequence[Predictions], **options: Unpack[FuseOptions]
) -> Predictions: ...
@overload
def fuse(
    predictions: Mapping[str, FrameT] | Sequence[FrameT], **options: Unpack[FuseOptions]
) -> FrameT: ...
@overload
def fuse(
    predictions: np.ndarray | Sequence[np.ndarray] | Sequence[Sequence[float]],
    **options: Unpack[FuseOptions],
) -> np.ndarray: ...
@overload
def fuse(predictions: Any, **options: Unpack[FuseOptions]) -> Any: ...
def fuse(
    predictions: Mapping[str, Any] | Sequence[Any] | Array,
    *,
    kernel: Any = None,
    weights: Any = None,
    mass: MassRule | None = None,
    kind: Kind | None = None,
    rule: Callable[..., Any] = solve_barycenter,
    max_sweeps: int = 1000,
    tolerance: float | None = 1e-6,
    debias: bool = False,
    normalize: bool = False,
    n_top: int | None = None,
    mixed_precision: bool = False,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    out: np.ndarray | None = None,
    target: LabelSpace | Iterable[str] | None = None,
    aliases: Any = None,
    fold: bool = False,
    other: str | Mapping[str, str] | None = None,
    samples: Literal["all", "common"] = "all",
    allow_disjoint: bool = False,
    by_row: bool = False,
    leftover: float = 0.05,
    unobserved: Unobserved = "spread",
    hard_confidence: float = 0.9,
) -> Array:
    """Consensus of several models' predictions.

    Parameters
    ----------
    predictions : array of shape (n_models, n_samples, n_labels), or one array per model
        Non-negative: histograms, whose consensus is a histogram, or scores of any mass (see
        ``kind``). A single sample may drop the sample axis.
        Or predictions with names, which are matched by them: a dict of model names to data
        frames or paths, or a list of `Predictions` or of data frames; `fuse_tables` has the
        details, and gives an account of what was matched. Dask arrays, Dask data frames and
        folders of part files are fused block by block when their consensus is computed;
        `fuse_lazily` has the details.
    kernel : Kernel, array or sparse matrix of shape (n_source, n_target), or one per model
        How similar each source label is to each target label. Without one, labels are
        similar to themselves alone and nothing is transported.
    weights : array of shape (n_models,) or (n_models, n_target), optional
        On the simplex over models; uniform if not given. Arrays may have weights per sample
        too, of shape (n_models, n_samples, 1) or (n_models, n_samples, n_target).
    mass : Balanced or Unbalanced, optional
        The paper's ``Unbalanced(2, epsilon=0.3)`` if not given, in which no model can rule a
        label out by itself; `Balanced` (Algorithm 1) with ``debias``.
    kind : {"multiclass", "multilabel"}, optional
        "multiclass": rows are histograms, and so is the consensus: it is raised to the inverse
        of the exponent by which Algorithm 2 flattens it, and divided by its mass
        (`solve_barycenter` keeps the raw numbers). "multilabel": scores of any
        mass, left as they are. If not given, arrays without a ``mass`` must be histograms;
        with `Unbalanced` they are taken as such if every row sums to 1.
    max_sweeps, tolerance, debias, normalize, n_top, mixed_precision, n_threads, progress
        As in `solve_barycenter`.
    rule : callable
        `solve_barycenter`, or a mean to compare with: `arithmetic_mean`,
        `geometric_mean`, `hellinger_mean`, or any ``rule(predictions, weights=weights)``.
        Means know no kernel.
    out : array of shape (n_samples, n_target), optional
        Where to write the consensus, such as a memory-mapped file: with memory-mapped
        predictions a batch larger than memory goes through in flat memory.
    target, aliases, fold, other, samples, allow_disjoint, by_row
        For predictions with names, as in `fuse_tables`.
    leftover, unobserved, hard_confidence
        For predictions with names, as in `fuse_tables`.

    Returns
    -------
    consensus : array of shape (n_samples, n_target)
        A data frame of the library that came in, or `Predictions`, for predictions with
        names. A Dask array or data frame for what comes in blocks.

    Warns
    -----
    ConvergenceWarning
        If rows did not converge or lost mass that could not arrive;
        `solve_barycenter` says which.

    Examples
    --------
    >>> kernel = [[1.0, 0.5, 0.1], [0.5, 1.0, 0.5], [0.1, 0.5, 1.0]]
    >>> fuse([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], kernel=kernel).round(3)
    array([0.305, 0.39 , 0.305])
    >>> fuse([[1.0, 0.0], [0.0, 1.0]])  # a geometric mean would leave nothing
    array([0.5, 0.5])
    """
    options: dict[str, Any] = {
        "kernel": kernel,
        "weights": weights,
        "mass": mass,
        "kind": kind,
        "rule": rule,
        "max_sweeps": max_sweeps,
        "tolerance": tolerance,
        "debias": debias,
        "n_top": n_top,
        "n_threads": n_threads,
    }
    by_name: dict[str, Any] = {
        "target": target,
        "aliases": aliases,
        "fold": fold,
        "other": other,
        "samples": samples,
        "allow_disjoint": allow_disjoint,
        "by_row": by_row,
        "leftover": leftover,
        "unobserved": unobserved,
        "hard_confidence": hard_confidence,
    }
    check_rule(rule)
    if isinstance(predictions, Iterator):
        predictions = list(predictions)
    if isinstance(predictions, list | tuple) and not predictions:
        fail("there must be at least one model; got none.", hint="one array or table per model")
    if are_dask_arrays(predictions):
        options |= {"normalize": normalize, "mixed_precision": mixed_precision}
        _refuse_names(by_name)
        return _fuse_dask(predictions, {"progress": progress, "out": out}, options)
    _refuse_paths(predictions)
    if are_named(predictions):
        refused = {
            "mixed_precision": mixed_precision,
            "progress": progress is not None,
            "out": out is not None,
        }
        for name, is_given in refused.items():
            if is_given:
                fail(f"`{name}` must go with arrays; got predictions with names.")
        options["normalize"] = normalize
        named = name_models(predictions)
        if not all(isinstance(given, Predictions) for _, given in named):
            predictions = read_places(
                dict(named), "multilabel" if normalize else kind, by_row=by_row
            )
            if any(is_lazy(given) for given in predictions.values()):
                if by_name.pop("by_row"):
                    fail(
                        "`by_row` must go with tables in memory; got partitions.",
                        hint="samples of partitions are matched by id",
                    )
                return fuse_lazily(predictions, **options, **by_name)
        fusion = fuse_tables(predictions, **options, **by_name)
        return fusion.consensus if fusion.frame is None else fusion.to_frame()
    refuse_names(predictions, "predictions")
    _refuse_names(by_name)
    if rule is not solve_barycenter:
        given = {
            "kernel": kernel is not None,
            "mass": mass is not None,
            "max_sweeps": max_sweeps != 1000,
            "tolerance": tolerance != 1e-6,
            "debias": debias,
            "normalize": normalize,
            "n_top": n_top is not None,
            "mixed_precision": mixed_precision,
            "n_threads": n_threads is not None,
            "progress": progress is not None,
            "out": out is not None,
        }
        _refuse([name for name, is_given in given.items() if is_given], rule)
        mean = rule(predictions, weights=weights)
        return to_histograms(mean, None) if _are_histograms(predictions, kind) else mean
    usual: MassRule = Balanced() if debias else USUAL_MASS
    problem = BarycenterProblem(
        predictions,
        _identity(predictions) if kernel is None else kernel,
        Barycenter(
            usual if mass is None else mass,
            max_sweeps=max_sweeps,
            tolerance=tolerance,
            debias=debias,
            n_top=n_top,
            mixed_precision=mixed_precision,
        ),
        weights=weights,
        holds=_holds(kind, mass),
        normalize=normalize,
    )
    if out is not None:
        _check_out(out, problem)
    result = solve(problem, n_threads=n_threads, progress=progress, keep_scalings=False, out=out)
    _warn(result)
    if not problem.are_histograms:
        return result.barycenter
    return to_histograms(result.barycenter, problem.mass, out=out)


def _fuse_dask(predictions: Any, refused: dict[str, Any], options: dict[str, Any]) -> Any:
    """Dask arrays, block by block."""
    for name, given in refused.items():
        if given is not None:
            fail(f"`{name}` must go with arrays in memory; got Dask arrays.")
    if options["kind"] is None and isinstance(options["mass"], Unbalanced):
        fail(
            "`kind` must be given for Dask arrays with mass=Unbalanced(...): their blocks are"
            " fused one by one; got none.",
            hint='kind="multiclass" for histograms, "multilabel" for scores of any mass',
        )
    few = {"max_sweeps": 1, "tolerance": None} if options["rule"] is solve_barycenter else {}
    return fuse_dask_arrays(
        predictions, partial(fuse, **options), try_out=partial(fuse, **options | few)
    )


def _holds(kind: Kind | None, mass: MassRule | None) -> Literal["histograms", "scores", "either"]:
    """What arrays must hold."""
    if kind not in (None, "multiclass", "multilabel"):
        fail(f'`kind` must be "multiclass" or "multilabel"; got {kind!r}.')
    if kind is None:
        return "either" if isinstance(mass, Unbalanced) else "histograms"
    return "histograms" if kind == "multiclass" else "scores"


def _are_histograms(predictions: Any, kind: Kind | None) -> bool:
    """Whether a mean is of histograms."""
    holds = _holds(kind, USUAL_MASS)
    problem = BarycenterProblem(
        predictions, _identity(predictions), Barycenter(USUAL_MASS), holds=holds
    )
    problem.check_entries(range(problem.n_models), _N_CHECKED)
    return problem.are_histograms


def _refuse_names(by_name: Mapping[str, Any]) -> None:
    """Refuse options about samples and labels beside arrays, which have no names of them."""
    usual = inspect.signature(fuse).parameters
    for name, given in by_name.items():
        default = usual[name].default
        if given is not default and (type(given) is not type(default) or given != default):
            fail(
                f"`{name}` must go with predictions that have names; got arrays.",
                hint="data frames have names, and so has Predictions(model, samples, labels,"
                " scores)",
            )


def _refuse_paths(predictions: Any) -> None:
    """Refuse paths that no name goes with."""
    some = predictions if isinstance(predictions, list | tuple) else [predictions]
    if any(isinstance(each, str | os.PathLike) for each in some):
        fail(
            "paths must come in a dict, each with the name of its model; got"
            f" {type(predictions).__name__}.",
            hint='{"my model": path, ...} names them',
        )


def are_named(predictions: Any) -> bool:
    """Whether predictions come with the names of their labels."""
    some = predictions if isinstance(predictions, list | tuple) else [predictions]
    return isinstance(predictions, Mapping) or any(
        isinstance(each, Predictions) or is_frame(each) for each in some
    )


def _refuse(names: list[str], rule: Any) -> None:
    """Refuse options of the barycenter beside another rule."""
    if names:
        hint = "leave it out"
        if names[0] == "kernel":
            hint = (
                "kernel.apply_transpose(arithmetic_mean(predictions)) maps a mean to the target"
                " labels"
            )
        fail(
            f"`{names[0]}` must go with the barycenter; got rule {_name(rule)}, which knows none.",
            hint=hint,
        )


def _identity(predictions: Any) -> IdentityKernel:
    if not np.iterable(predictions):
        fail(f"`predictions` must be one array per model; got {type(predictions).__name__}.")
    sizes = {np.shape(prediction)[-1:] for prediction in predictions}
    if len(sizes) != 1 or sizes == {()}:
        fail(
            "models with different numbers of labels must come with a kernel each;"
            f" got {', '.join(str(np.shape(p)) for p in predictions)} and no kernel."
        )
    return IdentityKernel(*sizes.pop())


def _check_out(out: Any, problem: BarycenterProblem) -> None:
    shape = (problem.n_samples, problem.n_target)
    if problem.like is not None or problem.drops_sample_axis:
        fail("`out` serves batches of NumPy arrays; got torch tensors or a single sample.")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        fail("`out` must be writeable; got a read-only array.")
    if not (isinstance(out, np.ndarray) and out.shape == shape and out.dtype.kind == "f"):
        got = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out)
        fail(f"`out` must be a floating NumPy array of shape {shape}; got {got}.")


def _warn(result: BarycenterResult) -> None:
    """Say what the result would, since the consensus alone cannot."""
    if result.dropped is not None and (worst := result.dropped.max(initial=0)) > _MUCH_DROPPED:
        warnings.warn(
            f"`n_top` dropped up to {worst:.0%} of a model's mass in a row.",
            ConvergenceWarning,
            stacklevel=3,
        )
    fine = Status.CONVERGED if result.problem.tolerance else Status.MAX_SWEEPS
    if (result.statuses == fine).all():
        return
    for status in Status:
        count = int((result.statuses == status).sum())
        if count and status not in (fine, Status.CONVERGED):
            hint = f"\nhint: {NO_MASS_REMEDY}" if status is Status.NO_MASS else ""
            warnings.warn(
                f"{count} of {len(result.statuses)} rows: {status.message}.{hint}",
                ConvergenceWarning,
                stacklevel=3,
            )


def _name(rule: Any) -> str:
    return getattr(rule, "__name__", repr(rule))
