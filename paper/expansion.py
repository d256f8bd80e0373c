"""A consensus over more labels than any model has (table 12, vocabulary expansion).

Models lose a fifth of their labels, each its own or all the same. How much of what belongs
to a hidden label comes back, through what is known about labels and through the others?
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import compress, pairwise, product
from typing import Any

import numpy as np
import scipy.sparse as sp

from paper.data.captions import load_captions
from paper.data.coco import load_coco_captions
from paper.data.imagenet import load_imagenet, score_ranks
from paper.record.findings import Claim, Figure, Findings, Plot, Progress, Table, fill, follow
from paper.record.judging import Judge, tune
from paper.record.verdicts import all_hold, conclude, held, is_within, smallest_visible
from paper.words.models import load_glove
from wassemble.ensemble import Fusion
from wassemble.ensemble.learning.temperature import temper
from wassemble.errors import InputWarning
from wassemble.inputs import Embeddings, Predictions
from wassemble.kernels import LabelledKernel, SparseKernel, from_tree, from_word_vectors
from wassemble.kernels.builders.cost import local_bandwidths
from wassemble.labels import LabelSpace
from wassemble.metrics import MEAN
from wassemble.solvers import ARITHMETIC, GEOMETRIC, Barycenter, PowerMean, Rule, Unbalanced

_TEXT = """\
Eight ImageNet networks give their five best classes of 1,000; four next-word models count pairs
of words in a quarter each of the captions of {n_train:,} COCO images, over 10,000 words, and are
asked about captions of other images. Then {share:.0%} of
the labels are hidden: each model lacks its own, or all lack the same. Hidden classes are struck
from the five best (the next move up; a rank scores how often the truth stood there on other
images, and what five ranks do not reach is spread over the network's other classes); hidden
words are struck from the counts, which are divided by what is left. The {n_frequent} most
frequent words are never hidden. K = exp(-cost / epsilon) of the {n_neighbors} nearest labels; for
words the cost is half the squared distance of their unit GloVe vectors (1 - cosine), for classes it
is Lin's, in the WordNet tree. "Local" kernels measure each cost by those of both labels' neighbours
of number {local_bandwidth} (ours, not the paper's).
Everything tuned has the best mean log-likelihood of all validation samples, whether their label is
hidden or not: a rule pays for what it gives to hidden labels where it is wrong. Rules differ in how
sure they are, which a log-likelihood would mistake for a merit: each rule's scores, those of
"nothing hidden" among them, have one temperature, which is tuned likewise. All of it is done for
{n_draws} draws, each of hidden labels and of samples, with everything tuned anew; figures are means
over draws, and in brackets is their range."""

_NOTE = """\
By draw {n_hidden} of {n_test:,} test samples have a label that is hidden from {whom}; the columns
"hidden" are of them. Mass is what the true label gets, "recovered" its share of what the mean of
the whole models gives it; both are after calibration, so that a rule that was tuned to be surer
than the whole models' mean may have more than all of it. Log-likelihoods take at least {floor:g}
for the true label. L1 is the mean distance to the mean of the whole models, over all test rows.
Rules down to "spread evenly" use no meaning; the others do, by the same similarities. The two means
through K carry each model linearly first, so what the barycenter gains over the better of them is
the transport's share. A rule may win on hidden labels what it loses on others: the log-likelihood
of all samples is the balance, and what was tuned for. Tuned: {knobs}."""

_LOCAL_COLUMNS = [
    "task",
    *("linear, hidden", "linear, all"),
    *("geometric, hidden", "geometric, all"),
    *("barycenter, hidden", "barycenter, all"),
]
_LOCAL_NOTE = """\
Gains in log-likelihood of kernels whose costs are measured by both labels' neighbours over kernels
with one epsilon for all, of the same rule, each tuned: the mean over draws, and their range."""

_WHY = """\
the paper has no figure, so a claim holds where each draw shows a gain at no cost, and fails where
each shows the opposite; where all models lack the same labels, what knows neighbours is far ahead
of what does not, and carrying mass along K linearly does about as much as a barycenter; elsewhere a
cost of {margin:g} to all labels is less than so many samples can rule out"""

_DIFFERENCE = """\
the paper names the task and gives no figure. Its barycenter is balanced; where models
lack different labels no consensus can balance them all, so ours is unbalanced with weights that
let a model keep most of its silence on labels that it does not know (leftover)."""

# What a log-likelihood takes at least: some rules give a hidden label nothing.
FLOOR = 1e-6
# What a log-likelihood of all samples may fall by "at no cost": a hundredth of a likelihood.
MARGIN = 0.01
# Classes and words count as hidden samples from this share of models that lack them on.
_LACKING = 1 / 3
_AGAINST = {
    "an even spread or the nearest neighbour": ("spread evenly", "nearest neighbour"),
    "means through the same kernels": ("linear through K", "geometric mean through K"),
}
_LOCAL = ", local"
# Columns whose range over draws is shown.
_RANGED = ("mass, hidden", "log-likelihood, hidden", "log-likelihood, all")
# What a rule's scores are raised to the inverse of.
_TEMPERATURES = tuple(float(each) for each in 2 ** np.arange(-1.5, 1.75, 0.25))


@dataclass(frozen=True)
class Grid:
    """What is tried."""

    orders: tuple[float, ...] = (0.25, 0.5, 2.0)
    # What a label passes on to hidden ones for 1 that it keeps: all of it evenly or to each
    # that it is nearest to; and times similarity, in kernels.
    given: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    kernel_given: tuple[float, ...] = (0.03, 0.1, 1.0, 5.0, 20.0)
    epsilons: tuple[float, ...] = (0.1, 0.2)
    local_epsilons: tuple[float, ...] = (0.3, 1.0)  # of costs measured by neighbours
    leftover: float = 0.05  # share of its weight that a model keeps on labels it does not know
    exponents: tuple[float, ...] = (0.9, 0.97)  # mass_penalty / (mass_penalty + epsilon)
    n_sweeps: int = 3


@dataclass(frozen=True)
class Config:
    """Knobs, and what is tried on validation samples."""

    share: float = 0.2
    n_neighbors: int = 20
    local_bandwidth: int = 5
    n_images: tuple[int, int] = (300, 1500)
    n_pairs: tuple[int, int] = (3000, 6000)
    n_contexts: int = 100
    n_frequent: int = 100
    n_word_models: int = 4
    backoff: float = 10.0
    grid: Grid = field(default_factory=Grid)
    # Of draws, each of hidden labels and samples of its own.
    seeds: tuple[int, ...] = (0, 1, 2)


def run(config: Config, progress: Progress = None) -> Findings:
    """Mass, ranks and likelihood of hidden labels by each rule, on classes and on words."""
    loads = {"classes": load_images, "words": load_words}
    draws: dict[str, _Draws] = {}
    for alike, kind, seed in follow(list(product((False, True), loads, config.seeds)), progress):
        title = f"{kind.capitalize()}, {'the same' if alike else 'others'} hidden from each model"
        study = _Study(loads[kind](config, alike=alike, seed=seed), config.grid, seed)
        draws.setdefault(title, _Draws(title)).studies.append(study)
    claims = [claim for each in draws.values() for claim in each.claims()]
    ours = [each.local_claim() for each in draws.values()]
    local = Table(
        "Costs measured by neighbours",
        _LOCAL_COLUMNS,
        [each.local() for each in draws.values()],
        note=_LOCAL_NOTE,
    )
    return Findings(
        text=fill(_TEXT, config, n_draws=len(config.seeds), n_train=len(load_coco_captions())),
        tables=[*(each.table() for each in draws.values()), local],
        plots=[_plot(draws.values())],
        claims=[*claims, *ours],
        verdict=conclude(claims, _WHY.format(margin=MARGIN)),
        difference=_DIFFERENCE,
    )


class _Study:
    """What each rule makes of one draw of a task."""

    def __init__(self, task: Expansion, grid: Grid, seed: int) -> None:
        rules = Rules(task, grid)
        self.task = task
        self.whole = rules.calibrate(rules.whole, "nothing hidden")
        self.found = rules.all()
        self.knobs, self.validation = rules.knobs, rules.validation
        lacking = (~task.is_known).mean(axis=0)[task.truth]
        self.hidden = np.flatnonzero(task.is_test & (lacking >= _LACKING))
        self.test = np.flatnonzero(task.is_test)
        self.alike = bool((task.is_known == task.is_known[0]).all())
        self.judge, self.judge_all = (
            Judge(MEAN, part, groups=task.groups[part].tolist(), seed=seed)
            for part in (self.hidden, self.test)
        )

    def mass(self, scores: np.ndarray, samples: np.ndarray) -> np.ndarray:
        """What the true label gets."""
        return scores[self.task.row[samples], self.task.truth[samples]].astype(np.float64)

    def likelihood(self, scores: np.ndarray, samples: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(self.mass(scores, samples), FLOOR))

    def recovered(self, scores: np.ndarray) -> float:
        """The share that hidden labels get of what whole models give them."""
        own, ceiling = (self.mass(each, self.hidden).mean() for each in (scores, self.whole))
        return float(own / ceiling)

    def figures(self) -> dict[str, dict[str, float]]:
        """Of each rule, by the columns of the table."""
        return {
            name: self._figures(scores)
            for name, scores in {"nothing hidden": self.whole, **self.found}.items()
        }

    def _figures(self, scores: np.ndarray) -> dict[str, float]:
        rank = ranks(scores[self.task.row[self.hidden]], self.task.truth[self.hidden])
        seen = np.unique(self.task.row[self.test])
        return {
            "mass, hidden": self.mass(scores, self.hidden).mean(),
            "recovered": self.recovered(scores),
            "top 1, hidden": (rank < 2).mean(),
            "top 5, hidden": (rank < 6).mean(),
            "log-likelihood, hidden": self.likelihood(scores, self.hidden).mean(),
            "log-likelihood, all": self.likelihood(scores, self.test).mean(),
            "L1 to nothing hidden": np.abs(scores[seen] - self.whole[seen]).sum(axis=1).mean(),
        }

    def gains(self, name: str, over: str) -> tuple[Figure, Figure]:
        """Gains in log-likelihood, of hidden labels and of all."""
        pair = self.found[name], self.found[over]
        of_hidden, of_all = (
            judge.gain(*(self.likelihood(scores, part) for scores in pair))
            for judge, part in ((self.judge, self.hidden), (self.judge_all, self.test))
        )
        return of_hidden, of_all


@dataclass(frozen=True)
class _Draws:
    """One task, drawn several times: figures are means over draws, with their range."""

    title: str
    studies: list[_Study] = field(default_factory=list)

    def table(self) -> Table:
        figures = [study.figures() for study in self.studies]
        rows = []
        for name, first in figures[0].items():
            row: dict[str, Any] = {"rule": name}
            for column in first:
                each = _range([own[name][column] for own in figures])
                row[column] = each if column in _RANGED else each.value
            rows.append(row)
        first_study = self.studies[0]
        note = _NOTE.format(
            n_hidden=" or ".join(f"{len(study.hidden):,}" for study in self.studies),
            n_test=len(first_study.test),
            whom="every model" if first_study.alike else "a third of the models or more",
            floor=FLOOR,
            knobs="; ".join(f"{name}: {self._tell_knobs(name)}" for name in first_study.knobs),
        )
        return Table.of(self.title, rows, {"rule": 0, "mass, hidden": 4}, note)

    def _tell_knobs(self, name: str) -> str:
        """What was chosen for a rule, once where draws agree."""
        return " or ".join(dict.fromkeys(study.knobs[name] for study in self.studies))

    def claims(self) -> list[Claim]:
        claims = []
        for what, others in _AGAINST.items():
            over = max(others, key=self._validation)
            claims.append(
                self._claim(
                    f"at no cost to other labels (at most {MARGIN:g} in the log-likelihood of all),"
                    f" transport recovers hidden ones better than {what} ({self.title})",
                    "table 12",
                    "barycenter",
                    over,
                    lambda of_hidden, of_all: all_hold([held(of_hidden), costs_nothing(of_all)]),
                )
            )
        return claims

    def local_claim(self) -> Claim:
        """That costs measured by neighbours serve the barycenter better, all samples counted."""
        return self._claim(
            f"costs measured by neighbours serve the barycenter better, in the log-likelihood of"
            f" all samples ({self.title})",
            "ours",
            "barycenter" + _LOCAL,
            "barycenter",
            lambda of_hidden, of_all: held(of_all),
        )

    def _claim(
        self,
        statement: str,
        source: str,
        name: str,
        over: str,
        judge: Callable[[Figure, Figure], bool | None],
    ) -> Claim:
        """What ``judge`` says of the gains on hidden labels and on all, where draws agree."""
        gains = [study.gains(name, over) for study in self.studies]
        of_hidden, of_all = _mean_gains(gains)
        verdicts = [judge(own, both) for own, both in gains]
        power, of_cost = np.mean([[smallest_visible(each) for each in pair] for pair in gains], 0)
        return Claim(
            statement,
            source,
            verdicts[0] if len(set(verdicts)) == 1 else None,
            f"log-likelihood of hidden labels {of_hidden.words()}, of all {of_all.words()}, over"
            f" {over}; holds in {verdicts.count(True)} of {len(verdicts)} draws, fails in"
            f" {verdicts.count(False)}",
            f"{power:.3f}, of all {of_cost:.3f}",
        )

    def _validation(self, name: str) -> float:
        return float(np.mean([study.validation[name] for study in self.studies]))

    def local(self) -> list[Any]:
        """What measuring costs by neighbours gains, for each rule through a kernel."""
        cells: list[Any] = [self.title]
        for name in ("linear through K", "geometric mean through K", "barycenter"):
            gains = [study.gains(name + _LOCAL, name) for study in self.studies]
            cells += _mean_gains(gains)
        return cells

    def recovered(self) -> dict[str, float]:
        """By rule, the share of hidden labels' mass that comes back."""
        names = ("mean of those who know", *self.studies[0].validation)
        return {
            name: float(np.mean([study.recovered(study.found[name]) for study in self.studies]))
            for name in names
            if name in self.studies[0].found
        }


def costs_nothing(gain: Figure) -> bool | None:
    """Whether a change is at most a loss of ``MARGIN``; None if its interval cannot tell.

    Examples
    --------
    >>> losses = (-0.004, 0.002), (-0.014, -0.006), (-0.03, -0.02)
    >>> [costs_nothing(Figure((low + high) / 2, low, high)) for low, high in losses]
    [True, None, False]
    """
    return is_within(gain, -MARGIN, np.inf)


def _mean_gains(gains: Sequence[Sequence[Figure]]) -> list[Figure]:
    """By column, the mean of the gains of all draws, and their range."""
    columns = zip(*gains, strict=True)
    return [_range([each.value for each in column], is_gain=True) for column in columns]


def _range(values: Sequence[float], *, is_gain: bool = False) -> Figure:
    """The mean of some draws, with the least and the largest of them."""
    return Figure(float(np.mean(values)), float(min(values)), float(max(values)), is_gain=is_gain)


def ranks(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Rank of the true label, from 1; among labels of the same score, the middle."""
    own = scores[np.arange(len(truth)), truth][:, None]
    above, same = (scores > own).sum(axis=1), (scores == own).sum(axis=1)
    return np.asarray(1 + above + (same - 1) / 2)


def _plot(draws: Iterable[_Draws]) -> Plot:
    lines: dict[str, list[tuple[float | str, float]]] = {}
    for each in draws:
        short = each.title.split(" hidden")[0]
        for name, share in each.recovered().items():
            lines.setdefault(name, []).append((short, share))
    title = "Mass of hidden labels that comes back"
    return Plot("recovered", title, "", "share of what whole models give", lines)


def _scores(fusion: Fusion, models: Sequence[Predictions]) -> np.ndarray:
    """The consensus. That no model knows a hidden label is what is studied, and no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return fusion.run(models).consensus.scores


Consensus = Callable[[Any], np.ndarray]
"""What a rule makes of some rows, given by an index."""


class Rules:
    """Consensus of each rule over the rows of a task, with its knobs in words."""

    def __init__(self, task: Expansion, grid: Grid) -> None:
        self.task, self.grid = task, grid
        self.knobs: dict[str, str] = {}
        self.validation: dict[str, float] = {}  # of what was tuned
        self._tuning_rows = np.unique(task.row[~task.is_test])

    @cached_property
    def whole(self) -> np.ndarray:
        """The mean of the models with nothing hidden."""
        return Fusion(ARITHMETIC).run(self.task.whole).consensus.scores

    @cached_property
    def alone(self) -> dict[str, np.ndarray]:
        """Each model over the target labels; 0 where it knows none."""
        fusion = Fusion(ARITHMETIC, target=self.task.target, leftover=1)
        return {model.model: _scores(fusion, [model]) for model in self.task.models}

    def all(self) -> dict[str, np.ndarray]:
        """Every rule, tuned, at its own temperature."""
        found = self.uncalibrated()
        return {name: self.calibrate(scores, name) for name, scores in found.items()}

    def uncalibrated(self) -> dict[str, np.ndarray]:
        """Every rule, tuned, as it comes."""
        grid, rows = self.grid, slice(None)
        best = max(
            self.alone, key=lambda name: self._validation(self.alone[name][self._tuning_rows])
        )
        barycenters: dict[str, Rule] = {}
        for each in grid.exponents:
            mass = Unbalanced(each / (1 - each), epsilon=1.0)
            rule = Barycenter(mass, max_sweeps=grid.n_sweeps, tolerance=None)
            barycenters[f", f {each:g}"] = rule
        through: dict[str, Mapping[str, Rule]] = {
            "linear through K": {"": ARITHMETIC},
            "geometric mean through K": {"": GEOMETRIC},
            "barycenter": barycenters,
        }
        tried: dict[str, dict[str, Consensus]] = {
            "power mean": {
                f"order {order:g}": self._fusion(PowerMean(order), leftover=0)
                for order in grid.orders
            },
            "spread evenly": {
                f"given {given:g}": partial(self._spread, given) for given in grid.given
            },
            "nearest neighbour": self._through(self._nearest_kernels(), {"": ARITHMETIC}),
            **{
                name + local: self._through(kernels, rules)
                for local, kernels in (("", self._kernels()), (_LOCAL, self._local_kernels()))
                for name, rules in through.items()
            },
        }
        tuned = {name: self._best(name, each) for name, each in tried.items()}
        self.knobs["best single model"] = best
        return {
            "best single model": self.alone[best],
            "mean, unknown is 0": self._fusion(ARITHMETIC, leftover=1)(rows),
            "mean of those who know": self._fusion(ARITHMETIC, leftover=0)(rows),
            "geometric mean of those who know": self._fusion(GEOMETRIC, leftover=0)(rows),
            "power mean of those who know": tuned.pop("power mean"),
            **tuned,
        }

    def calibrate(self, scores: np.ndarray, name: str) -> np.ndarray:
        """The scores of all rows at the temperature that is best on validation samples."""
        temperature, _ = self._temperature(scores[self._tuning_rows])
        words = [*filter(None, [self.knobs.get(name)]), f"temperature {temperature:.2g}"]
        self.knobs[name] = ", ".join(words)
        return temper(scores, temperature)

    def _temperature(self, scores: np.ndarray) -> tuple[float, float]:
        """The best temperature for validation samples, and their mean log-likelihood at it."""
        task, samples = self.task, ~self.task.is_test
        rows, truth = np.searchsorted(self._tuning_rows, task.row[samples]), task.truth[samples]
        tops = scores.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            logs = np.log(scores / np.where(tops > 0, tops, 1))  # once: powers take longer

        def worth(temperature: float) -> float:
            raised = np.exp(logs / temperature)
            sums = raised.sum(axis=1)
            own = raised[rows, truth] / np.where(sums > 0, sums, 1)[rows]
            return float(np.log(np.maximum(own, FLOOR)).mean())

        tried = {each: worth(each) for each in _TEMPERATURES}
        return max(tried.items(), key=lambda each: each[1])

    def _validation(self, scores: np.ndarray) -> float:
        """What the scores of validation rows are worth at their best temperature."""
        return self._temperature(scores)[1]

    def _best(self, name: str, tried: dict[str, Consensus]) -> np.ndarray:
        words, seen = tune(
            list(tried), lambda words: tried[words](self._tuning_rows), self._validation
        )
        self.knobs[name], self.validation[name] = words, self._validation(seen)
        return tried[words](slice(None))

    def _fusion(self, rule: Rule, **options: Any) -> Consensus:
        fusion = Fusion(rule, target=self.task.target, **options)
        models = self.task.models
        return lambda rows: _scores(fusion, [model.take(rows) for model in models])

    def _through(
        self, kernels: dict[str, list[LabelledKernel]], rules: Mapping[str, Rule]
    ) -> dict[str, Consensus]:
        return {
            of_kernel + of_rule: self._fusion(
                rule, kernel=kernels[of_kernel], leftover=self.grid.leftover
            )
            for of_kernel, (of_rule, rule) in product(kernels, rules.items())
        }

    def _spread(self, given: float, rows: Any) -> np.ndarray:
        """Every model gives as much to each label that it does not know."""
        completed = []
        for own, known in zip(self.alone.values(), self.task.is_known, strict=True):
            each = given / max((~known).sum(), 1)
            completed.append(np.where(known, own[rows], each) / (1 + given))
        weights = np.where(self.task.is_known, 1.0, self.grid.leftover)
        mean = ARITHMETIC.fuse(completed, weights=weights / weights.sum(axis=0)).scores
        return np.asarray(mean / mean.sum(axis=1, keepdims=True))

    def _nearest_kernels(self) -> dict[str, list[LabelledKernel]]:
        nearest = [nearest_known(self.task.similarity, known) for known in self.task.is_known]
        return {
            f"given {given:g}": self._labelled([given * each for each in nearest])
            for given in self.grid.given
        }

    def _kernels(self) -> dict[str, list[LabelledKernel]]:
        return self._kernels_of(self.task.similarity, self.grid.epsilons)

    def _local_kernels(self) -> dict[str, list[LabelledKernel]]:
        return self._kernels_of(self.task.local_similarity, self.grid.local_epsilons)

    def _kernels_of(
        self, similarity: sp.csr_array, epsilons: Sequence[float]
    ) -> dict[str, list[LabelledKernel]]:
        """To hidden labels alone, beside the identity; and the paper's, to near labels too."""
        kernels = {}
        for epsilon in epsilons:
            similar = similarity.power(1 / epsilon)
            towards = [kernel_to_hidden(similar, known) for known in self.task.is_known]
            for given in self.grid.kernel_given:
                kernels[f"epsilon {epsilon:g}, {given:g} to hidden labels"] = self._labelled(
                    [given * each for each in towards]
                )
            beside = sp.csr_array(similar - sp.eye_array(similar.shape[0]))
            kernels[f"epsilon {epsilon:g}, to all labels"] = self._labelled(
                [beside[known] for known in self.task.is_known]
            )
        return kernels

    def _labelled(self, beyond: Sequence[sp.csr_array]) -> list[LabelledKernel]:
        """A kernel per model: the identity, and what goes beyond it."""
        own = sp.eye_array(len(self.task.target), format="csr", dtype=np.float32)
        return [
            LabelledKernel(
                SparseKernel(sp.csr_array(own[known] + further).astype(np.float32)),
                model.labels,
                self.task.target,
                "similarity of labels",
                declared=known,
            )
            for model, known, further in zip(
                self.task.models, self.task.is_known, beyond, strict=True
            )
        ]


def kernel_to_hidden(similarity: sp.csr_array, is_known: np.ndarray) -> sp.csr_array:
    """From known labels to hidden ones: rows of known labels, columns of hidden ones filled."""
    hidden = sp.diags_array((~is_known).astype(similarity.dtype))
    return sp.csr_array(similarity[is_known] @ hidden)


def nearest_known(similarity: sp.csr_array, is_known: np.ndarray) -> sp.csr_array:
    """1 for each hidden label and the known label that is most similar to it, else 0."""
    towards = kernel_to_hidden(similarity, is_known).tocsc()
    best = np.asarray(towards.argmax(axis=0)).ravel()
    filled = np.flatnonzero(np.diff(towards.indptr) > 0)
    return sp.csr_array((np.ones(len(filled)), (best[filled], filled)), shape=towards.shape)


@dataclass(frozen=True, eq=False)
class Expansion:
    """Models over parts of the target labels."""

    models: list[Predictions]  # each over the labels that it knows, in the target's order
    whole: list[Predictions]  # the same models with nothing hidden
    target: LabelSpace
    is_known: np.ndarray  # (n_models, n_target)
    similarity: sp.csr_array  # (n_target, n_target): exp(-cost) of near labels, symmetric
    local_similarity: sp.csr_array  # the same, each cost measured by both labels' neighbours
    # Of each sample: its place among the target labels, its row of the predictions, its side
    # of the split, and what it is drawn together with in a bootstrap.
    truth: np.ndarray
    row: np.ndarray
    is_test: np.ndarray
    groups: np.ndarray


def hide_labels(
    n_models: int, n_target: int, share: float, *, alike: bool, rng: np.random.Generator
) -> np.ndarray:
    """Which labels each model knows, ``(n_models, n_target)``; all the same ones if ``alike``."""
    n_hidden = round(share * n_target)
    is_known = np.ones((n_models, n_target), dtype=bool)
    for known in is_known[:1] if alike else is_known:
        known[rng.permutation(n_target)[:n_hidden]] = False
    return np.broadcast_to(is_known[:1], is_known.shape) if alike else is_known


def load_images(config: Config, *, alike: bool, seed: int) -> Expansion:
    """Eight networks' five best classes, without those that each does not know.

    Classes that a network does not know are struck from its five best, and the next move up.
    Rank r scores what share of other images has the truth there; the rest is unobserved.
    """
    classes, tree, networks, truth = load_imagenet()
    rng = np.random.default_rng(seed)
    n_fitting = len(truth) // 2
    images = rng.permutation(len(truth))
    fitting, kept = images[:n_fitting], images[n_fitting:][: sum(config.n_images)]
    is_known = hide_labels(len(networks), len(classes), config.share, alike=alike, rng=rng)
    models: list[Predictions] = []
    whole: list[Predictions] = []
    for (name, best), known in zip(networks.items(), is_known, strict=True):
        for found, mask in ((models, known), (whole, np.ones_like(known))):
            left = strike_classes(best, mask)
            told = score_ranks(left, truth, fitting, kept, len(classes))[:, mask]
            told[np.isnan(told).all(axis=1)] = 1 / mask.sum()  # all five struck: no idea
            labels = list(compress(classes, mask))
            found.append(Predictions(name, kept, labels, told, kind="multiclass"))
    near = from_tree(classes, edges=tree, cost="lin", epsilon=1.0)
    cost = -np.log(np.asarray(near.kernel.to_dense()))
    widths = np.sqrt(local_bandwidths(cost, config.local_bandwidth))
    similarity, local = (
        _nearest(np.exp(-each), config.n_neighbors)
        for each in (cost, cost / np.outer(widths, widths))
    )
    rows = np.arange(len(kept))
    return Expansion(
        models,
        whole,
        classes,
        is_known,
        similarity,
        local,
        truth=truth[kept],
        row=rows,
        is_test=rows >= config.n_images[0],
        groups=rows,
    )


def strike_classes(best: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Lists of best classes without unknown ones: known ones move up, -1 fills the end."""
    order = np.argsort(~is_known[best], axis=1, kind="stable")
    moved = np.take_along_axis(best, order, axis=1)
    return np.where(is_known[moved], moved, -1)


def load_words(config: Config, *, alike: bool, seed: int) -> Expansion:
    """Next words after a word, counted in parts of the captions of all COCO images but ours.

    A model counts pairs of words in its part of the captions; after a word of n pairs, each
    word scores (count + backoff * share of the word in the part) / (n + backoff), where every
    word counts as seen once more; words that the model does not know are struck. The samples
    are pairs in other captions, after the ``n_contexts`` words that most often come first
    there; the ``n_frequent`` most frequent words are never hidden, since no vocabulary lacks
    them.
    """
    words, similarity, local = _glove(config.n_neighbors, config.local_bandwidth)
    rng, n_models = np.random.default_rng(seed), config.n_word_models
    places = {word: place for place, word in enumerate(words)}
    pairs = {split: _pairs(load_captions(split).captions, places) for split in ("val", "test")}
    counted = _training_pairs()
    is_known = hide_labels(n_models, len(words), config.share, alike=alike, rng=rng)
    # The file has the frequent words first.
    is_known = is_known | (np.arange(len(words)) < config.n_frequent)
    first = np.bincount(pairs["val"][:, 1], minlength=len(words))
    contexts = np.argsort(-first, kind="stable")[: config.n_contexts]
    models: list[Predictions] = []
    whole: list[Predictions] = []
    for part in range(n_models):
        train = counted[counted[:, 0] % n_models == part]
        table = _next_words(train, contexts, len(words), config.backoff)
        for found, mask in ((models, is_known[part]), (whole, np.ones(len(words), dtype=bool))):
            known = table[:, mask]
            labels = list(compress(words, mask))
            scores = known / known.sum(axis=1, keepdims=True)
            name = f"captions, part {part + 1}"
            found.append(Predictions(name, contexts, labels, scores, kind="multiclass"))
    drawn = []
    for split, n_drawn in zip(("val", "test"), config.n_pairs, strict=True):
        inside = pairs[split][np.isin(pairs[split][:, 1], contexts)]
        drawn.append(inside[np.sort(rng.permutation(len(inside))[:n_drawn])])
    image, before, truth = np.concatenate(drawn).T
    row_of = np.zeros(len(words), dtype=np.int64)
    row_of[contexts] = np.arange(len(contexts))
    is_test = np.arange(len(truth)) >= len(drawn[0])
    return Expansion(
        models,
        whole,
        words,
        is_known,
        similarity,
        local,
        truth=truth,
        row=row_of[before],
        is_test=is_test,
        groups=image,
    )


@cache  # 10,000 words against each other, for two tasks
def _glove(n_neighbors: int, local_bandwidth: int) -> tuple[LabelSpace, sp.csr_array, sp.csr_array]:
    """The words of the vectors, the most frequent first, and how similar near ones are."""
    words, units = load_glove()
    vectors = Embeddings(words, units)

    def near(bandwidth: int | None) -> sp.csr_array:
        kernel = from_word_vectors(
            words,
            embeddings=vectors,
            epsilon=1.0,
            n_neighbors=n_neighbors,
            local_bandwidth=bandwidth,
        )
        found = kernel.kernel.to_sparse()
        return sp.csr_array(found.maximum(found.T))

    return words, near(None), near(local_bandwidth)


@cache  # of 590,000 captions, for two tasks and every draw
def _training_pairs() -> np.ndarray:
    words, _ = load_glove()
    places = {word: place for place, word in enumerate(words)}
    return _pairs(list(load_coco_captions().values()), places)


def _pairs(captions: Sequence[Sequence[str]], places: dict[str, int]) -> np.ndarray:
    """Image, word and next word of each pair of known neighbours, ``(n_pairs, 3)``."""
    found = []
    for image, several in enumerate(captions):
        for caption in several:
            known = [places.get(word, -1) for word in caption.split()]
            found += [(image, *pair) for pair in pairwise(known) if min(pair) >= 0]
    return np.array(found)


def _next_words(
    pairs: np.ndarray, contexts: np.ndarray, n_words: int, backoff: float
) -> np.ndarray:
    """Shares of words after each context, ``(n_contexts, n_words)``."""
    _, first, second = pairs.T
    counts = sp.csr_array((np.ones(len(pairs)), (first, second)), shape=(n_words, n_words))
    after = counts[contexts].toarray()
    overall = (np.bincount(second, minlength=n_words) + 1) / (len(second) + n_words)
    sums = after.sum(axis=1, keepdims=True)
    return ((after + backoff * overall) / (sums + backoff)).astype(np.float32)


def _nearest(similarity: np.ndarray, n_neighbors: int) -> sp.csr_array:
    """The largest ``n_neighbors`` entries of each row of a symmetric table, and of each column."""
    least = np.partition(similarity, -n_neighbors, axis=1)[:, -n_neighbors]
    kept = similarity >= np.minimum(least[:, None], least)
    return sp.csr_array(np.where(kept, similarity, 0))
