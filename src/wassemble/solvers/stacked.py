"""Stacked rules: fitted on samples whose truth is known, they know every model by its place.

`LogisticStacking` has a coefficient for each score of each model and each target label.
`StackedConsensus` has one for each way to look at the models, shared by all target labels. How
they are fitted is left to `ensemble.learning`.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, final

import numpy as np

from wassemble._arrays import Array, namespace
from wassemble._checks import Constraints, Number, OneOf, fail
from wassemble.kernels import DenseKernel
from wassemble.solvers.line import LineBarycenter
from wassemble.solvers.loop import Status
from wassemble.solvers.mass import Unbalanced
from wassemble.solvers.rules import Barycenter, Fused, Rule
from wassemble.solvers.tiles import run_tiles
from wassemble.solvers.unrolled import carry
from wassemble.solvers.weights import take_rows, with_three_axes

if TYPE_CHECKING:
    from wassemble.kernels import Kernel
    from wassemble.solvers.problem import FusionProblem

Task: TypeAlias = Literal["multiclass", "multilabel"]
"""One true label per sample, or any number of them."""

GROUPS = (
    "names", "votes", "mistakes", "rules", "transport", "offered", "order", "stacking",
    "frequencies",
)  # fmt: skip
"""What a stacked consensus can look at."""

# Scores below this are as good as none.
_LEAST = 1e-4
# Probabilities of stacking are kept away from 0: of a label that it never saw, it knows nothing.
_LEAST_STACKED = 1e-6
# Numbers of features that are looked at together.
_TILE = 4_000_000
# Share of its weight that a model keeps on labels that it does not declare, in means and
# barycenters through kernels.
_LEFTOVER = 0.05
_TINY = 1e-300
# Margin beyond which float64 holds a label to be certain.
_SURE = 700.0
_BARYCENTERS = (
    Barycenter(Unbalanced(0.5, epsilon=0.5), max_sweeps=3, tolerance=None),
    Barycenter(Unbalanced(0.9, epsilon=0.1), max_sweeps=5, tolerance=None),
)
_LINES = (LineBarycenter(1), LineBarycenter(2))


@final
class Parameters(Mapping[str, np.ndarray]):
    """Arrays that a rule was fitted to, as a value: they compare and hash by their numbers."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @cached_property
    def digest(self) -> str:
        """Of names, shapes and numbers."""
        digest = hashlib.sha256()
        for name, array in self._arrays.items():
            digest.update(repr((name, array.shape, array.dtype.str)).encode())
            digest.update(array.tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameters) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<{sum(array.size for array in self._arrays.values()):,} parameters>"


