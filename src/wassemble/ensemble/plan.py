"""How models with names are brought together: labels, kernels, weights; no scores yet.

A plan is made once from label sets; it fuses any number of chunks of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._arrays import detached
from wassemble._checks import check_count, check_tolerance, fail
from wassemble.ensemble.completion import RULES, Unobserved, complete_scores
from wassemble.inputs import Kind, Predictions
from wassemble.kernels import Kernel, LabelledKernel, as_kernel, kernel_from_names
from wassemble.labels import LabelSpace, Matching, enumerate_names, fold_name
from wassemble.solvers import (
    Balanced,
    BarycenterProblem,
    BarycenterResult,
    MassRule,
    Status,
    Unbalanced,
    solve_barycenter,
)
from wassemble.solvers.barycenter import solve
from wassemble.solvers.means import check_weights

__all__ = ["NO_ANSWER", "Chunk", "FusionPlan", "Member", "Options", "Ready", "Solved"]

# Status of a sample about which no model said anything.
NO_ANSWER = -1

# The paper's own setting (6.1).
_UNBALANCED = Unbalanced(2.0, epsilon=0.3)


@dataclass(frozen=True)
class Options:
    """How to fuse; see `fuse_tables`."""

    mass: MassRule | None = None
    rule: Callable[..., Any] = solve_barycenter
    leftover: float = 0.05
    unobserved: Unobserved = "spread"
    hard_confidence: float = 0.9
    max_iterations: int = 1000
    tolerance: float | None = 1e-6
    debias: bool = False
    n_top: int | None = None
    n_threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("leftover", "hard_confidence"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 <= value <= 1):
                fail(f"`{name}` must be a number from 0 to 1; got {value!r}.")
        if self.hard_confidence == 0:
            fail("`hard_confidence` must be above 0: a hard label says something; got 0.")
        if self.unobserved not in RULES:
            fail(f"`unobserved` must be one of {', '.join(RULES)}; got {self.unobserved!r}.")
        check_count(self.max_iterations, "max_iterations")
        check_tolerance(self.tolerance)


@dataclass(frozen=True)
class Member:
    """A model of the plan."""

    model: str
    labels: LabelSpace
    matching: Matching  # its labels in the target's, by name
    kernel: Kernel

    @property
    def lost(self) -> np.ndarray:
        """Labels whose mass can go nowhere, as a mask."""
        return np.asarray(self.kernel.row_sums).reshape(-1, len(self.labels)).max(axis=0) <= 0

    @property
    def reached(self) -> np.ndarray:
        """Target labels that the kernel can reach, as a mask."""
        sums = np.asarray(self.kernel.T.row_sums)
        return sums.reshape(-1, self.kernel.shape[1]).max(axis=0) > 0


@dataclass
class Chunk:
    """Some samples, fused."""

    scores: np.ndarray  # (n_samples, n_target)
    statuses: np.ndarray  # (n_samples,), of Status, or NO_ANSWER
    answered: np.ndarray  # (n_models, n_samples)
    mass: np.ndarray  # (n_samples,), of the consensus before it was divided by it
    lost_mass: np.ndarray  # (n_models,), summed over samples


class FusionPlan:
    """Label sets matched, kernels in place, weights on the simplex.

    Parameters
    ----------
    models : sequence of (name, LabelSpace)
    kind : {"multiclass", "multilabel"}
    target : LabelSpace, optional
        The union of the models' labels if not given.
    kernel : see `fuse_tables`
    weights : see `fuse_tables`
    aliases, fold
        How labels are matched by name; see `LabelSpace.match`.
    options : Options
    """

    def __init__(
        self,
        models: Sequence[tuple[str, LabelSpace]],
        kind: Kind,
        *,
        target: LabelSpace | None = None,
        kernel: Any = None,
        weights: Any = None,
        aliases: Mapping[str, str] | None = None,
        fold: bool = False,
        options: Options = Options(),
    ) -> None:
        if not models:
            fail("there must be at least one model; got none.")
        names = [name for name, _ in models]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            fail(
                f"models must have different names; got {enumerate_names(twice)} more than once.",
                hint="name them: a dict {name: table}, or NAME=FILE on the command line",
            )
        self.kind = kind
        self.options = options
        spaces = [labels for _, labels in models]
        self.target = target or _merge(spaces, aliases, fold=fold)
        matchings = [space.match(self.target, aliases=aliases, fold=fold) for space in spaces]
        kernels = _read_kernels(kernel, models, self.target, matchings)
        self.members = [
            Member(name, space, matching, found)
            for (name, space), matching, found in zip(models, matchings, kernels, strict=True)
        ]
        self.weights = self._read_weights(weights)
        self.label_weights = self._label_weights()
        self.mass: MassRule = options.mass if options.mass is not None else self._usual_mass()
        self._check_options()

    def _read_weights(self, weights: Any) -> np.ndarray:
        names = [member.model for member in self.members]
        if isinstance(weights, Mapping):
            strange = [name for name in weights if name not in names]
            left_out = [name for name in names if name not in weights]
            if strange or left_out:
                fail(
                    f"`weights` must name each of {enumerate_names(names)}; got"
                    f" {enumerate_names(strange or weights)}."
                )
            weights = [weights[name] for name in names]
        found = check_weights(weights, len(names), len(self.target), like=np.empty(0))
        return np.asarray(detached(found))

    def with_weights(self, weights: Any) -> FusionPlan:
        """The same plan with other weights; labels are not matched again."""
        other = copy(self)
        other.weights = other._read_weights(weights)
        other.label_weights = other._label_weights()
        return other

    @property
    def is_label_aware(self) -> bool:
        """Whether weights differ by label, because models do not declare the same labels."""
        return self.label_weights.ndim == 2

    def _label_weights(self) -> np.ndarray:
        """Weights with each model's share where it declares a label, less where it does not."""
        if self.weights.ndim == 2 or self.options.leftover == 1:
            return self.weights
        declared = np.array([member.matching.declared for member in self.members])
        reached = np.array([member.reached for member in self.members])
        share = np.where(declared, 1.0, np.where(reached, self.options.leftover, 0.0))
        if (share == share[0]).all():
            return self.weights
        return _normalized(self.weights[:, None] * share, self.weights)

    def _usual_mass(self) -> MassRule:
        """Balanced for histograms over the same labels, else the paper's unbalanced setting."""
        is_plain = self.kind == "multiclass" and not self.is_label_aware
        return Balanced() if is_plain else _UNBALANCED

    def _check_options(self) -> None:
        if self.options.rule is not solve_barycenter:
            for name in ("mass", "max_iterations", "tolerance", "debias", "n_top"):
                if getattr(self.options, name) != getattr(Options, name):
                    fail(f"`{name}` must go with the barycenter; got it with a mean.")
            return
        if not isinstance(self.mass, Balanced):
            return
        if self.kind == "multilabel":
            fail(
                "multi-label scores have no mass in common; got mass=Balanced().",
                hint='mass=Unbalanced(mass_penalty, epsilon=...), or kind="multiclass"',
            )
        if self.options.unobserved == "drop":
            fail(
                'unobserved="drop" leaves histograms of less mass than 1; got mass=Balanced().',
                hint='mass=Unbalanced(mass_penalty, epsilon=...), or unobserved="spread"',
            )

    # -- fusing ----------------------------------------------------------------------

    def fuse(self, predictions: Sequence[Predictions]) -> Chunk:
        """Fuse predictions on the same samples in the same order, one per member."""
        ready = self.prepare(predictions)
        answered = ready.answered
        n_samples = answered.shape[1]
        dtype = np.result_type(np.float32, *(scores.dtype for scores in ready.scores))
        found = np.full((n_samples, len(self.target)), np.nan, dtype=dtype)
        statuses = np.full(n_samples, NO_ANSWER, dtype=np.int8)
        for voting, rows in _patterns(answered):
            found[rows], statuses[rows] = self._fuse_rows(ready.scores, voting, rows)
        mass = found.sum(axis=1, dtype=np.float64)
        if self.kind == "multiclass":
            found /= np.where(mass > 0, mass, 1)[:, None].astype(dtype)
        return Chunk(found, statuses, answered, mass, ready.lost_mass)

    def solve_sample(self, predictions: Sequence[Predictions], row: int) -> Solved:
        """The whole result for one sample, with its couplings."""
        ready = self.prepare([p.take(slice(row, row + 1)) for p in predictions])
        voting = np.flatnonzero(ready.answered[:, 0])
        if not len(voting):
            fail(f"some model must have answered; got none at {predictions[0].samples[row]!r}.")
        problem = self._problem(ready.scores, voting, np.array([0]))
        return Solved(solve(problem), voting)

    def solve_all(self, predictions: Sequence[Predictions]) -> list[tuple[Any, Solved]]:
        """Results with their scalings, for each group of samples that the same models answered."""
        ready = self.prepare(predictions)
        return [
            (rows, Solved(solve(self._problem(ready.scores, voting, rows)), voting))
            for voting, rows in _patterns(ready.answered)
        ]

    def prepare(self, predictions: Sequence[Predictions]) -> Ready:
        """Scores without gaps, and who answered which sample."""
        options = self.options
        scores, answered, lost_mass = [], [], []
        for member, given in zip(self.members, predictions, strict=True):
            if given.labels != member.labels:
                fail(
                    f"the labels of {member.model!r} must be those of the plan,"
                    f" {enumerate_names(member.labels)}; got {enumerate_names(given.labels)}."
                )
            told = given._with(kind=self.kind)
            rows = complete_scores(
                told, options.unobserved, hard_confidence=options.hard_confidence
            )
            said = told.answered
            lost = member.lost
            lost_mass.append(float(rows[:, lost].sum()))
            if lost.any():
                rows = np.where(lost, 0, rows)
                if self.kind == "multiclass":  # what is left of a histogram is the whole of it
                    sums = rows.sum(axis=1, keepdims=True)
                    said &= sums[:, 0] > 0
                    rows = rows / np.where(sums > 0, sums, 1)
            scores.append(rows)
            answered.append(said)
        return Ready(scores, np.array(answered), np.array(lost_mass))

    def _fuse_rows(
        self, scores: list[np.ndarray], voting: np.ndarray, rows: Any
    ) -> tuple[np.ndarray, np.ndarray | int]:
        """Consensus of the samples ``rows``, which the models ``voting`` answered."""
        if self.options.rule is solve_barycenter:
            problem = self._problem(scores, voting, rows)
            result = solve(problem, n_threads=self.options.n_threads, keep_scalings=False)
            return result.barycenters, result.statuses
        images = [self.carry(self.members[model], scores[model][rows], rows) for model in voting]
        mean = self.options.rule(images, weights=self._weights_of(voting))
        return mean, int(Status.CONVERGED)

    def carry(self, member: Member, scores: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
        """A model's scores carried to the target labels by its kernel alone."""
        kernel = member.kernel.take(rows)
        if self.kind == "multiclass":  # K^T (mu / K 1) keeps the mass
            sums = np.asarray(kernel.row_sums)
            scores = np.divide(scores, sums, out=np.zeros_like(scores), where=sums > 0)
        return np.asarray(kernel.apply_transpose(scores))

    def _problem(
        self, scores: list[np.ndarray], voting: np.ndarray, rows: Any
    ) -> BarycenterProblem:
        options = self.options
        return BarycenterProblem(
            [scores[model][rows] for model in voting],
            [self.members[model].kernel.take(rows) for model in voting],
            weights=self._weights_of(voting),
            mass=self.mass,
            max_iterations=options.max_iterations,
            tolerance=options.tolerance,
            debias=options.debias,
            normalize=isinstance(self.mass, Balanced),  # float32 sums are off by rounding
            n_top=options.n_top,
        )

    def _weights_of(self, voting: np.ndarray) -> np.ndarray:
        weights = self.label_weights[voting]
        base = self.weights[voting] if self.weights.ndim == 1 else np.ones(len(voting))
        if not base.any():
            base = np.ones(len(voting))
        if weights.ndim == 1:
            return base / base.sum()
        return _normalized(weights, base / base.sum())


@dataclass(frozen=True)
class Solved:
    """A result of the models that answered."""

    result: BarycenterResult
    voting: np.ndarray  # their places in the plan


@dataclass(frozen=True)
class Ready:
    """Predictions as they are fused: no gaps, and no mass on labels that lead nowhere."""

    scores: list[np.ndarray]  # one per model, (n_samples, n_labels)
    answered: np.ndarray  # (n_models, n_samples)
    lost_mass: np.ndarray  # (n_models,)


def _normalized(weights: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Columns divided by their sums; ``otherwise`` where nobody has a say."""
    sums = weights.sum(axis=0)
    silent = sums <= 0
    weights = np.where(silent, otherwise[:, None], weights)
    return weights / np.where(silent, otherwise.sum(), sums)


def _patterns(answered: np.ndarray) -> list[tuple[np.ndarray, Any]]:
    """Samples grouped by who answered them: (models, rows); samples without answer left out."""
    if answered.all():  # no copies of anything
        return [(np.arange(len(answered)), slice(None))] if answered.size else []
    # Each group of answers as bytes, which sort faster than columns.
    codes = np.ascontiguousarray(np.packbits(answered, axis=0).T)
    keys = codes.view([("", codes.dtype)] * codes.shape[1]).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return [
        (np.flatnonzero(answered[:, sample]), np.flatnonzero(which == k))
        for k, sample in enumerate(first)
        if answered[:, sample].any()
    ]


def _merge(
    spaces: Sequence[LabelSpace], aliases: Mapping[str, str] | None, *, fold: bool
) -> LabelSpace:
    """Every label once: names that match a label seen before are that label."""
    aliases = {} if aliases is None else aliases
    # The names that aliases lead to are labels of their own, whoever comes first.
    merged = LabelSpace.union(*([aliases.get(name, name) for name in space] for space in spaces))
    if not fold:
        return merged
    first: dict[str, str] = {}
    for name in merged:
        first.setdefault(fold_name(name), name)
    return LabelSpace(first.values())


def _read_kernels(
    kernel: Any,
    models: Sequence[tuple[str, LabelSpace]],
    target: LabelSpace,
    matchings: Sequence[Matching],
) -> list[Kernel]:
    """One kernel per model; models with the same labels share one where they can."""
    if isinstance(kernel, Mapping):
        names = [name for name, _ in models]
        if set(kernel) != set(names):
            strange = [name for name in kernel if name not in names]
            left_out = [name for name in names if name not in kernel]
            fail(
                f"`kernel` must hold one kernel for each of {enumerate_names(names)}; got"
                f" {enumerate_names(strange) + ' besides' if strange else ''}"
                f"{'none for ' + enumerate_names(left_out) if left_out else ''}."
            )
        each = [kernel[name] for name in names]
    elif isinstance(kernel, list | tuple) and all(
        isinstance(k, Kernel | LabelledKernel) for k in kernel
    ):
        each = list(kernel)
        if len(each) != len(models):
            fail(f"`kernel` must be one for all or one per model, {len(models)}; got {len(each)}.")
    else:
        each = [kernel] * len(models)
    shared: dict[tuple[int, LabelSpace], Kernel] = {}
    found = []
    for (name, labels), given, matching in zip(models, each, matchings, strict=True):
        key = (id(given), labels)
        if key not in shared:
            shared[key] = _read_kernel(given, name, labels, target, matching)
        found.append(shared[key])
    return found


def _read_kernel(
    given: Any, model: str, labels: LabelSpace, target: LabelSpace, matching: Matching
) -> Kernel:
    if given is None:
        aliases = dict((*matching.aliased, *matching.folded))
        return kernel_from_names(labels, target, aliases=aliases).kernel
    if callable(given) and not isinstance(given, Kernel):
        given = given(labels, target)
    if isinstance(given, LabelledKernel):
        return given.align(labels, target)
    found = as_kernel(given)
    if found.shape != (len(labels), len(target)):
        fail(
            f"the kernel of {model!r} must go from its {len(labels)} labels to the"
            f" {len(target)} target labels; got shape {found.shape}.",
            hint="a LabelledKernel brings its names and is put in order by them",
        )
    return found
