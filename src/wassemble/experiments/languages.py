"""Nine language detectors with nine label sets: `python -m wassemble.experiments.languages`.

Detectors know 54 to 222 languages each, 306 together. A mean must decide what a detector
means by a language that it does not know; counting that as "no" is worse than the best
single detector. Here they are fused by name: a model has little say on labels that it does
not declare, and a kernel learned from its own mistakes on validation texts says which
language it means when it is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wassemble.ensemble import fuse_tables
from wassemble.experiments.records import describe_machine, publish, table
from wassemble.inputs import LanguagesData, Predictions, load_languages
from wassemble.kernels import LabelledKernel, kernel_from_confusion
from wassemble.labels import LabelSpace
from wassemble.solvers import Unbalanced, arithmetic_mean

__all__ = ["Config", "main", "run"]

_NOTE = """\
Accuracy on {n_test} texts in {n_languages} languages; standard errors by bootstrap over
languages. Detectors give a language that they do not declare no score, so none of them can
be right on every text; the last row is a text that some detector gets right. Weights are
the detectors' accuracies on the {n_validation} validation texts. Kernels come from their
mistakes there: fitted on two thirds to choose prior {prior:g}, exponent {exponent:g} and
{max_iterations} sweeps on the last third, then on all. The rows marked "through kernels" use
the same kernels and weights: the first is linear, the second transports."""


@dataclass(frozen=True)
class Config:
    """What is tried on the last third of the validation texts."""

    priors: tuple[float, ...] = (0.1, 0.2, 0.3)
    exponents: tuple[float, ...] = (0.5, 0.7, 0.9)  # mass_penalty / (mass_penalty + epsilon)
    sweeps: tuple[int, ...] = (3, 5, 10)
    floor: float = 1e-4
    leftover: float = 0.05
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


def run(config: Config) -> dict[str, Any]:
    """Accuracy of each rule on the test texts, with everything that made it."""
    started = time.perf_counter()
    data = load_languages()
    target = LabelSpace(sorted(LabelSpace.union(*(model.labels for model in data.models))))
    validation, test = ~data.is_test, data.is_test
    alone = {model.model: _alone(model, target) for model in data.models}
    accuracy = {name: _right(scores, target, data)[validation] for name, scores in alone.items()}
    weights = np.array([right.mean() for right in accuracy.values()])
    weights /= weights.sum()
    setting = _tune(config, data, target, weights)
    kernels = _kernels(data.models, data.truth, validation, target, setting.prior, config)
    options = setting.options(config)
    mean: dict[str, Any] = {"target": target, "rule": arithmetic_mean, "unobserved": "drop"}
    models = [model.take(test) for model in data.models]
    fused = {
        "plain mean": fuse_tables(models, leftover=1, **mean),
        "plain barycenter": fuse_tables(
            models, target=target, **options | {"leftover": 1, "max_iterations": 10}
        ),
        "label-aware mean": fuse_tables(models, weights=weights, leftover=0, **mean),
        "label-aware mean through kernels": fuse_tables(
            models, weights=weights, kernel=kernels, leftover=config.leftover, **mean
        ),
        "barycenter through kernels": fuse_tables(
            models, target=target, weights=weights, kernel=kernels, **options
        ),
    }
    right = {f"{name} alone": _right(s, target, data)[test] for name, s in alone.items()}
    best = max(right, key=lambda name: right[name].mean())
    rows = {f"best single detector ({best.removesuffix(' alone')})": right[best]}
    rows |= {rule: _right_of(f.consensus.scores, target, data, test) for rule, f in fused.items()}
    rows["any detector right"] = np.any(list(right.values()), axis=0)
    truth = np.array(data.truth)[test]
    return {
        "name": "languages",
        "config": asdict(config),
        "chosen": asdict(setting),
        "n_test": int(test.sum()),
        "n_validation": int(validation.sum()),
        "n_languages": len(set(data.truth)),
        "n_labels": {model.model: len(model.labels) for model in data.models},
        "accuracy": {
            rule: {"test": float(r.mean()), "error": _standard_error(r, truth, config.seed)}
            for rule, r in rows.items()
        },
        "each": {name: float(r.mean()) for name, r in right.items()},
        "seconds": round(time.perf_counter() - started, 3),
        "versions": describe_machine(),
    }


def _tune(config: Config, data: LanguagesData, target: LabelSpace, weights: np.ndarray) -> _Setting:
    """The setting that is right most often on the last third of the validation texts."""
    last = _last_of_each(data)
    fitted = ~data.is_test & ~last
    models = [model.take(last) for model in data.models]
    best, most = None, -1.0
    for prior in config.priors:
        kernels = _kernels(data.models, data.truth, fitted, target, prior, config)
        for exponent, sweeps in itertools.product(config.exponents, config.sweeps):
            setting = _Setting(prior, exponent, sweeps)
            options = setting.options(config)
            fusion = fuse_tables(models, target=target, weights=weights, kernel=kernels, **options)
            right = _right_of(fusion.consensus.scores, target, data, last).mean()
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
        model.model: kernel_from_confusion(
            model.take(rows), known, target=target, prior=prior, floor=config.floor
        )
        for model in models
    }


def _alone(model: Predictions, target: LabelSpace) -> np.ndarray:
    """A model's scores over the target labels, 0 where it reported nothing."""
    scores = np.zeros((model.n_samples, len(target)))
    scores[:, target.positions(model.labels)] = np.nan_to_num(model.scores)
    return scores


def _right(scores: np.ndarray, target: LabelSpace, data: LanguagesData) -> np.ndarray:
    return (scores.max(axis=1) > 0) & (scores.argmax(axis=1) == target.positions(data.truth))


def _right_of(
    scores: np.ndarray, target: LabelSpace, data: LanguagesData, rows: np.ndarray
) -> np.ndarray:
    return np.nan_to_num(scores).argmax(axis=1) == target.positions(data.truth)[rows]


def _standard_error(right: np.ndarray, truth: np.ndarray, seed: int) -> float:
    """By bootstrap over languages, whose texts stand and fall together."""
    each = np.array([right[truth == language].mean() for language in np.unique(truth)])
    drawn = np.random.default_rng(seed).integers(len(each), size=(1000, len(each)))
    return float(each[drawn].mean(axis=1).std())


def write_report(record: dict[str, Any]) -> str:
    """The record as a page of Markdown."""
    rows = [
        [rule, f"{found['test']:.3f}", f"{found['error']:.3f}"]
        for rule, found in record["accuracy"].items()
    ]
    labels = record["n_labels"]
    return (
        "# Nine language detectors, nine label sets\n\n"
        + table(["rule", "test", "standard error"], rows)
        + "\n\n"
        + _NOTE.format(**record, **record["chosen"])
        + "\n\nDetectors and the number of languages they declare: "
        + ", ".join(f"{name} {count}" for name, count in labels.items())
        + ".\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the table and write ``languages.json`` and ``languages.md``."""
    parser = argparse.ArgumentParser(
        prog="python -m wassemble.experiments.languages",
        description="Nine language detectors with nine label sets, fused by name.",
    )
    parser.add_argument("--out", type=Path, default=Path("reports"), help="folder for the report")
    options = parser.parse_args(arguments)
    return publish(lambda: run(Config()), write_report, options.out)


if __name__ == "__main__":
    sys.exit(main())
