"""How models with names are fused: a plan is made once, and fuses any number of chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wassemble._arrays import detached, is_series, log_of, log_quotient
from wassemble._checks import as_float_array, fail, option, option_or
from wassemble.ensemble.completion import complete_scores
from wassemble.ensemble.members import Member, make_members
from wassemble.errors import tell_count
from wassemble.inputs import Kind, Predictions
from wassemble.inputs.formats.named_tables import NamedTable
from wassemble.inputs.predictions.aliases import merge_scores
from wassemble.inputs.predictions.value import SUM_SLACK
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.solvers import (
    ARITHMETIC,
    BarycenterProblem,
    BarycenterResult,
    Fuser,
    Holds,
    Rule,
    Single,
)
from wassemble.solvers.barycenter import solve
from wassemble.solvers.mass import say_unbalanced
from wassemble.solvers.stacked import Sight
from wassemble.solvers.weights import check_weights, with_three_axes

if TYPE_CHECKING:
    from wassemble.ensemble.fusion import Fusion


# Status of a sample about which no model said anything.
NO_ANSWER = -1


@dataclass
class Chunk:
    """Some samples, fused."""

    scores: np.ndarray  # (n_samples, n_target)
    statuses: np.ndarray  # (n_samples,), of Status, or NO_ANSWER
    mass: np.ndarray  # (n_samples,), of the consensus before it was divided by it
    ready: Ready  # what was fused


class FusionPlan:
    """A fusion for certain models: labels matched, kernels in place, weights on the simplex.

    `Fusion.plan` makes it.
    """

    def __init__(
        self, fusion: Fusion, models: Sequence[tuple[str, LabelSpace]], kind: Kind
    ) -> None:
        if not models:
            fail("there must be at least one model; got none.")
        names = [name for name, _ in models]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            fail(
                f"models must have different names; got more than once: {enumerate_names(twice)}.",
                hint="name them: {name: table}",
            )
        self.kind = kind
        self.aliases, self.fold = fusion.aliases, fusion.fold
        self.target, self.members = make_members(fusion, models)
        self._read(fusion)

    def _read(self, fusion: Fusion) -> None:
        """What the fusion says, but for its kernel: those of the members are all that is used."""
        self.rule = fusion.rule.on_line(self.target.positions)
        self.placed_rule = self.rule.among_voters()
        self.leftover = fusion.leftover
        self.unobserved = fusion.unobserved
        self.hard_confidence = fusion.hard_confidence
        self._weigh(fusion.weights)
        self._check_rule()

    def adapt(self, fusion: Fusion) -> FusionPlan:
        """The plan of a fusion that differs in nothing by which labels are matched."""
        other = copy(self)
        other._read(fusion)
        return other

    def _weigh(self, weights: Any) -> None:
        self.weights = self._read_weights(weights)
        self.label_weights = self._label_weights()
        # Whether weights differ by label, because models do not declare the same labels.
        self.is_label_aware = self.label_weights.ndim == 2

    def _read_weights(self, weights: Any) -> np.ndarray:
        names = [member.model for member in self.members]
        only = self.rule.find_model(names)
        if only is not None:
            self.rule = self.rule.named(names)
            return np.eye(len(names))[only]
        if isinstance(weights, NamedTable):
            weights = weights.ordered(names, self.target, titles=("model", "target label"))
        if weights is not None and (is_series(weights) or isinstance(weights, Mapping)):
            weights = {str(name): weight for name, weight in weights.items()}
            strange = [name for name in weights if name not in names]
            left_out = [name for name in names if name not in weights]
            if strange or left_out:
                fail(
                    f"{option('weights')} must name each of {enumerate_names(names)}; got"
                    f" {enumerate_names(strange or weights)}."
                )
            weights = [weights[name] for name in names]
        shape = len(names), len(self.target)
        return np.asarray(detached(check_weights(weights, *shape, place=self._place_weight)))

    def _place_weight(self, model: int, label: int | None = None) -> str:
        words = repr(self.members[model].model)
        return words if label is None else f"{words}, target label {self.target[label]!r}"

    def with_weights(self, weights: Any) -> FusionPlan:
        """The same plan with other weights; labels are not matched again."""
        other = copy(self)
        other._weigh(weights)
        return other

    def with_rule(self, rule: Rule) -> FusionPlan:
        """The same plan by a rule that knows models by their places; weights stay as they are."""
        other = copy(self)
        other.rule = other.placed_rule = rule
        return other

    def _label_weights(self) -> np.ndarray:
        """Weights with each model's share where it declares a label, less where it does not."""
        if self.weights.ndim == 2 or self.leftover == 1 or not self.rule.weighs_labels:
            return self.weights
        declared = np.array([member.declared for member in self.members])
        reached = np.array([member.reached for member in self.members])
        share = np.where(declared, 1.0, np.where(reached, self.leftover, 0.0))
        if (share == share[0]).all():
            return self.weights
        return _normalized(self.weights[:, None] * share, self.weights)

    def _check_rule(self) -> None:
        if not self.rule.is_balanced:
            return
        if self.kind == "multilabel":
            fail(
                "multi-label scores have no mass in common; got"
                f" {option_or('mass=Balanced()', balanced=True)}.",
                hint=f"{say_unbalanced()}, or {option('kind', 'multiclass')}",
            )
        if self.unobserved == "drop":
            fail(
                f"{option('unobserved', 'drop')} leaves histograms of less mass than 1; got"
                f" {option_or('mass=Balanced()', balanced=True)}.",
                hint=f"{say_unbalanced()}, or {option('unobserved', 'spread')}",
            )

    def __repr__(self) -> str:
        models = enumerate_names([member.model for member in self.members])
        return f"FusionPlan({models} to {tell_count(len(self.target), 'target label')})"

    # -- fusing ----------------------------------------------------------------------

    def fuse(self, predictions: Sequence[Predictions], *, n_threads: int | None = None) -> Chunk:
        """Fuse predictions on the same samples in the same order, one per member."""
        return self.fuse_ready(self.prepare(predictions), n_threads=n_threads)

    def fuse_ready(self, ready: Ready, *, n_threads: int | None = None) -> Chunk:
        """Fuse what `prepare` made."""
        fused, statuses = self._fuse_groups(ready, n_threads)
        mass = fused.sum(axis=1, dtype=np.float64)
        if self.kind == "multiclass":
            self.rule.to_histograms(fused, out=fused)
        return Chunk(fused, statuses, mass, ready)

    def _fuse_groups(self, ready: Ready, n_threads: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Scores as the rule gives them, and how samples ended."""
        n_samples = ready.answered.shape[1]
        dtype = np.result_type(np.float32, *(scores.dtype for scores in ready.scores))
        fused = np.full((n_samples, len(self.target)), np.nan, dtype=dtype)
        statuses = np.full(n_samples, NO_ANSWER, dtype=np.int8)
        for voting, rows in self._groups(ready.votes):
            scores, statuses[rows] = self._fuse_rows(ready, voting, rows, n_threads)
            if self.weights.ndim == 2:  # labels on which nobody who answered has a say
                scores = np.where((self.weights[voting] > 0).any(axis=0), scores, 0)
            fused[rows] = scores
        return fused, statuses

    def _groups(self, votes: np.ndarray) -> list[tuple[np.ndarray, Any]]:
        """Samples with the models that fuse them: all, for a rule that is told who is absent."""
        if not self.rule.keeps_absent:
            return group_by_voters(votes)
        rows = np.flatnonzero(votes.any(axis=0))
        return [(np.arange(len(votes)), rows)] if len(rows) else []

    def solve_sample(self, predictions: Sequence[Predictions], row: int) -> Solved:
        """The whole result for one sample, with its couplings."""
        ready, voting = self._vote(predictions, row)
        return Solved(solve(self._problem(ready, voting, np.array([0]))), voting)

    def _vote(self, predictions: Sequence[Predictions], row: int) -> tuple[Ready, np.ndarray]:
        """One sample, and the models that have a say on it."""
        ready = self.prepare([p.take(slice(row, row + 1)) for p in predictions])
        voting = np.flatnonzero(ready.votes[:, 0])
        if not len(voting):
            fail(f"some model must have answered; got none at {predictions[0].samples[row]!r}.")
        return ready, voting

    def carry_sample(
        self, predictions: Sequence[Predictions], row: int, place: int
    ) -> list[Carried]:
        """What a rule that transports nothing mixes to one target label of one sample."""
        ready, voting = self._vote(predictions, row)
        (scores, kernels), how = self._pick(ready, voting, np.array([0]))
        weights = with_three_axes(np.asarray(how["weights"]))[:, 0]
        one_hot = np.where(np.arange(len(self.target)) == place, 0.0, -np.inf)
        carried = []
        for model, given, kernel, weight in zip(voting, scores, kernels, weights, strict=True):
            log_parts = log_of(given[0].astype(np.float64)) + np.ravel(kernel.log_apply(one_hot))
            if self.kind == "multiclass":  # K^T (mu / K 1)
                log_parts = log_quotient(log_parts, np.ravel(kernel.log_row_sums))
            own = float(weight[place if len(weight) > 1 else 0])
            carried.append(Carried(int(model), own, given[0], np.exp(log_parts)))
        return carried

    def look_at(self, predictions: Sequence[Predictions], row: int) -> Sight:
        """One sample as a stacked rule sees it, with every model in its place."""
        ready, _ = self._vote(predictions, row)
        given, how = self._pick(ready, np.arange(len(self.members)), slice(None))
        return Sight.of(self.rule.pose(*given, **how, holds=self.holds), 0, 1)

    def solve_all(self, predictions: Sequence[Predictions]) -> list[tuple[Any, Solved]]:
        """Results with their scalings, for each group of samples that the same models answered."""
        ready = self.prepare(predictions)
        return [
            (rows, Solved(solve(self._problem(ready, voting, rows)), voting))
            for voting, rows in group_by_voters(ready.votes)
        ]

    def prepare(self, predictions: Sequence[Predictions]) -> Ready:
        """Scores without gaps, who answered which sample, and with how much of its say.

        A model of weight 0 takes no part, also where it is alone.
        """
        return self.silence(self.complete(predictions))

    def silence(self, ready: Ready) -> Ready:
        """The same without any say of models of weight 0."""
        without: np.ndarray = self.weights.reshape(len(self.members), -1).sum(axis=1) == 0
        if not without.any():
            return ready
        return replace(ready, say=np.where(without[:, None], 0, ready.say))

    def complete(self, predictions: Sequence[Predictions]) -> Ready:
        """The same, whatever the weights."""
        scores, answered, say, lost_mass = [], [], [], []
        for member, given in zip(self.members, predictions, strict=True):
            if given.labels != member.labels:
                fail(
                    f"the labels of {member.model!r} must be those of the plan,"
                    f" {enumerate_names(member.labels)}; got {enumerate_names(given.labels)}."
                )
            told = given if given.kind == self.kind else given.replace(kind=self.kind)
            said = told.answered
            rows = complete_scores(
                told, self.unobserved, hard_confidence=self.hard_confidence, answered=said
            )
            if member.groups is not None:
                rows = merge_scores(rows, member.groups, self.kind)
            share = np.ones(len(rows))
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
            scores.append(rows)
            answered.append(said)
            say.append(share)
            lost_mass.append(float(gone[said].sum()))
        return Ready(scores, np.array(answered), np.array(say), np.array(lost_mass))

    def _fuse_rows(
        self, ready: Ready, voting: np.ndarray, rows: Any, n_threads: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Consensus of the samples ``rows``, which the models ``voting`` answered."""
        given, how = self._pick(ready, voting, rows)
        fused = self.placed_rule.fuse(*given, **how, holds=self.holds, n_threads=n_threads)
        return fused.scores, fused.statuses

    def _pick(self, ready: Ready, voting: np.ndarray, rows: Any) -> tuple[Any, dict[str, Any]]:
        """Predictions and kernels of some models on some samples, and how the rule takes them."""
        kernels = [self.members[model].kernel for model in voting]
        if not isinstance(rows, slice):  # or they are all there are
            kernels = [kernel.take(rows) for kernel in kernels]
        how = {
            "weights": self.weights_of(voting, np.where(ready.votes, ready.say, 0)[:, rows]),
            "normalize": self.rule.is_balanced,  # float32 sums are off by rounding
        }
        return ([ready.scores[model][rows] for model in voting], kernels), how

    @property
    def holds(self) -> Holds:
        """What rows are: histograms, of which some mass may be missing, or scores."""
        return "partial" if self.kind == "multiclass" else "scores"

    def carry(self, member: Member, scores: np.ndarray) -> np.ndarray:
        """A model's scores carried to the target labels by its kernel alone."""
        return np.asarray(Single(0).fuse([scores], [member.kernel], holds=self.holds).scores)

    def take_mean(self, ready: Ready) -> np.ndarray:
        """Scores by the arithmetic mean, whatever their mass; nan where no model answered."""
        return self.with_rule(ARITHMETIC)._fuse_groups(ready, None)[0]

    def _problem(self, ready: Ready, voting: np.ndarray, rows: Any) -> BarycenterProblem:
        if not self.rule.transports:
            moves = option_or("`Fusion(Barycenter(...))`", rule="barycenter")
            fail(
                "how far models are from a consensus is what it costs to move their mass onto it;"
                f" got a fusion by {self.rule}, which moves none.",
                hint=f"{option_or('`explain(result, sample)`', sample=...)} explains a sample by"
                f" any rule; {moves} moves mass",
            )
        given, how = self._pick(ready, voting, rows)
        problem: BarycenterProblem = self.rule.pose(*given, **how)
        return problem

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
class Carried:
    """What a model brings to one target label of one sample."""

    model: int  # its place in the plan
    weight: float
    scores: np.ndarray  # (n_source,), as they are fused
    parts: np.ndarray  # (n_source,): what of each arrives there


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

    def take(self, rows: Any) -> Ready:
        """Some of the samples; what was lost is that of all."""
        scores = [each[rows] for each in self.scores]
        return Ready(scores, self.answered[:, rows], self.say[:, rows], self.lost_mass)


def _normalized(weights: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Weights over models, the first axis, divided by their sums; ``otherwise`` if nobody votes."""
    sums = weights.sum(axis=0)
    silent = sums <= 0
    otherwise = otherwise.reshape(-1, *[1] * (weights.ndim - 1))
    weights = np.where(silent, otherwise, weights)
    return weights / np.where(silent, otherwise.sum(), sums)


def group_by_voters(answered: np.ndarray) -> list[tuple[np.ndarray, Any]]:
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


class TableFuser:
    """Fuses rows of the models of a plan, without matching or checking names again.

    `Fusion.prepare` makes it.
    """

    def __init__(self, plan: FusionPlan) -> None:
        self.plan = plan
        self._models = [member.model for member in plan.members]
        # Rows of models whose labels all lead somewhere, each by itself, go straight to the rule.
        self._is_straight = bool((plan.weights > 0).all()) and all(
            member.groups is None and member.kernel.n_samples is None and not member.lost.any()
            for member in plan.members
        )
        self._fusers: dict[np.dtype, Fuser] = {}

    def __repr__(self) -> str:
        return f"TableFuser({self.plan!r})"

    def _fuser(self, dtype: np.dtype) -> Fuser:
        if dtype not in self._fusers:
            plan = self.plan
            self._fusers[dtype] = plan.placed_rule.prepare(
                [member.kernel for member in plan.members],
                plan.weights_of(np.arange(len(plan.members))),
                dtype=dtype,
                holds=plan.holds,
            )
        return self._fusers[dtype]

    def __call__(self, scores: Any) -> np.ndarray:
        """The consensus of some rows, ``(n_samples, n_target)`` or ``(n_target,)``.

        Parameters
        ----------
        scores : dict of model name to array, or one array per model
            Of shape (n_samples, n_labels), or (n_labels,) for one sample; in the order of the
            labels that the models had when this was made. nan where nothing was reported.
        """
        each = [as_float_array(given, f"scores of {model}") for model, given in self._named(scores)]
        is_one = all(given.ndim == 1 for given in each)
        rows = [np.atleast_2d(given) for given in each]
        for member, given in zip(self.plan.members, rows, strict=True):
            if given.shape != (len(rows[0]), len(member.labels)):
                fail(
                    f"the scores of {member.model!r} must have shape (n_samples, n_labels) ="
                    f" {(len(rows[0]), len(member.labels))}; got {given.shape}."
                )
        consensus = self._fuse_rows(rows)
        return consensus[0] if is_one else consensus

    def _named(self, scores: Any) -> list[tuple[str, Any]]:
        if not isinstance(scores, Mapping):
            if len(scores) != len(self._models):
                fail(
                    f"there must be scores of each of {enumerate_names(self._models)}; got"
                    f" {len(scores)} arrays."
                )
            return list(zip(self._models, scores, strict=True))
        if set(scores) != set(self._models):
            fail(
                f"there must be scores of each of {enumerate_names(self._models)}; got those of"
                f" {enumerate_names(scores)}."
            )
        return [(model, scores[model]) for model in self._models]

    def _fuse_rows(self, rows: list[np.ndarray]) -> np.ndarray:
        plan = self.plan
        is_multiclass = plan.kind == "multiclass"
        if self._is_straight:
            sums = np.array([given.sum(axis=1, dtype=np.float64) for given in rows])
            # A nan, or a row that is no histogram, needs the longer way.
            if (np.abs(sums - 1) <= SUM_SLACK).all() if is_multiclass else np.isfinite(sums).all():
                if is_multiclass:
                    rows = [
                        (given / total[:, None]).astype(given.dtype, copy=False)
                        for given, total in zip(rows, sums, strict=True)
                    ]
                dtype = np.result_type(np.float32, *rows)
                consensus: np.ndarray = np.asarray(self._fuser(dtype)(rows))
                return (
                    np.asarray(plan.rule.to_histograms(consensus)) if is_multiclass else consensus
                )
        ids = np.arange(len(rows[0]))
        return plan.fuse(
            [
                Predictions(member.model, ids, member.labels, given, kind=plan.kind)
                for member, given in zip(plan.members, rows, strict=True)
            ]
        ).scores
