"""Kernels learned through the solver, on three tasks.

A mixture of candidate kernels is learned on some of the samples that are not for test, and
measured on test samples against the mean, the best candidate alone, the same kernel with
its labels shuffled, a mixture learned from shuffled candidates, a low-rank kernel, and
stacking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from paper.learned_kernels.figures import Row, Rows, average_rows
from paper.learned_kernels.tasks import KERNEL_TASKS, KernelTask
from paper.record.findings import Cell, Figure, Findings, Progress, Table
from wassemble.ensemble import Fusion
from wassemble.ensemble.learning import read_trial, shuffle_labels
from wassemble.ensemble.learning.kernels import LearnedKernel, learn_kernel
from wassemble.ensemble.learning.kernels.judging import (
    Calibration,
    Judged,
    each_loss,
    fit_calibration,
)
from wassemble.ensemble.learning.recipes import NAMES
from wassemble.ensemble.learning.stacking import fit_stacking
from wassemble.errors import InvalidInputError
from wassemble.kernels import LabelledKernel
from wassemble.solvers import ARITHMETIC, Barycenter, Unbalanced

__all__ = ["Config", "run", "say_effect"]

_TEXT = """\
Accuracy and log-loss on test samples that nothing here was fitted on, with bootstrap
intervals (over languages for the detectors, else over samples). The best candidate is that
of least loss on the samples to learn on. Log-loss is after a temperature that was fitted on
samples to learn on; stacking gives probabilities of its own. Kernels from mistakes are made
from samples of their own while a mixture is learned, and from all that are not for test in
the end. Means and barycenters have the same weights. Stacking is trained on all samples that
are not for test. Defaults of `learn_kernel` (steps, penalties) were settled while these test
figures could be seen, so take small gains with care."""

LEARNED = "learned kernel"
_ANEW = "learned from shuffled candidates"
_LOW_RANK = "low-rank kernel"


@dataclass(frozen=True)
class Config:
    """How kernels are learned."""

    tasks: tuple[str, ...] = tuple(KERNEL_TASKS)
    exponents: tuple[float, ...] = (0.5, 0.7, 0.9)  # mass_penalty / (mass_penalty + epsilon)
    sweeps: int = 5
    rank: int = 8
    max_epochs: int = 20
    patience: int = 5
    seed: int = 0


def run(config: Config, progress: Progress = None) -> Findings:
    """Test figures of each rule on each task."""
    tables = []
    for number, name in enumerate(config.tasks):
        if progress is not None:
            progress(number, len(config.tasks))
        tables.append(_Runner(KERNEL_TASKS[name](), config).run())
    return Findings(text=_TEXT, tables=tables)


class _Runner:
    """One task under way: learns on some samples, and measures every rule on the test samples."""

    def __init__(self, task: KernelTask, config: Config) -> None:
        self.task = task
        self.config = config
        self.models, self.names = task.take(task.is_test)
        self.truth = task.task.target.positions(self.names)
        kept = ~task.is_test
        self.early = task.make_candidates(kept & ~task.learns)
        self.final = task.make_candidates(kept)
        self.exponent = min(config.exponents, key=self._least_loss)

    def run(self) -> Table:
        """Every rule on the test samples."""
        config = self.config
        learned = self._learn(self.early)
        kernels = learned.remix(self.final)
        best = self._choose(learned)
        rows = {"arithmetic mean": self._mean()}
        for judged in learned.judged:
            if judged.is_candidate:
                kernel = None if judged.name == NAMES else self.final[judged.name]
                title = f"{'best ' if judged is best else ''}candidate ({judged.name})"
                rows[title] = self._row(kernel, judged.calibration)
        rows[LEARNED] = self._row(kernels, learned.calibration)
        shuffles = [_shuffled(kernels, seed) for seed in range(len(learned.shuffled))]
        rows["learned kernel, labels shuffled"] = average_rows(
            [
                self._row(kernel, judged.calibration)
                for kernel, judged in zip(shuffles, learned.shuffled, strict=True)
            ]
        )
        early = {name: _shuffled(given, config.seed) for name, given in self.early.items()}
        final = {name: _shuffled(given, config.seed) for name, given in self.final.items()}
        anew = self._learn(early)
        rows[_ANEW] = self._row(anew.remix(final), anew.calibration)
        # A kernel for all models has fewer numbers than one for each.
        shared = {n: k for n, k in self.early.items() if isinstance(k, LabelledKernel)}
        refusal = None
        try:
            thin = self._learn(shared or self.early, form="low rank", rank=config.rank)
            rows[_LOW_RANK] = self._row(thin.kernels, thin.calibration)
        except InvalidInputError as error:
            refusal = str(error).splitlines()[0]
        rows["stacking (logistic regression)"] = self._stacking()
        return self._table(rows, f"best candidate ({best.name})", learned, refusal)

    def _table(
        self, rows: Mapping[str, Row], best: str, learned: LearnedKernel, refusal: str | None
    ) -> Table:
        task = self.task
        unit = [task.unit[i] for i in np.flatnonzero(task.is_test).tolist()]
        judged = Rows(self.truth, unit, self.config.seed)
        cells: list[list[Cell]] = [
            [
                name,
                judged.accuracy(row),
                None if name == best else judged.gain(row, rows[best]),
                judged.log_loss(row),
            ]
            for name, row in rows.items()
        ]
        own, anew = rows[LEARNED], rows[_ANEW]
        against = [
            ("Learning", own, rows[best], f"the {best}"),
            ("The labels' meaning", own, anew, "a mixture learned from shuffled candidates"),
        ]
        lines = [self._setting(learned)]
        lines += [
            say_effect(title, judged.gain(a, b), judged.loss_difference(a, b), name)
            for title, a, b, name in against
        ]
        mine = judged.accuracy(own).value
        lines += [
            f"The {name} alone, which was not chosen, is as good: {judged.accuracy(row).value:.4f}."
            for name, row in rows.items()
            if name.startswith("candidate") and judged.accuracy(row).value >= mine
        ]
        if refusal:
            lines.append(f"No low-rank kernel: {refusal}")
        columns = ["rule", "accuracy", "gain over the best candidate", "log-loss"]
        return Table(task.task.title, columns, cells, digits=4, note=" ".join(lines))

    def _setting(self, learned: LearnedKernel) -> str:
        task = self.task
        apart = int((~task.is_test & ~task.learns).sum())
        numbers = ", ".join(f"{name} {value:.2g}" for name, value in learned.parameters.items())
        return (
            f"Learned on {int(task.learns.sum()):,} samples"
            + (f", candidates made from {apart:,} others" if apart else "")
            + f"; tested on {len(self.names):,}. Exponent {self.exponent:g}, the best of those"
            f" tried. The mixture is from epoch {learned.best_epoch.number} of"
            f" {len(learned.history) - 1} (0 is the start): {numbers}."
        )

    @staticmethod
    def _choose(learned: LearnedKernel) -> Judged:
        """The candidate of least loss on all samples to learn on: what one would do without."""

        def loss(judged: Judged) -> float:
            return learned.n_train * judged.train_loss + learned.n_held_out * judged.loss

        return min((j for j in learned.judged if j.is_candidate), key=loss)

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
        options = self._options(exponent)
        rule = Barycenter(options.pop("mass"), max_sweeps=self.config.sweeps, tolerance=None)
        fusion = Fusion(rule, kernel, **options)
        return np.nan_to_num(fusion.fuse(models).scores.astype(np.float64))

    def _row(self, kernel: Any, calibration: Calibration) -> Row:
        scores = self._fuse(self.models, kernel, self.exponent)
        return Row(scores, each_loss(scores, self.truth, calibration.numbers, "multiclass"))

    def _mean(self) -> Row:
        """Over the models that declare a label, or through the carrier."""
        task = self.task
        options = self._options(self.exponent)
        del options["mass"]
        kernel = None if task.carrier is None else self.final[task.carrier]
        fusion = Fusion(ARITHMETIC, kernel, **options | {"leftover": 0.0})
        models, names = task.take(task.learns)
        seen = np.nan_to_num(fusion.fuse(models).scores)
        truth = task.task.target.positions(names)
        numbers = fit_calibration(seen, truth, None, "multiclass").numbers
        scores = np.nan_to_num(fusion.fuse(self.models).scores)
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
        scores = fit_stacking(trial, features).predict(others)
        return Row(scores, each_loss(scores, self.truth, (0.0,), "multiclass"))


def _shuffled(kernels: Any, seed: int) -> Any:
    """Kernels with their labels shuffled, in the same way for every model."""
    if isinstance(kernels, LabelledKernel):
        return shuffle_labels(kernels, seed)
    return {name: shuffle_labels(kernel, seed) for name, kernel in kernels.items()}


def say_effect(title: str, gain: Figure, loss: Figure, other: str) -> str:
    """What made a difference and what did not, from the figures alone."""
    effect = "made no difference to accuracy beyond noise"
    if gain.low > 0 or gain.high < 0:
        effect = "helped" if gain.low > 0 else "hurt"
    return (
        f"{title} {effect}: accuracy {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}],"
        f" log-loss {loss.value:+.3f} [{loss.low:+.3f}, {loss.high:+.3f}] against {other}."
    )
