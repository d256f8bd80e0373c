"""Kernels learned through the solver, on three tasks.

A mixture of candidate kernels is learned on some of the samples that are not for test, and
measured on test samples against the mean, the best candidate alone, the same kernel with
its labels shuffled, a mixture learned from shuffled candidates, a low-rank kernel, and
stacking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from paper.attributes import undo
from paper.evidence.tasks import TASKS, Task, every_language
from paper.record.findings import Figure, Findings, Progress, Table, follow
from paper.record.judging import Judge
from wassemble.ensemble import Fusion
from wassemble.ensemble.completion import Unobserved
from wassemble.ensemble.learning import read_trial, shuffle_labels
from wassemble.ensemble.learning.kernels import LearnedKernel, learn_kernel
from wassemble.ensemble.learning.kernels.judging import Calibration, each_loss, fit_calibration
from wassemble.ensemble.learning.recipes import NAMES
from wassemble.ensemble.learning.stacks import fit_stacking
from wassemble.errors import InvalidInputError
from wassemble.inputs import load_animals
from wassemble.kernels import DenseKernel, LabelledKernel, from_attributes
from wassemble.metrics import ACCURACY, MEAN
from wassemble.solvers import ARITHMETIC, Barycenter, LogisticStacking, Unbalanced

_TEXT = """\
Accuracy and log-loss on test samples that nothing here was fitted on, with bootstrap
intervals (over languages for the detectors, else over samples). The best candidate is that
of least loss on the samples to learn on. Log-loss is after a temperature that was fitted on
samples to learn on; stacking gives probabilities of its own. Kernels from mistakes are made
from samples of their own while a mixture is learned, and from all that are not for test in
the end. Means and barycenters have the same weights. Stacking is trained on all samples that
are not for test. Defaults of `learn_kernel` (steps, penalties) were settled while these test
figures could be seen, so take small gains with care. Animals are circular: their attribute scores
are made from predicted classes through the table of the candidates."""

LEARNED = "learned kernel"
_ANEW = "learned from shuffled candidates"
_LOW_RANK = "low-rank kernel"


@dataclass(frozen=True)
class Config:
    """How kernels are learned."""

    tasks: tuple[str, ...] = ("languages", "cifar100", "animals")
    exponents: tuple[float, ...] = (0.5, 0.7, 0.9)  # mass_penalty / (mass_penalty + epsilon)
    sweeps: int = 5
    rank: int = 8
    max_epochs: int = 20
    patience: int = 5
    seed: int = 0


def run(config: Config, progress: Progress = None) -> Findings:
    """Test figures of each rule on each task."""
    found = [_Runner(KERNEL_TASKS[name](), config).run() for name in follow(config.tasks, progress)]
    verdict = _conclude({each.title: each for each in found})
    return Findings(_TEXT, [each.table for each in found], verdict=verdict)


class Learned(NamedTuple):
    """What learning gave on one task."""

    title: str
    table: Table
    gain: Figure  # in accuracy, over the best candidate alone
    is_circular: bool


def _conclude(found: Mapping[str, Learned]) -> str:
    """Whether learning helped, and why not where it did not."""
    real = {title: each.gain for title, each in found.items() if not each.is_circular}
    helped = [title for title, gain in real.items() if gain.low > 0]
    gains = "; ".join(f"{title}: {gain.words(4)}" for title, gain in real.items())
    circular = [each.gain.words(4) for each in found.values() if each.is_circular]
    beside = f"; where it is circular, {circular[0]}" if circular else ""
    return (
        f"A mixture learned through the solver gains accuracy over the best candidate alone on"
        f" {len(helped)} of {len(real)} tasks ({gains}{beside}): it mixes a few kernels by a few"
        " numbers, and one of them alone already says what it can."
    )


class Row(NamedTuple):
    """What one rule makes of the test samples: whether each is right, and its loss."""

    right: np.ndarray
    losses: np.ndarray


class _Runner:
    """One task under way: learns on some samples, and measures every rule on the test samples."""

    def __init__(self, task: KernelTask, config: Config) -> None:
        self.task, self.config = task, config
        self.models, names = task.task.part(True)
        self.truth = task.task.target.places(names)
        self.seen, self.seen_names = task.task.take(task.learns)
        self.seen_truth = task.task.target.places(self.seen_names)
        self.options: dict[str, Any] = {
            "target": task.task.target,
            "kind": task.task.kind,
            "weights": task.weights,
            "unobserved": task.unobserved,
        }
        kept = ~task.task.is_test
        self.early = task.make_candidates(kept & ~task.learns)
        self.final = task.make_candidates(kept)
        self.exponent = min(config.exponents, key=self._least_loss)

    def run(self) -> Learned:
        """Every rule on the test samples."""
        config = self.config
        learned = self._learn(self.early)
        kernels = learned.remix(self.final)
        candidates = [judged for judged in learned.judged if judged.is_candidate]
        # Of least loss on all samples to learn on: what one would do without learning.
        best = min(
            candidates, key=lambda j: learned.n_train * j.train_loss + learned.n_held_out * j.loss
        )
        rows = {"arithmetic mean": self._mean()}
        for judged in candidates:
            kernel = None if judged.name == NAMES else self.final[judged.name]
            title = f"{'best ' if judged is best else ''}candidate ({judged.name})"
            rows[title] = self._through(kernel, judged.calibration)
        rows[LEARNED] = self._through(kernels, learned.calibration)
        shuffles = [
            self._through(_shuffled(kernels, seed), judged.calibration)
            for seed, judged in enumerate(learned.shuffled)
        ]
        rows["learned kernel, labels shuffled"] = Row(*np.mean(shuffles, axis=0))
        early, final = (
            {name: _shuffled(given, config.seed) for name, given in candidates.items()}
            for candidates in (self.early, self.final)
        )
        anew = self._learn(early)
        rows[_ANEW] = self._through(anew.remix(final), anew.calibration)
        # A kernel for all models has fewer numbers than one for each.
        shared = {n: k for n, k in self.early.items() if isinstance(k, LabelledKernel)}
        refusal = None
        try:
            thin = self._learn(shared or self.early, form="low rank", rank=config.rank)
            rows[_LOW_RANK] = self._through(thin.kernels, thin.calibration)
        except InvalidInputError as error:
            refusal = str(error).splitlines()[0]
        rows["stacking (logistic regression)"] = self._stacking()
        return self._table(rows, f"best candidate ({best.name})", learned, refusal)

    def _table(
        self, rows: Mapping[str, Row], best: str, learned: LearnedKernel, refusal: str | None
    ) -> Learned:
        task = self.task
        unit = list(compress(task.unit, task.task.is_test))
        judge = Judge(MEAN, self.truth, groups=unit, seed=self.config.seed)
        right = {name: row.right for name, row in rows.items()}
        against = [
            ("Learning", best, f"the {best}"),
            ("The labels' meaning", _ANEW, "a mixture learned from shuffled candidates"),
        ]
        lines = [self._setting(learned)]
        for title, name, words in against:
            gain = judge.gain(right[LEARNED], right[name])
            loss = judge.gain(rows[LEARNED].losses, rows[name].losses)
            lines.append(say_effect(title, gain, loss, words))
        lines += [
            f"The {name} alone, which was not chosen, is as good: {judge.score(mine):.4f}."
            for name, mine in right.items()
            if name.startswith("candidate") and judge.score(mine) >= judge.score(right[LEARNED])
        ]
        if refusal:
            lines.append(f"No low-rank kernel: {refusal}")
        if task.undone:
            others = (f"the {name} has {score:.4f}" for name, score in task.undone.items())
            lines.append(f"Circular: beside all of these, {' and '.join(others)}.")
        table = Table(
            task.task.title + (" (circular)" if task.undone else ""),
            ["rule", "accuracy", "gain over the best candidate", "log-loss"],
            [
                [name, *cells, judge.figure(rows[name].losses)]
                for name, cells in judge.compare(right, best).items()
            ],
            digits=4,
            note=" ".join(lines),
        )
        gain = judge.gain(right[LEARNED], right[best])
        return Learned(task.task.title, table, gain, bool(task.undone))

    def _setting(self, learned: LearnedKernel) -> str:
        task = self.task
        apart = int((~task.task.is_test & ~task.learns).sum())
        numbers = ", ".join(f"{name} {value:.2g}" for name, value in learned.parameters.items())
        return (
            f"Learned on {int(task.learns.sum()):,} samples"
            + (f", candidates made from {apart:,} others" if apart else "")
            + f"; tested on {len(self.truth):,}. Exponent {self.exponent:g}, the best of those"
            f" tried. The mixture is from epoch {learned.best_epoch.number} of"
            f" {len(learned.history) - 1} (0 is the start): {numbers}."
        )

    def _learn(self, candidates: Mapping[str, Any], **form: Any) -> LearnedKernel:
        return learn_kernel(
            self.seen,
            self.seen_names,
            candidates=candidates,
            rule=self._rule(self.exponent),
            max_epochs=self.config.max_epochs,
            patience=self.config.patience,
            seed=self.config.seed,
            **self.options,
            **form,
        )

    def _least_loss(self, exponent: float) -> float:
        """Loss of the best candidate on the samples to learn on."""
        losses = []
        for kernel in self.early.values():
            scores = self._barycenter(self.seen, kernel, exponent)
            numbers = fit_calibration(scores, self.seen_truth, None, "multiclass").numbers
            losses.append(each_loss(scores, self.seen_truth, numbers, "multiclass").mean())
        return float(min(losses))

    def _barycenter(self, models: list[Any], kernel: Any, exponent: float) -> np.ndarray:
        scores = Fusion(self._rule(exponent), kernel, **self.options).fuse(models).scores
        return np.nan_to_num(scores.astype(np.float64))

    def _rule(self, exponent: float) -> Barycenter:
        mass = Unbalanced(exponent, epsilon=1 - exponent)
        return Barycenter(mass, max_sweeps=self.config.sweeps, tolerance=None)

    def _row(self, scores: np.ndarray, numbers: Any) -> Row:
        assert ACCURACY.each is not None
        losses = each_loss(scores, self.truth, numbers, "multiclass")
        return Row(ACCURACY.each(scores, self.truth).astype(float), losses)

    def _through(self, kernel: Any, calibration: Calibration) -> Row:
        scores = self._barycenter(self.models, kernel, self.exponent)
        return self._row(scores, calibration.numbers)

    def _mean(self) -> Row:
        """Over the models that declare a label, or through the carrier."""
        carrier = self.task.carrier
        kernel = None if carrier is None else self.final[carrier]
        fusion = Fusion(ARITHMETIC, kernel, leftover=0.0, **self.options)
        seen, scores = (
            np.nan_to_num(fusion.fuse(models).scores) for models in (self.seen, self.models)
        )
        numbers = fit_calibration(seen, self.seen_truth, None, "multiclass").numbers
        return self._row(scores.astype(np.float64), numbers)

    def _stacking(self) -> Row:
        task = self.task.task
        seen, names = task.part(False)
        trial = read_trial(seen, names, target=task.target, kind=task.kind)
        features, others = (
            np.hstack([np.nan_to_num(model.scores) for model in models])
            for models in (seen, self.models)
        )
        rule = LogisticStacking("multiclass", strength=10.0)
        fitted = fit_stacking(rule, features, trial.truth, len(task.target)).arrays
        margins = others @ fitted["coefficients"].T + fitted["intercepts"]
        return self._row(rule.to_scores(margins), (0.0,))


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
    return f"{title} {effect}: accuracy {gain.words(4)}, log-loss {loss.words()} against {other}."


@dataclass(frozen=True, eq=False)
class KernelTask:
    """A task and what a kernel is learned from."""

    task: Task
    learns: np.ndarray  # samples to learn on; those that are neither this nor test make candidates
    make_candidates: Callable[[np.ndarray], dict[str, Any]]  # from the samples of a mask
    weights: np.ndarray  # (n_models,)
    unit: Sequence[str]  # samples of the same unit stand and fall together
    carrier: str | None = None  # the candidate that a mean goes through; None: names will do
    unobserved: Unobserved = "spread"
    # Test accuracy of what undoes the circle, where models' scores are made through the candidates.
    undone: Mapping[str, float] = field(default_factory=dict)


def animals() -> KernelTask:
    """Attributes to animals: no label of the models is a target label."""
    task = TASKS["animals"]()
    table = task.kernels["attributes"].to_dense() > 0
    source, target = task.models[0].labels, task.target
    columns = table / table.sum(axis=0)
    # Animals with the same attributes are close: the cosine between columns.
    unit = table / np.sqrt(table.sum(axis=0))
    close = (unit.T @ unit) ** 8
    tables = {
        "rows": (table / table.sum(axis=1, keepdims=True), "attributes, rows divided by sums"),
        "similar animals": (columns @ (close / close.sum(axis=0)), "attributes of similar animals"),
        "every animal": (np.ones(table.shape), "every attribute to every animal"),
    }
    candidates: dict[str, Any] = {
        name: LabelledKernel(DenseKernel(entries), source, target, origin)
        for name, (entries, origin) in tables.items()
    }
    candidates["columns"] = from_attributes(table, source, target)
    even = np.full(len(task.models), 1 / len(task.models))
    data = load_animals()
    undone = {
        name: ACCURACY.score(scores[data.is_test], data.truth[data.is_test])
        for name, scores in undo(data).items()
    }
    return KernelTask(
        task, ~task.is_test, lambda _: candidates, even, _ids(task), "columns", undone=undone
    )


def languages() -> KernelTask:
    """Nine label sets: candidates are each detector's mistakes, with several priors."""
    task = every_language()
    weights = task.weights_by_accuracy()

    def candidates(rows: np.ndarray) -> dict[str, Any]:
        return {
            f"mistakes, prior {prior:g}": task.kernels_of_mistakes(rows, prior=prior)
            for prior in (0.03, 0.2, 1.0)
        }

    return KernelTask(task, task.last_of_each(), candidates, weights, task.truth, unobserved="drop")


def cifar100() -> KernelTask:
    """Three networks over the same hundred classes: word vectors, a tree, and mistakes."""
    task = TASKS["cifar100"]()
    # Every third sample that is not for test makes candidates.
    learns = ~task.is_test & (np.cumsum(~task.is_test) % 3 != 0)

    def candidates(rows: np.ndarray) -> dict[str, Any]:
        return {**task.kernels, "mistakes": task.kernels_of_mistakes(rows, prior=0.2)}

    return KernelTask(task, learns, candidates, task.weights_by_accuracy(), _ids(task))


def _ids(task: Task) -> list[str]:
    return [str(sample) for sample in task.models[0].samples.tolist()]


KERNEL_TASKS = {make.__name__: make for make in (animals, languages, cifar100)}
