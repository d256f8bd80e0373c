"""Nine language detectors with nine label sets, fused by the names of their labels.

Detectors know 54 to 222 languages each, 306 together. A mean must decide what a detector
means by a language that it does not know; counting that as "no" is worse than the best
single detector. Here they are fused by name: a model has little say on labels that it does
not declare, and a kernel learned from its own mistakes on validation texts says which
language it means when it is wrong.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from paper.evidence.tasks import every_language
from paper.record.findings import Figure, Findings, Progress, Table
from paper.record.judging import Judge, tune
from wassemble.ensemble import Fusion
from wassemble.errors import ConvergenceWarning
from wassemble.inputs import Predictions
from wassemble.labels import LabelSpace
from wassemble.metrics import ACCURACY
from wassemble.solvers import ARITHMETIC, GEOMETRIC, Barycenter, PowerMean, Rule, Unbalanced

_TEXT = """\
{n_test} texts in {n_languages} languages. Detectors and the number of languages they declare:
{n_labels}. A detector gives a language that it does not declare no score, so none of them can
be right on every text. Weights are the detectors' accuracies on the {n_validation} validation
texts; the best single detector and the order of the power mean are chosen there. Kernels come
from the detectors' mistakes there: fitted on two thirds to choose prior {prior:g}, exponent
{exponent:g} and {max_sweeps} sweeps on the last third, then on all."""

_NOTE = """\
Intervals by bootstrap over languages, whose texts stand and fall together. "Label-aware" means
are over the detectors that declare a language. The rows "through kernels" use the same kernels
and weights: the first is linear, so what it gains over the label-aware mean comes from the
learned kernels, and only what the barycenter gains over it comes from transport. The last row
is a text that some detector gets right."""

_AWARE = "label-aware arithmetic mean"
_THROUGH, _TRANSPORT = "label-aware mean through kernels", "barycenter through kernels"


@dataclass(frozen=True)
class Config:
    """What is tried on the last third of the validation texts."""

    priors: tuple[float, ...] = (0.1, 0.2, 0.3)
    exponents: tuple[float, ...] = (0.5, 0.7, 0.9)  # mass_penalty / (mass_penalty + epsilon)
    sweeps: tuple[int, ...] = (3, 5, 10)
    floor: float = 1e-4
    leftover: float = 0.05
    orders: tuple[float, ...] = (0.25, 0.5, 0.75, 1.5, 2.0)  # of the power mean
    seed: int = 0


def _rule(exponent: float, max_sweeps: int) -> Barycenter:
    mass = Unbalanced(exponent, epsilon=1 - exponent)
    return Barycenter(mass, max_sweeps=max_sweeps, tolerance=None)


def run(config: Config, progress: Progress = None) -> Findings:
    """Accuracy of each rule on the test texts."""
    task = every_language()
    target, truth = task.target, task.target.places(task.truth)
    validation, test = ~task.is_test, task.is_test
    weights = task.weights_by_accuracy()

    def fuse(rows: np.ndarray, rule: Rule, **options: Any) -> np.ndarray:
        models, _ = task.take(rows)
        fusion = Fusion(rule, target=target, unobserved="drop", **options)
        # A geometric mean leaves nothing where detectors are sure of different languages: wrong.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.nan_to_num(fusion.run(models).consensus.scores)

    by_name: dict[str, Any] = {"weights": weights, "leftover": 0}
    through: dict[str, Any] = {"weights": weights, "leftover": config.leftover}
    # Kernels of the first two thirds, judged on the last.
    last = task.last_of_each()
    fitted = {
        prior: task.kernels_of_mistakes(validation & ~last, prior=prior, floor=config.floor)
        for prior in config.priors
    }
    (prior, exponent, max_sweeps), _ = tune(
        list(itertools.product(config.priors, config.exponents, config.sweeps)),
        lambda tried: fuse(last, _rule(*tried[1:]), kernel=fitted[tried[0]], **through),
        lambda scores: float((scores.argmax(axis=1) == truth[last]).mean()),
        progress,
    )
    kernels = task.kernels_of_mistakes(validation, prior=prior, floor=config.floor)
    tuned = _rule(exponent, max_sweeps)
    order, _ = tune(
        config.orders,
        lambda order: fuse(validation, PowerMean(order), **by_name),
        lambda scores: ACCURACY.score(scores, truth[validation]),
    )
    alone = {model.model: _alone(model, target) for model in task.part(True)[0]}
    best = list(alone)[int(weights.argmax())]
    right = [scores.argmax(axis=1) == truth[test] for scores in alone.values()]
    rules = {
        f"best single detector ({best})": alone[best],
        "plain mean": fuse(test, ARITHMETIC, leftover=1),
        "plain barycenter": fuse(test, _rule(exponent, 10), leftover=1),
        _AWARE: fuse(test, ARITHMETIC, **by_name),
        "label-aware geometric mean": fuse(test, GEOMETRIC, **by_name),
        f"label-aware power mean (order {order:g}, tuned)": fuse(test, PowerMean(order), **by_name),
        _THROUGH: fuse(test, ARITHMETIC, kernel=kernels, **through),
        _TRANSPORT: fuse(test, tuned, kernel=kernels, **through),
        "any detector right": np.any(right, axis=0)[:, None] * np.eye(len(target))[truth[test]],
    }
    judge = Judge(ACCURACY, truth[test], groups=truth[test].tolist(), seed=config.seed)
    rows = [[name, *cells] for name, cells in judge.compare(rules, _AWARE).items()]
    ours = rules[_TRANSPORT]
    gains = {name: judge.gain(ours, rules[name]) for name in (_AWARE, _THROUGH)}
    return Findings(
        text=_TEXT.format(
            n_test=int(test.sum()),
            n_languages=len(set(task.truth)),
            n_labels=", ".join(f"{model.model} {len(model.labels)}" for model in task.models),
            n_validation=int(validation.sum()),
            prior=prior,
            exponent=exponent,
            max_sweeps=max_sweeps,
        ),
        tables=[Table("Accuracy", ["rule", "test", f"gain over the {_AWARE}"], rows, note=_NOTE)],
        verdict=_conclude(gains),
    )


def _conclude(gains: Mapping[str, Figure]) -> str:
    """What the barycenter gains, and how much of that is the kernels'."""
    over, through = gains[_AWARE], gains[_THROUGH]
    transport = "is the transport's" if through.low > 0 else "may be the transport's or chance"
    return (
        f"The barycenter through kernels gains {over.words()} over the {_AWARE}: a detector's"
        " mistakes tell which languages its labels stand for that it does not declare; a linear"
        f" mean through the same kernels has most of that, and what is over it, {through.words()},"
        f" {transport}."
    )


def _alone(model: Predictions, target: LabelSpace) -> np.ndarray:
    """A model's scores over the target labels, 0 where it reported nothing."""
    scores = np.zeros((model.n_samples, len(target)))
    scores[:, target.places(model.labels)] = np.nan_to_num(model.scores)
    return scores
