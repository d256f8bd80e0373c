"""Kernels learned through the solver: `python -m wassemble.experiments.learned_kernels`.

On three tasks a mixture of candidate kernels is learned on some of the samples that are not
for test, and measured on test samples against the mean, the best candidate alone, the same
kernel with its labels shuffled, a mixture learned from shuffled candidates, a low-rank
kernel, and stacking.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wassemble.ensemble import fuse_tables
from wassemble.ensemble.learning import read_trial, shuffle_labels
from wassemble.ensemble.learning.kernel_learning import learn_kernel
from wassemble.ensemble.learning.kernel_losses import Calibration, each_loss, fit_calibration
from wassemble.ensemble.learning.learned_kernel import LearnedKernel
from wassemble.ensemble.learning.recipes import NAMES
from wassemble.ensemble.learning.stacking import fit_and_predict
from wassemble.errors import InvalidInputError
from wassemble.experiments.kernel_figures import (
    Row,
    average_rows,
    measure_rows,
    resample_units,
)
from wassemble.experiments.kernel_tasks import KERNEL_TASKS, KernelTask
from wassemble.experiments.records import describe_machine, publish, table
from wassemble.kernels import LabelledKernel
from wassemble.solvers import Unbalanced, arithmetic_mean

__all__ = ["Config", "main", "run"]

_LEARNED = "learned kernel"
_ANEW = "learned from shuffled candidates"
_LOW_RANK = "low-rank kernel"

_NOTE = """\
Accuracy and log-loss on test samples that took no part in anything before, with standard
errors by bootstrap (over languages for the detectors, else over samples). "Difference" is
the accuracy less that of the best candidate on the same samples, which is the candidate of
least loss on held-out samples that are not for test. Two standard
errors or more count as a difference. Log-loss is after a temperature that was fitted on samples
that are not for test; stacking gives probabilities of its own. Kernels from mistakes are
made from samples of their own while a mixture is learned, and from all that are not for
test in the end. Means and barycenters have the same weights."""


@dataclass(frozen=True)
class Config:
    """How kernels are learned."""

    tasks: tuple[str, ...] = tuple(KERNEL_TASKS)
    exponents: tuple[float, ...] = (0.5, 0.7, 0.9)  # mass_penalty / (mass_penalty + epsilon)
    sweeps: int = 5
    rank: int = 8
    max_epochs: int = 20
    patience: int = 5
    n_shuffles: int = 3
    seed: int = 0


def run(config: Config) -> dict[str, Any]:
    """Test figures of each rule on each task, with everything that made them."""
    started = time.perf_counter()
    return {
        "name": "learned_kernels",
        "config": asdict(config),
        "tasks": {name: _Runner(KERNEL_TASKS[name](), config).run() for name in config.tasks},
        "seconds": round(time.perf_counter() - started, 3),
        "versions": describe_machine(),
    }


class _Runner:
    """One task under way."""

    def __init__(self, task: KernelTask, config: Config) -> None:
        self.task = task
        self.config = config
        self.models, self.names = task.take(task.is_test)
        self.truth = task.task.target.positions(self.names)
        kept = ~task.is_test
        self.early = task.make_candidates(kept & ~task.learns)
        self.final = task.make_candidates(kept)
        self.exponent = min(config.exponents, key=self._least_loss)

    def run(self) -> dict[str, Any]:
        """Every rule on the test samples."""
        started = time.perf_counter()
        task, config = self.task, self.config
        learned = self._learn(self.early)
        kernels = learned.remix(self.final)
        best = learned.best_candidate
        rows = {
            "arithmetic mean": self._mean(),
            f"best candidate ({best.name})": self._row(
                None if best.name == NAMES else self.final[best.name], best.calibration
            ),
            _LEARNED: self._row(kernels, learned.calibration),
        }
        shuffles = [_shuffled(kernels, seed) for seed in range(config.n_shuffles)]
        judged = learned.judged[-config.n_shuffles :]
        rows["learned kernel, labels shuffled"] = average_rows(
            [self._row(k, j.calibration) for k, j in zip(shuffles, judged, strict=True)]
        )
        early = {name: _shuffled(given, config.seed) for name, given in self.early.items()}
        final = {name: _shuffled(given, config.seed) for name, given in self.final.items()}
        anew = self._learn(early)
        rows[_ANEW] = self._row(anew.remix(final), anew.calibration)
        refusal = None
        try:
            thin = self._learn(self.early, form="low rank", rank=config.rank)
            rows[_LOW_RANK] = self._row(thin.kernels, thin.calibration)
        except InvalidInputError as error:
            refusal = str(error).splitlines()[0]
        rows["stacking (logistic regression)"] = self._stacking()
        unit = [task.unit[i] for i in np.flatnonzero(task.is_test).tolist()]
        counts = resample_units(unit, config.seed)
        return {
            "title": task.task.title,
            "exponent": self.exponent,
            "n_test": len(self.names),
            "n_learning": int(task.learns.sum()),
            "n_candidates_from": int((~task.is_test & ~task.learns).sum()),
            "parameters": learned.parameters,
            "epochs": [asdict(epoch) for epoch in learned.history],
            "report": learned.report,
            "meaning_helped": learned.control.meaning_helped,
            "low_rank_refused": refusal,
            "figures": measure_rows(rows, f"best candidate ({best.name})", self.truth, counts),
            "seconds": round(time.perf_counter() - started, 3),
        }

    # -- rules -----------------------------------------------------------------------

    def _options(self, exponent: float) -> dict[str, Any]:
        return {
            "target": self.task.task.target,
            "kind": self.task.task.kind,
            "weights": self.task.weights,
            "unobserved": self.task.unobserved,
            "mass": Unbalanced(exponent, epsilon=1 - exponent),
        }

    def _learn(self, candidates: Mapping[str, Any], **form: Any) -> LearnedKernel:
        config = self.config
        models, names = self.task.take(self.task.learns)
        return learn_kernel(
            models,
            names,
            candidates=candidates,
            sweeps=config.sweeps,
            max_epochs=config.max_epochs,
            patience=config.patience,
            seed=config.seed,
            **self._options(self.exponent),
            **form,
        )

    def _least_loss(self, exponent: float) -> float:
        """Loss of the best candidate on the samples to learn on."""
        models, names = self.task.take(self.task.learns)
        truth = self.task.task.target.positions(names)
        losses = []
        for kernel in self.early.values():
            scores = self._fuse(models, kernel, exponent)
            fitted = fit_calibration(scores, truth, None, "multiclass")
            losses.append(each_loss(scores, truth, fitted.numbers, "multiclass").mean())
        return float(min(losses))

    def _fuse(self, models: list[Any], kernel: Any, exponent: float) -> np.ndarray:
        fusion = fuse_tables(
            models,
            kernel=kernel,
            max_iterations=self.config.sweeps,
            tolerance=None,
            **self._options(exponent),
        )
        return np.nan_to_num(fusion.consensus.scores.astype(np.float64))

    def _row(self, kernel: Any, calibration: Calibration) -> Row:
        scores = self._fuse(self.models, kernel, self.exponent)
        return Row(scores, each_loss(scores, self.truth, calibration.numbers, "multiclass"))

    def _mean(self) -> Row:
        """Over the models that declare a label, or through the carrier."""
        task = self.task
        options = self._options(self.exponent) | {"rule": arithmetic_mean, "leftover": 0.0}
        options["kernel"] = None if task.carrier is None else self.final[task.carrier]
        models, names = task.take(task.learns)
        seen = np.nan_to_num(fuse_tables(models, **options).consensus.scores)
        truth = task.task.target.positions(names)
        numbers = fit_calibration(seen, truth, None, "multiclass").numbers
        scores = np.nan_to_num(fuse_tables(self.models, **options).consensus.scores)
        scores = scores.astype(np.float64)
        return Row(scores, each_loss(scores, self.truth, numbers, "multiclass"))

    def _stacking(self) -> Row:
        task = self.task.task
        seen, names = self.task.take(~self.task.is_test)
        trial = read_trial(seen, names, target=task.target, kind=task.kind)
        features, others = (
            np.hstack([np.nan_to_num(model.scores) for model in models])
            for models in (seen, self.models)
        )
        scores = fit_and_predict(trial, features, others)
        return Row(scores, each_loss(scores, self.truth, (0.0,), "multiclass"))


def _shuffled(kernels: Any, seed: int) -> Any:
    """Kernels with their labels shuffled, in the same way for every model."""
    if isinstance(kernels, LabelledKernel):
        return shuffle_labels(kernels, seed)
    return {name: shuffle_labels(kernel, seed) for name, kernel in kernels.items()}


def write_report(record: dict[str, Any]) -> str:
    """The record as a page of Markdown."""
    parts = ["# Kernels learned through the solver\n"]
    for found in record["tasks"].values():
        rows = [
            [
                rule,
                f"{each['accuracy']:.4f} ± {each['accuracy_error']:.4f}",
                f"{each['difference']:+.4f} ± {each['difference_error']:.4f}",
                f"{each['log_loss']:.3f} ± {each['log_loss_error']:.3f}",
            ]
            for rule, each in found["figures"].items()
        ]
        parts.append(f"## {found['title']}\n")
        parts.append(_setting(found) + "\n")
        parts.append(table(["rule", "accuracy", "difference", "log-loss"], rows) + "\n")
        parts.append(_verdict(found) + "\n")
    return "\n".join([*parts, _NOTE, ""])


def _setting(found: dict[str, Any]) -> str:
    apart = found["n_candidates_from"]
    numbers = ", ".join(f"{name} {value:.2g}" for name, value in found["parameters"].items())
    return (
        f"Learned on {found['n_learning']:,} samples"
        + (f", candidates made from {apart:,} others" if apart else "")
        + f"; tested on {found['n_test']:,}. Exponent {found['exponent']:g}, the best of those"
        f" tried. The mixture: {numbers}."
    )


def _verdict(found: dict[str, Any]) -> str:
    """What helped and what did not, from the figures alone."""
    figures = found["figures"]
    best = next(rule for rule in figures if rule.startswith("best candidate"))
    sides: dict[str, list[str]] = {"better": [], "worse": [], "the same within noise": []}
    for rule, each in figures.items():
        if rule not in (best, _LEARNED):
            sides[_effect(each)].append(rule)
    own = figures[_LEARNED]
    words = {"better": "Learning helped", "worse": "Learning hurt"}
    lines = [
        f"{words.get(_effect(own), 'Learning made no difference beyond noise')}:"
        f" {own['difference']:+.4f} ± {own['difference_error']:.4f} in accuracy against the {best}."
    ]
    for side, rules in sides.items():
        if rules:
            lines.append(f"{side.capitalize()}: {', '.join(rules)}.")
    if found["low_rank_refused"]:
        lines.append(f"No low-rank kernel: {found['low_rank_refused']}")
    return "\n".join(lines)


def _effect(figure: dict[str, float]) -> str:
    gain, error = figure["difference"], figure["difference_error"]
    if gain == 0 or abs(gain) < 2 * error:
        return "the same within noise"
    return "better" if gain > 0 else "worse"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the tables and write ``learned_kernels.json`` and ``learned_kernels.md``."""
    parser = argparse.ArgumentParser(
        prog="python -m wassemble.experiments.learned_kernels",
        description="Kernels learned by gradients through the solver, on three tasks.",
    )
    parser.add_argument("tasks", nargs="*", metavar="task", help=", ".join(KERNEL_TASKS))
    parser.add_argument("--out", type=Path, default=Path("reports"), help="folder for the report")
    options = parser.parse_args(arguments)
    for name in options.tasks:
        if name not in KERNEL_TASKS:
            parser.error(f"a task must be one of {', '.join(KERNEL_TASKS)}; got {name!r}")
    config = Config(tasks=tuple(options.tasks) or Config.tasks)
    return publish(lambda: run(config), write_report, options.out)


if __name__ == "__main__":
    sys.exit(main())