class StackedRule(Rule):
    """A rule that is fitted: it takes the models that it was fitted on, in their order.

    A model that did not answer a sample has weight 0 there.
    """

    keeps_absent: ClassVar[bool] = True

    task: Task
    parameters: Parameters | None

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        return {} if self.parameters is None else self.parameters

    def with_parameters(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """The rule, fitted."""
        return replace(self, parameters=Parameters(arrays))  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        digest = None if self.parameters is None else self.parameters.digest
        return super().to_dict() | {"parameters": digest}

    @classmethod
    def _from_knobs(cls, knobs: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        digest = knobs.pop("parameters", None)
        fitted = Parameters(arrays) if arrays else None
        if digest != (None if fitted is None else fitted.digest):
            fail(f"the rule {cls.key!r} must come with the parameters that it was fitted to.")
        rule = cls(**knobs, parameters=fitted)  # type: ignore[call-arg]
        if fitted is not None:
            rule._check_whole()
        return rule

    def _check_whole(self) -> None:
        """Refuse parameters that do not go with the knobs."""

    @abstractmethod
    def margins(self, sight: Sight) -> Array:
        """Evidence for each target label, ``(n_rows, n_target)``."""

    @abstractmethod
    def contributions(self, sight: Sight) -> list[tuple[Feature, np.ndarray]]:
        """What each feature adds to the margin of each label, ``(n_rows, n_target)`` each."""

    def pose(self, histograms: Any, kernels: Any, **options: Any) -> FusionProblem:
        from wassemble.solvers.problem import FusionProblem

        self._check_fitted()
        problem = FusionProblem(histograms, kernels, **options)
        if problem.like is not None:
            fail("a stacked rule fuses NumPy arrays; got torch tensors.")
        self._check_problem(problem)
        return problem

    def _check_fitted(self) -> None:
        if self.parameters is None:
            fail(
                f"a stacked rule must be fitted before it fuses; got {self}, which is not.",
                hint="`learn_ensemble(models, truth)` fits it",
            )

    @abstractmethod
    def _check_problem(self, problem: FusionProblem) -> None:
        """Refuse models that the rule was not fitted on."""

    def _solve(
        self, problem: FusionProblem, *, out: np.ndarray | None = None, **options: Any
    ) -> Fused:
        scores = np.zeros((problem.n_samples, problem.n_target), dtype=problem.dtype)

        def fuse(start: int, stop: int) -> None:
            scores[start:stop] = self.to_scores(self.margins(Sight.of(problem, start, stop)))

        n_rows = max(1, _TILE // (problem.n_target * problem.n_models))
        threads, progress = options.get("n_threads"), options.get("progress")
        run_tiles(fuse, problem.n_samples, n_rows, threads, progress)
        if out is not None:
            out[...] = scores
            scores = out
        statuses = np.full(problem.n_samples, Status.CONVERGED, dtype=np.int8)
        is_histogram = self.task == "multiclass"
        return Fused(scores, statuses, is_histogram, drops_sample_axis=problem.drops_sample_axis)

    def unroll(
        self,
        histograms: Sequence[Array],
        kernels: Sequence[Kernel],
        weights: Array,
        *,
        keeps_mass: bool,
        exact: bool = True,
    ) -> Array:
        return self.to_scores(self.margins(Sight(list(histograms), kernels, weights)))

    def to_scores(self, margins: Array) -> Array:
        """Scores of margins: histograms, or the probability of each label by itself."""
        xp = namespace(margins)
        if self.task == "multiclass":
            return xp.exp(_log_softmax(margins))
        lost = xp.exp(-abs(margins))  # no exponential of a large number
        return xp.where(margins >= 0, 1 / (1 + lost), lost / (1 + lost))


@dataclass(frozen=True, eq=False)
class Sight:
    """Some samples as the models see them.

    Attributes
    ----------
    scores : list of arrays of shape (n_rows, n_source)
        As they were given; 0 where a model did not answer.
    kernels : list of Kernel
    weights : array of shape (n_models, 1 or n_rows, 1 or n_target)
    """

    scores: list[Array]
    kernels: Sequence[Kernel]
    weights: Array

    @staticmethod
    def of(problem: FusionProblem, start: int, stop: int) -> Sight:
        """The samples from ``start`` to ``stop``."""
        weights = take_rows(with_three_axes(problem.weights), slice(start, stop))
        scores = [problem.rows(model, start, stop) for model in range(problem.n_models)]
        return Sight(scores, problem.kernels, weights)

    @cached_property
    def answered(self) -> Array:
        """Which models have something to say, (n_models, n_rows)."""
        xp = namespace(self.scores[0])
        votes = xp.any(self.weights > 0, axis=2)
        return votes & xp.stack([xp.any(scores > 0, axis=1) for scores in self.scores])

    @cached_property
    def shares(self) -> list[Array]:
        """Scores divided by their sums."""
        xp = namespace(self.scores[0])
        pairs = zip(self.scores, self.answered, strict=True)
        return [
            scores / xp.where(said, xp.sum(scores, axis=1), 1.0)[:, None] * said[:, None]
            for scores, said in pairs
        ]

    @cached_property
    def answers(self) -> list[Array]:
        """The best label of each model: 1, shared by those that are equally good."""
        return [
            mark_best(scores) * said[:, None]
            for scores, said in zip(self.scores, self.answered, strict=True)
        ]

    def repeat(self, row: np.ndarray) -> Array:
        """``row``, one number per target label, for each sample."""
        return namespace(self.scores[0]).zeros_like(self.scores[0][:, :1]) + row


def mark_best(scores: Array) -> Array:
    """1 for the best label of each row, shared by equally good ones; 0 in rows of zeros."""
    xp = namespace(scores)
    top = xp.max(scores, axis=1, keepdims=True)
    best = xp.astype((scores == top) & (top > 0), xp.float64)
    return best / xp.maximum(xp.sum(best, axis=1, keepdims=True), 1.0)


@final
@dataclass(frozen=True)
class LogisticStacking(StackedRule):
    """Logistic regression on all scores of all models, and on which of them answered.

    Parameters
    ----------
    task : {"multiclass", "multilabel"}
    strength : float
        scikit-learn's C: how far coefficients may go from 0.
    parameters : Parameters, optional
        What it was fitted to.
    """

    key: ClassVar[str] = "logistic stacking"
    constraints: ClassVar[Constraints] = {
        "task": OneOf(("multiclass", "multilabel")),
        "strength": Number(above=0),
    }

    task: Task = "multiclass"
    strength: float = 3.0
    parameters: Parameters | None = None

    def margins(self, sight: Sight) -> Array:
        coefficients, intercepts = self.arrays["coefficients"], self.arrays["intercepts"]
        return stacking_features(sight) @ coefficients.T + intercepts

    def contributions(self, sight: Sight) -> list[tuple[Feature, np.ndarray]]:
        features, coefficients = stacking_features(sight), self.arrays["coefficients"]
        widths = [scores.shape[1] for scores in sight.scores]
        owner = np.r_[np.repeat(np.arange(len(widths)), widths), np.arange(len(widths))]
        parts = [
            (Feature("stacking", "its scores", model), features[:, own] @ coefficients[:, own].T)
            for model in range(len(widths))
            for own in [owner == model]
        ]
        # A label that never occurred has minus infinity, which no sum could go on from.
        usual = np.clip(self.arrays["intercepts"], -_SURE, _SURE)
        frequency = Feature("frequencies", "how often the label is true")
        return [*parts, (frequency, np.tile(usual, (len(features), 1)))]

    def _check_problem(self, problem: FusionProblem) -> None:
        n_features = sum(kernel.shape[0] + 1 for kernel in problem.kernels)
        shape = (problem.n_target, n_features)
        if self.arrays["coefficients"].shape != shape:
            fail(
                f"stacking must fuse what it was fitted on, with coefficients of shape {shape}; it"
                f" has {self.arrays['coefficients'].shape}."
            )

    def __str__(self) -> str:
        return f"logistic-regression stacking (C = {self.strength:g})"


def stacking_features(sight: Sight) -> Array:
    """All scores of all models, and which of them answered, ``(n_rows, n_features)``."""
    xp = namespace(sight.scores[0])
    pairs = zip(sight.scores, sight.answered, strict=True)
    scores = [xp.where(said[:, None], each, 0.0) for each, said in pairs]
    return xp.concat([*scores, xp.astype(sight.answered.T, xp.float64)], axis=1)


@dataclass(frozen=True)
class Feature:
    """One way to look at the models: a number for each sample and target label."""

    group: str
    name: str
    model: int | None = None  # place of the model that it looks at; None for all of them


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known of the models before they are looked at together.

    Attributes
    ----------
    task : {"multiclass", "multilabel"}
    names : list of arrays of shape (n_source, n_target)
        How much of a label's score goes to the target labels of its name.
    declared : array of shape (n_models, n_target)
        Target labels that each model can speak of, as a mask.
    takes_largest : bool
        Whether of several labels with one name the largest score counts, not the sum.
    reliability : array of shape (n_models,)
        How much a model counts in the means and barycenters that are looked at.
    frequencies : array of shape (n_target,)
        How often a label was true: its log, or its log odds where each is decided by itself.
    likelihoods, answer_likelihoods : list of arrays of shape (n_source, n_target)
        The log of how likely a model's label is where a target label is true: of its scores,
        and of its answers. Empty where there are several true labels.
    offered : dict of name to list of arrays of shape (n_source, n_target)
        Kernels on offer.
    stacking : LogisticStacking or None
    positions : array of shape (n_target,), or None
        Where the target labels lie on a line, if they do.
    """

    task: Task
    names: list[np.ndarray]
    declared: np.ndarray
    takes_largest: bool
    reliability: np.ndarray
    frequencies: np.ndarray
    likelihoods: list[np.ndarray]
    answer_likelihoods: list[np.ndarray]
    offered: dict[str, list[np.ndarray]]
    stacking: LogisticStacking | None
    positions: np.ndarray | None

    def look(self, sight: Sight, sees: Sequence[str]) -> Iterator[tuple[Feature, Array]]:
        """Every feature of the groups ``sees``, ``(n_rows, n_target)`` each."""
        glance = _Glance(self, sight)
        by_group = {
            "names": glance.names,
            "votes": glance.votes,
            "mistakes": glance.mistakes,
            "rules": glance.rules,
            "transport": glance.transport,
            "offered": glance.offered,
            "order": glance.order,
            "stacking": glance.stacking,
            "frequencies": glance.frequencies,
        }
        for group in sees:
            for name, model, values in by_group[group]():
                yield Feature(group, name, model), values

    def images(self, sight: Sight) -> list[Array]:
        """The scores of each model by name, ``(n_rows, n_target)`` each."""
        if self.takes_largest:
            pairs = zip(sight.scores, sight.answered, self.names, strict=True)
            return [_largest(scores * said[:, None], names) for scores, said, names in pairs]
        return [share @ names for share, names in zip(sight.shares, self.names, strict=True)]

    # -- as arrays -------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything, by name."""
        arrays = {
            "declared": self.declared,
            "takes_largest": np.array(self.takes_largest),
            "reliability": self.reliability,
            "frequencies": self.frequencies,
        }
        if self.positions is not None:
            arrays["positions"] = self.positions
        for word in ("names", "likelihoods", "answer_likelihoods"):
            arrays |= {f"{word} {place}": each for place, each in enumerate(getattr(self, word))}
        for name, kernels in self.offered.items():
            arrays |= {f"offered {place} {name}": each for place, each in enumerate(kernels)}
        if self.stacking is not None:
            arrays |= {f"stacking {name}": each for name, each in self.stacking.arrays.items()}
        return arrays

    @staticmethod
    def from_arrays(task: Task, arrays: Mapping[str, np.ndarray]) -> Knowledge:
        """What `to_arrays` wrote down."""
        n_models = len(arrays["declared"])

        def each(word: str) -> list[np.ndarray]:
            found = [arrays.get(f"{word} {place}") for place in range(n_models)]
            return [array for array in found if array is not None]

        first = "offered 0 "
        offered = [name.removeprefix(first) for name in arrays if name.startswith(first)]
        coefficients = arrays.get("stacking coefficients")
        stacking = None
        if coefficients is not None:
            parts = {"coefficients": coefficients, "intercepts": arrays["stacking intercepts"]}
            stacking = LogisticStacking(task).with_parameters(parts)
        return Knowledge(
            task,
            each("names"),
            arrays["declared"],
            bool(arrays["takes_largest"]),
            arrays["reliability"],
            arrays["frequencies"],
            each("likelihoods"),
            each("answer_likelihoods"),
            {
                name: [arrays[f"offered {place} {name}"] for place in range(n_models)]
                for name in offered
            },
            stacking,
            arrays.get("positions"),
        )


_Seen: TypeAlias = Iterator[tuple[str, int | None, Array]]


class _Glance:
    """One look at some samples: what several features need is made once."""

    def __init__(self, knowledge: Knowledge, sight: Sight) -> None:
        self._knowledge, self._sight = knowledge, sight
        self._xp = namespace(sight.scores[0])
        self._said = self._xp.astype(sight.answered, self._xp.float64)[:, :, None]

    @cached_property
    def _images(self) -> list[np.ndarray]:
        return self._knowledge.images(self._sight)

    @cached_property
    def _carried(self) -> list[np.ndarray]:
        """Shares carried through the kernels."""
        pairs = zip(self._sight.shares, self._sight.kernels, strict=True)
        return [_carry(kernel, share) for share, kernel in pairs]

    def _weights(self, leftover: float) -> Array:
        """Weights of the models that answered, on the simplex.

        Of its weight, a model keeps ``leftover`` on labels that it does not declare.
        """
        xp, known = self._xp, self._knowledge
        share = np.where(known.declared, 1.0, leftover) * known.reliability[:, None]
        weights = self._said * share[:, None, :]
        silent = xp.sum(weights, axis=0) <= 0
        weights = xp.where(silent, self._said * known.reliability[:, None, None], weights)
        total = xp.sum(weights, axis=0)
        even = 1 / len(known.reliability)
        return xp.where(total > 0, weights / xp.where(total > 0, total, 1.0), even)

    def _mean(self, weights: Array, images: Sequence[Array]) -> Array:
        """Weighted sum over the models; no more than one product is there at a time."""
        return sum(weight * image for weight, image in zip(weights, images, strict=True))

    def names(self) -> _Seen:
        for model, (image, said) in enumerate(zip(self._images, self._said, strict=True)):
            speaks = said * self._knowledge.declared[model]
            yield "its score by name", model, speaks * _log_above(image)
            if self._knowledge.task == "multilabel":
                yield (
                    "its doubt by name",
                    model,
                    -speaks * _log_above(1 - self._xp.minimum(image, 1.0)),
                )
            yield "that it knows the label", model, speaks

    def votes(self) -> _Seen:
        likelihoods = self._knowledge.answer_likelihoods
        for model, (image, said) in enumerate(zip(self._images, self._said, strict=True)):
            if likelihoods:
                yield "its answer by name", model, said * mark_best(image)
                yield (
                    "what its answer means",
                    model,
                    self._sight.answers[model] @ likelihoods[model],
                )

    def mistakes(self) -> _Seen:
        likelihoods = self._knowledge.likelihoods
        for model, likelihood in enumerate(likelihoods):
            said = self._said[model]
            yield "its scores through its mistakes", model, said * _log_above(self._carried[model])
            yield "what its scores mean", model, self._sight.shares[model] @ likelihood

    def rules(self) -> _Seen:
        weights = self._weights(0.0)
        yield "mean by name", None, _log_of(self._mean(weights, self._images))
        if self._knowledge.task == "multilabel":
            roots = [self._xp.sqrt(image) for image in self._images]
            yield "Hellinger mean", None, _log_of(self._mean(weights, roots) ** 2)
            return
        if self._knowledge.likelihoods:
            mean = self._mean(self._weights(_LEFTOVER), self._carried)
            yield "mean through mistakes", None, _log_of(mean)

    def transport(self) -> _Seen:
        if self._knowledge.likelihoods:
            for rule in _BARYCENTERS:
                yield f"{rule} through mistakes", None, self._fuse(rule, self._sight.kernels)

    def offered(self) -> _Seen:
        for name, kernels in self._knowledge.offered.items():
            each = [DenseKernel(kernel) for kernel in kernels]
            carried = [
                share @ kernel for share, kernel in zip(self._sight.shares, kernels, strict=True)
            ]
            mean = self._mean(self._weights(_LEFTOVER), carried)
            yield f"mean through {name}", None, _log_of(mean)
            yield f"{_BARYCENTERS[0]} through {name}", None, self._fuse(_BARYCENTERS[0], each)

    def order(self) -> _Seen:
        positions = self._knowledge.positions
        if positions is not None:
            weights = self._weights(leftover=1.0)[..., :1]  # the same on all labels
            for rule in _LINES:
                located = rule.on_line(positions.tolist())
                fused = located.fuse(self._images, weights=weights, holds="scores").scores
                yield str(rule), None, _log_of(fused)

    def stacking(self) -> _Seen:
        rule = self._knowledge.stacking
        if rule is None:
            return
        margins = rule.margins(self._sight)
        if self._knowledge.task == "multiclass":
            logs = self._xp.log(self._xp.exp(_log_softmax(margins)) + _LEAST_STACKED)
        else:
            bound = -float(np.log(_LEAST_STACKED))
            logs = self._xp.maximum(self._xp.minimum(margins, bound), -bound)
        yield "logistic-regression stacking", None, logs

    def frequencies(self) -> _Seen:
        frequencies = self._knowledge.frequencies
        yield "how often the label is true", None, self._sight.repeat(frequencies)
        if self._knowledge.task == "multilabel":
            yield "that there is a label", None, self._sight.repeat(np.ones(len(frequencies)))

    def _fuse(self, rule: Barycenter, kernels: Sequence[Kernel]) -> Array:
        weights, shares = self._weights(_LEFTOVER), self._sight.shares
        if isinstance(weights, np.ndarray):
            if (weights == weights[:, :1]).all():
                weights = weights[:, 0]
            fused = rule.fuse(shares, list(kernels), weights=weights, holds="scores").scores
        else:
            fused = rule.unroll(shares, kernels, weights, keeps_mass=False)
        return _log_of(fused / self._xp.maximum(self._xp.sum(fused, axis=1)[:, None], _TINY))


def _carry(kernel: Kernel, scores: Array) -> Array:
    if isinstance(scores, np.ndarray):
        return kernel.apply_transpose(scores)
    return carry(kernel, scores, keeps_mass=False)


def _log_of(scores: Array) -> Array:
    return namespace(scores).log(scores + _LEAST)


def _log_above(scores: Array) -> Array:
    """The log of scores, 0 for those that are as good as none."""
    return namespace(scores).log(scores / _LEAST + 1)


def _log_softmax(margins: Array) -> Array:
    xp = namespace(margins)
    below = margins - xp.max(margins, axis=1, keepdims=True)
    return below - xp.log(xp.sum(xp.exp(below), axis=1, keepdims=True))


def _largest(scores: Array, names: np.ndarray) -> Array:
    """The largest score among the labels with the name of each target label."""
    xp = namespace(scores)
    source, target = np.nonzero(names)
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=names.shape[1])
    starts = np.cumsum(counts) - counts
    largest = xp.sum(scores, axis=1)[:, None] * np.zeros(names.shape[1])
    for nth in range(counts.max(initial=0)):  # the first label of each name, the second ...
        is_there = counts > nth
        place = source[order[np.where(is_there, starts + nth, 0)]]
        share = np.where(is_there, names[place, np.arange(names.shape[1])], 0.0)
        largest = xp.maximum(largest, xp.take(scores, place, axis=1) * share)
    return largest


@final
@dataclass(frozen=True)
class StackedConsensus(StackedRule):
    """Conditional logit over target labels: each way to look at the models has one coefficient.

    The coefficients are shared by all target labels, so that some dozens of them speak of
    labels that were never seen true. Of each sample and target label it sees

    - "names": for each model, the log of its score by name, and whether it declares the label;
    - "votes": whether it is the model's answer, and how likely that answer is where the label
      is true (Dawid and Skene 1979);
    - "mistakes": the same of all of its scores: carried through the kernel of its mistakes,
      and how likely they are where the label is true;
    - "rules": the logs of the label-aware means, by name and through those kernels;
    - "transport": the logs of two barycenters through those kernels;
    - "offered": the same through kernels on offer;
    - "order": where labels lie on a line, the logs of both exact barycenters there;
    - "stacking": the log of logistic-regression stacking;
    - "frequencies": how often the label was true.

    With several labels per sample, each label is decided by itself: the logistic loss in place of
    the conditional one, and neither votes nor mistakes.

    Parameters
    ----------
    task : {"multiclass", "multilabel"}
    sees : tuple of str
        Of the above.
    parameters : Parameters, optional
        What it was fitted to.
    """

    key: ClassVar[str] = "stacked consensus"
    constraints: ClassVar[Constraints] = {
        "task": OneOf(("multiclass", "multilabel")),
    }

    task: Task = "multiclass"
    sees: tuple[str, ...] = GROUPS
    parameters: Parameters | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        strange = [group for group in self.sees if group not in GROUPS]
        if strange or not self.sees:
            fail(f"a stacked consensus must see some of {', '.join(GROUPS)}; got {self.sees!r}.")
        object.__setattr__(self, "sees", tuple(group for group in GROUPS if group in self.sees))

    @cached_property
    def knowledge(self) -> Knowledge:
        """What it knows of the models."""
        self._check_fitted()
        return Knowledge.from_arrays(self.task, self.arrays)

    def margins(self, sight: Sight) -> Array:
        return sum(
            float(coefficient) * values
            for coefficient, (_, values) in zip(
                self.arrays["coefficients"], self.knowledge.look(sight, self.sees), strict=True
            )
            if coefficient
        )

    def contributions(self, sight: Sight) -> list[tuple[Feature, np.ndarray]]:
        looked = self.knowledge.look(sight, self.sees)
        pairs = zip(self.arrays["coefficients"], looked, strict=True)
        return [(feature, coefficient * values) for coefficient, (feature, values) in pairs]

    def _check_whole(self) -> None:
        known = self.knowledge
        blank = [np.zeros((1, len(names))) for names in known.names]
        kernels = [DenseKernel(np.ones_like(names)) for names in known.names]
        seen = known.look(Sight(blank, kernels, np.ones((len(blank), 1, 1))), self.sees)
        n_features = sum(1 for _ in seen)
        if self.arrays["coefficients"].shape != (n_features,):
            fail(
                f"a stacked consensus must have a coefficient for each of {n_features} features;"
                f" got {len(self.arrays['coefficients'])}."
            )

    def _check_problem(self, problem: FusionProblem) -> None:
        known = self.knowledge
        shapes = [each.shape for each in known.names]
        given = [kernel.shape for kernel in problem.kernels]
        if shapes != given:
            fail(
                "a stacked consensus must fuse the models that it was fitted on, with kernels of"
                f" shapes {', '.join(map(str, shapes))}; got {', '.join(map(str, given))}."
            )

    def __str__(self) -> str:
        moves = {"transport", "offered", "order"} & set(self.sees)
        return "stacked consensus" + ("" if moves else " without transport")
