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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from wassemble.ensemble import fuse_tables
from wassemble.ensemble.learning.measure import read_measure
from wassemble.errors import ConvergenceWarning
from wassemble.experiments.findings import Cell, Findings, Table
from wassemble.experiments.judging import Judge
from wassemble.experiments.records import Progress
from wassemble.inputs import LanguagesData, Predictions, load_languages
from wassemble.kernels import LabelledKernel, from_confusion
from wassemble.labels import LabelSpace
from wassemble.solvers import Unbalanced, power_mean

__all__ = ["Config", "run"]

_TEXT = """\
{n_test} texts in {n_languages} languages. Detectors and the number of languages they declare:
{n_labels}. A detector gives a language that it does not declare no score, so none of them can
be right on every text. Weights are the detectors' accuracies on the {n_validation} validation
texts; the best single detector and the order of the power mean are chosen there. Kernels come
from the detectors' mistakes there: fitted on two thirds to choose prior {prior:g}, exponent
{exponent:g} and {max_iterations} sweeps on the last third, then on all."""

_NOTE = """\
Intervals by bootstrap over languages, whose texts stand and fall together. "Label-aware" means
are over the detectors that declare a language. The rows "through kernels" use the same kernels
and weights: the first is linear, so what it gains over the label-aware mean comes from the
learned kernels, and only what the barycenter gains over it comes from transport. The last row
is a text that some detector gets right."""


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


@dataclass(frozen=True)
class _Setting:
    prior: float
    exponent: float
    max_iterations: int

    def options(self, config: Config) -> dict[str, Any]:
        return {
            "mass": Unbalanced(self.exponent, epsilon=1 - self.exponent),
            "max_iterations": self.max_iterations,
            "tolerance": None,
            "leftover": config.leftover,
            "unobserved": "drop",
        }


def run(config: Config, progress: Progress = None) -> Findings:
    """Accuracy of each rule on the test texts."""
    data = load_languages()
    target = LabelSpace(sorted(LabelSpace.union(*(model.labels for model in data.models))))
    truth = target.positions(data.truth)
    measure = read_measure("accuracy", "multiclass")
    validation, test = ~data.is_test, data.is_test
    alone = {model.model: _alone(model, target) for model in data.models}
    weights = np.array(
        [measure.score(scores[validation], truth[validation], None) for scores in alone.values()]
    )
    best = data.models[int(weights.argmax())].model
    weights /= weights.sum()
    setting = _tune(config, data, target, weights, progress)
    kernels = _kernels(data.models, data.truth, validation, target, setting.prior, config)
    mean: dict[str, Any] = {"target": target, "unobserved": "drop"}
    by_name = mean | {"weights": weights, "leftover": 0}

    def fuse(rows: np.ndarray, **options: Any) -> np.ndarray:
        models = [model.take(rows) for model in data.models]
        # A geometric mean leaves nothing where detectors are sure of different languages: wrong.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.nan_to_num(fuse_tables(models, **options).consensus.scores)

    def power(order: float) -> Any:
        return partial(power_mean, order=order)

    order = max(
        config.orders,
        key=lambda order: measure.score(
            fuse(validation, rule=power(order), **by_name), truth[validation], None
        ),
    )
    linear = mean | {"weights": weights, "leftover": config.leftover, "kernel": kernels}
    barycenter = {"target": target} | setting.options(config)
    rules = {
        f"best single detector ({best})": alone[best][test],
        "plain mean": fuse(test, rule=power(1), leftover=1, **mean),
        "plain barycenter": fuse(test, **barycenter | {"leftover": 1, "max_iterations": 10}),
        "label-aware arithmetic mean": fuse(test, rule=power(1), **by_name),
        "label-aware geometric mean": fuse(test, rule=power(0), **by_name),
        f"label-aware power mean (order {order:g}, tuned)": fuse(
            test, rule=power(order), **by_name
        ),
        "label-aware mean through kernels": fuse(test, rule=power(1), **linear),
        "barycenter through kernels": fuse(test, weights=weights, kernel=kernels, **barycenter),
    }
    right = [scores[test].argmax(axis=1) == truth[test] for scores in alone.values()]
    some = np.zeros((int(test.sum()), len(target)))
    some[np.any(right, axis=0), truth[test][np.any(right, axis=0)]] = 1
    rules["any detector right"] = some
    judge = Judge(measure, truth[test], groups=truth[test].tolist(), seed=config.seed)
    aware = rules["label-aware arithmetic mean"]
    rows: list[list[Cell]] = [
        [name, judge.figure(scores), None if scores is aware else judge.gain(scores, aware)]
        for name, scores in rules.items()
    ]
    return Findings(
        text=_TEXT.format(
            n_test=int(test.sum()),
            n_languages=len(set(data.truth)),
            n_labels=", ".join(f"{model.model} {len(model.labels)}" for model in data.models),
            n_validation=int(validation.sum()),
            **vars(setting),
        ),
        tables=[
            Table(
                "Accuracy",
                ["rule", "test", "gain over the label-aware arithmetic mean"],
                rows,
                note=_NOTE,
            )
        ],
    )


def _tune(
    config: Config,
    data: LanguagesData,
    target: LabelSpace,
    weights: np.ndarray,
    progress: Progress,
) -> _Setting:
    """The setting that is right most often on the last third of the validation texts."""
    last = _last_of_each(data)
    fitted = ~data.is_test & ~last
    models = [model.take(last) for model in data.models]
    truth = target.positions(data.truth)[last]
    best, most = None, -1.0
    for number, prior in enumerate(config.priors):
        if progress is not None:
            progress(number, len(config.priors))
        kernels = _kernels(data.models, data.truth, fitted, target, prior, config)
        for exponent, sweeps in itertools.product(config.exponents, config.sweeps):
            setting = _Setting(prior, exponent, sweeps)
            options = setting.options(config)
            fusion = fuse_tables(models, target=target, weights=weights, kernel=kernels, **options)
            right = (np.nan_to_num(fusion.consensus.scores).argmax(axis=1) == truth).mean()
            if right > most:
                best, most = setting, right
    assert best is not None
    return best


def _last_of_each(data: LanguagesData) -> np.ndarray:
    """The last validation text of each language, as a mask."""
    last = {truth: i for i, truth in enumerate(data.truth) if not data.is_test[i]}
    mask = np.zeros(len(data.truth), dtype=bool)
    mask[list(last.values())] = True
    return mask


def _kernels(
    models: Sequence[Predictions],
    truth: Sequence[str],
    rows: np.ndarray,
    target: LabelSpace,
    prior: float,
    config: Config,
) -> dict[str, LabelledKernel]:
    known = [truth[i] for i in np.flatnonzero(rows).tolist()]
    return {
        model.model: from_confusion(
            model.take(rows), known, target=target, prior=prior, floor=config.floor
        )
        for model in models
    }


def _alone(model: Predictions, target: LabelSpace) -> np.ndarray:
    """A model's scores over the target labels, 0 where it reported nothing."""
    scores = np.zeros((model.n_samples, len(target)))
    scores[:, target.positions(model.labels)] = np.nan_to_num(model.scores)
    return scores
