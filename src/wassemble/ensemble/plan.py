"""How models with names are fused: a plan is made once, and fuses any number of chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._arrays import detached, is_frame, is_series
from wassemble._checks import check_count, check_tolerance, fail
from wassemble.ensemble.completion import RULES, Unobserved, complete_scores
from wassemble.ensemble.histograms import to_histograms
from wassemble.ensemble.members import (
    Member,
    find_kernel_target,
    make_members,
    merge_labels,
    read_other,
)
from wassemble.inputs import Aliases, Kind, Predictions
from wassemble.inputs.named_tables import read_named_table
from wassemble.labels import LabelSpace, enumerate_names
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
from wassemble.solvers.weights import check_weights

__all__ = [
    "NO_ANSWER",
    "USUAL_MASS",
    "Chunk",
    "FusionPlan",
    "Options",
    "Ready",
    "Solved",
    "check_rule",
]

# Status of a sample about which no model said anything.
NO_ANSWER = -1

# The paper's own setting (6.1). Algorithm 1 takes a geometric mean wherever labels do not mix: a
# single 0 of one model rules a label out, and models that are sure of different labels leave
# nothing. Algorithm 2 never does.
USUAL_MASS = Unbalanced(2.0, epsilon=0.3)


@dataclass(frozen=True)
class Options:
    """How to fuse; see `fuse_tables`."""

    mass: MassRule | None = None
    rule: Callable[..., Any] = solve_barycenter
    leftover: float = 0.05
    unobserved: Unobserved = "spread"
    hard_confidence: float = 0.9
    max_sweeps: int = 1000
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
        check_rule(self.rule)
        check_count(self.max_sweeps, "max_sweeps")
        check_tolerance(self.tolerance)


def check_rule(rule: Any) -> None:
    """Refuse a rule that is no function, such as its name."""
    if not callable(rule):
        fail(
            f"`rule` must be a function of predictions and weights; got {rule!r}.",
            hint="arithmetic_mean, geometric_mean and hellinger_mean of wassemble are such:"
            " rule=ws.arithmetic_mean",
        )


@dataclass
class Chunk:
    """Some samples, fused."""

    scores: np.ndarray  # (n_samples, n_target)
    statuses: np.ndarray  # (n_samples,), of Status, or NO_ANSWER
    answered: np.ndarray  # (n_models, n_samples)
    mass: np.ndarray  # (n_samples,), of the consensus before it was divided by it
    lost_mass: np.ndarray  # (n_models,), summed over samples: mass without a target label


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
    aliases, fold, other
        What labels stand for; see `fuse_tables`.
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
        aliases: Any = None,
        fold: bool = False,
        other: str | Mapping[str, str] | None = None,
        options: Options = Options(),
    ) -> None:
        if not models:
            fail("there must be at least one model; got none.")
        names = [name for name, _ in models]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            fail(
                f"models must have different names; got {enumerate_names(twice)} more than once.",
                hint="name them: {name: table}",
            )
        self.kind = kind
        self.options = options
        self.aliases = Aliases.of(aliases)
        self.aliases.check_models(dict(models))
        others = read_other(other, models)
        merged = target or merge_labels(models, self.aliases, others, fold=fold)
        # Kernels that lead elsewhere say by it what the consensus is over.
        self.target = merged if target else find_kernel_target(kernel, models, merged)
        self.members = make_members(
            models, self.target, kernel, aliases=self.aliases, others=others, fold=fold
        )
        self.weights = self._read_weights(weights)
        self.label_weights = self._label_weights()
        self.mass: MassRule = options.mass if options.mass is not None else self._usual_mass()
        self._check_options()

    def _read_weights(self, weights: Any) -> np.ndarray:
        names = [member.model for member in self.members]
        if is_frame(weights):
            table = read_named_table(weights, "weights")
            weights = table.ordered(names, self.target, titles=("model", "target label"))
        if is_series(weights) or isinstance(weights, Mapping):
            weights = {str(name): weight for name, weight in weights.items()}
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
        declared = np.array([member.declared for member in self.members])
        reached = np.array([member.reached for member in self.members])
        share = np.where(declared, 1.0, np.where(reached, self.options.leftover, 0.0))
        if (share == share[0]).all():
            return self.weights
        return _normalized(self.weights[:, None] * share, self.weights)

    def _usual_mass(self) -> MassRule:
        """The paper's unbalanced setting, in which no model rules a label out by itself."""
        return Balanced() if self.options.debias else USUAL_MASS

    def _check_options(self) -> None:
        if self.options.rule is not solve_barycenter:
            for name in ("mass", "max_sweeps", "tolerance", "debias", "n_top"):
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
        for voting, rows in _patterns(ready.votes):
            scores, statuses[rows] = self._fuse_rows(ready, voting, rows)
            if self.weights.ndim == 2:  # labels on which nobody who answered has a say
                scores = np.where((self.weights[voting] > 0).any(axis=0), scores, 0)
            found[rows] = scores
        mass = found.sum(axis=1, dtype=np.float64)
        if self.kind == "multiclass":
            is_mean = self.options.rule is not solve_barycenter
            to_histograms(found, None if is_mean else self.mass, out=found)
        return Chunk(found, statuses, answered, mass, ready.lost_mass)

    def solve_sample(self, predictions: Sequence[Predictions], row: int) -> Solved:
        """The whole result for one sample, with its couplings."""
        ready = self.prepare([p.take(slice(row, row + 1)) for p in predictions])
        voting = np.flatnonzero(ready.votes[:, 0])
        if not len(voting):
            fail(f"some model must have answered; got none at {predictions[0].samples[row]!r}.")
        problem = self._problem(ready, voting, np.array([0]))
        return Solved(solve(problem), voting)

    def solve_all(self, predictions: Sequence[Predictions]) -> list[tuple[Any, Solved]]:
        """Results with their scalings, for each group of samples that the same models answered."""
        ready = self.prepare(predictions)
        return [
            (rows, Solved(solve(self._problem(ready, voting, rows)), voting))
            for voting, rows in _patterns(ready.votes)
        ]

    def prepare(self, predictions: Sequence[Predictions]) -> Ready:
        """Scores without gaps, who answered which sample, and with how much of its say."""
        options = self.options
        scores, answered, say, lost_mass = [], [], [], []
        for member, given, weight in zip(self.members, predictions, self.weights, strict=True):
            if given.labels != member.labels:
                fail(
                    f"the labels of {member.model!r} must be those of the plan,"
                    f" {enumerate_names(member.labels)}; got {enumerate_names(given.labels)}."
                )
            told = given._with(kind=self.kind)
            rows = complete_scores(
                told, options.unobserved, hard_confidence=options.hard_confidence
            )
            rows = member.merge(rows, self.kind)
            said, share = told.answered, np.ones(len(rows))
            lost = member.lost
            gone = rows[:, lost].sum(axis=1, dtype=np.float64)
            if gone.any():
                total = rows.sum(axis=1, dtype=np.float64)
                rows = np.where(lost, 0, rows)
                if self.kind == "multiclass":
                    # "None of these, or I do not know": as much less of a say, and no more mass
                    # on the labels that are left than the model gave them.
                    share -= np.divide(gone, total, out=np.zeros_like(gone), where=total > 0)
                    share[~rows.any(axis=1)] = 0
            if not weight.any():
                share[:] = 0  # a model of weight 0 takes no part, also where it is alone
            scores.append(rows)
            answered.append(said)
            say.append(share)
            lost_mass.append(float(gone[told.answered].sum()))
        return Ready(scores, np.array(answered), np.array(say), np.array(lost_mass))

    def _fuse_rows(
        self, ready: Ready, voting: np.ndarray, rows: Any
    ) -> tuple[np.ndarray, np.ndarray | int]:
        """Consensus of the samples ``rows``, which the models ``voting`` answered."""
        if self.options.rule is solve_barycenter:
            problem = self._problem(ready, voting, rows)
            result = solve(problem, n_threads=self.options.n_threads, keep_scalings=False)
            return result.barycenters, result.statuses
        images = [self.carry(self.members[m], ready.scores[m][rows], rows) for m in voting]
        mean = self.options.rule(images, weights=self.weights_of(voting, ready.say[:, rows]))
        is_empty = ~mean.any(axis=1)
        if is_empty.any():  # models that are sure of different labels, or that all say "none"
            is_empty &= np.any([image.any(axis=1) for image in images], axis=0)
        return mean, np.where(is_empty, Status.NO_MASS, Status.CONVERGED)

    def carry(self, member: Member, scores: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
        """A model's scores carried to the target labels by its kernel alone."""
        kernel = member.kernel.take(rows)
        if self.kind == "multiclass":  # K^T (mu / K 1) keeps the mass
            sums = np.asarray(kernel.row_sums)
            scores = np.divide(scores, sums, out=np.zeros_like(scores), where=sums > 0)
        return np.asarray(kernel.apply_transpose(scores))

    def _problem(self, ready: Ready, voting: np.ndarray, rows: Any) -> BarycenterProblem:
        options = self.options
        return BarycenterProblem(
            [ready.scores[model][rows] for model in voting],
            [self.members[model].kernel.take(rows) for model in voting],
            Barycenter(
                self.mass,
                max_sweeps=options.max_sweeps,
                tolerance=options.tolerance,
                debias=options.debias,
                n_top=options.n_top,
            ),
            weights=self.weights_of(voting, ready.say[:, rows]),
            normalize=isinstance(self.mass, Balanced),  # float32 sums are off by rounding
        )

    def weights_of(self, voting: np.ndarray, say: np.ndarray | None = None) -> np.ndarray:
        """Weights of the models ``voting``, on the simplex.

        With ``say``, ``(n_models, n_samples)`` of all models: per sample where a model has less
        than all of its say.
        """
        weights = self.label_weights[voting]
        base = self.weights[voting] if self.weights.ndim == 1 else np.ones(len(voting))
        base = base / base.sum()
        if say is not None and (say[voting] < 1).any():
            if weights.ndim == 1:
                weights = base[:, None]
            return _normalized(weights[:, None, :] * say[voting][:, :, None], base)
        return base if weights.ndim == 1 else _normalized(weights, base)


@dataclass(frozen=True)
class Solved:
    """A result of the models that answered."""

    result: BarycenterResult
    voting: np.ndarray  # their places in the plan


@dataclass(frozen=True)
class Ready:
    """Predictions as they are fused: no gaps, and no mass on labels that lead nowhere."""

    scores: list[np.ndarray]  # one per model, (n_samples, n_labels as they are fused)
    answered: np.ndarray  # (n_models, n_samples)
    say: np.ndarray  # (n_models, n_samples): share of mass on labels that lead somewhere
    lost_mass: np.ndarray  # (n_models,)

    @property
    def votes(self) -> np.ndarray:
        """Answers that say something about target labels, ``(n_models, n_samples)``."""
        return self.answered & (self.say > 0)


def _normalized(weights: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Weights over models, the first axis, divided by their sums; ``otherwise`` if nobody votes."""
    sums = weights.sum(axis=0)
    silent = sums <= 0
    otherwise = otherwise.reshape(-1, *[1] * (weights.ndim - 1))
    weights = np.where(silent, otherwise, weights)
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
