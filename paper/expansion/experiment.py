"""A consensus over more labels than any model has (table 12, vocabulary expansion).

Models lose a fifth of their labels, each its own or all the same. How much of what belongs
to a hidden label comes back, through what is known about labels and through the others?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np

from paper.expansion.rules import FLOOR, Grid, Rules
from paper.expansion.tasks import Expansion, load_images, load_words
from paper.record.findings import Cell, Claim, Findings, Plot, Progress, Table, fill, follow
from paper.record.judging import Judge
from wassemble.metrics import MEAN

_TEXT = """\
Eight ImageNet networks give their five best classes of 1,000; four next-word models count pairs
of words in a quarter of the COCO training captions each, over 10,000 words. Then {share:.0%} of
the labels are hidden: each model lacks its own, or all lack the same. Hidden classes are struck
from the five best (the next move up; a rank scores how often the truth stood there on other
images, and what five ranks do not reach is spread over the network's other classes); hidden
words are struck from the counts, which are divided by what is left. The {n_frequent} most
frequent words are never hidden. Similarity is Lin's, in the WordNet tree, for classes and the
cosine of GloVe vectors for words, of the {n_neighbors} nearest labels. Everything tuned has the
best mean log-likelihood of all validation samples, whether their label is hidden or not: a
rule pays for what it gives to hidden labels where it is wrong."""

_NOTE = """\
{n_hidden:,} of {n_test:,} test samples have a label that is hidden from {whom}; the columns
"hidden" are of them. Mass is what the true label gets, "recovered" its share of what the mean
of the whole models gives it. Log-likelihoods take at least {floor:g} for the true label. L1 is the
mean distance to the mean of the whole models, over all test rows. Rows down to "spread evenly"
use no meaning; the others do, by the same similarities. The two means through K carry each model
linearly first, so what the barycenter gains over the better of them is the transport's share. A
rule may win on hidden labels what it loses on others: the log-likelihood of all samples is the
balance, and what was tuned for. Tuned: {knobs}."""

_DIFFERENCE = """\
the paper names the task and gives no figure. Its barycenter is balanced; where models
lack different labels no consensus can balance them all, so ours is unbalanced with weights that
let a model keep most of its silence on labels that it does not know (leftover)."""

# Classes and words count as hidden samples from this share of models that lack them on.
_LACKING = 1 / 3
_AGAINST = {
    "an even spread or the nearest neighbour": ("spread evenly", "nearest neighbour"),
    "means through the same kernels": ("linear through K", "geometric mean through K"),
}


@dataclass(frozen=True)
class Config:
    """Knobs, and what is tried on validation samples."""

    share: float = 0.2
    n_neighbors: int = 20
    n_images: tuple[int, int] = (300, 1500)
    n_pairs: tuple[int, int] = (3000, 6000)
    n_contexts: int = 100
    n_frequent: int = 100
    n_word_models: int = 4
    backoff: float = 10.0
    grid: Grid = field(default_factory=Grid)
    seed: int = 0


def run(config: Config, progress: Progress = None) -> Findings:
    """Mass, ranks and likelihood of hidden labels by each rule, on classes and on words."""
    loads: dict[str, Callable[..., Expansion]] = {
        "classes": partial(load_images, n_samples=config.n_images),
        "words": partial(
            load_words,
            n_samples=config.n_pairs,
            n_models=config.n_word_models,
            n_contexts=config.n_contexts,
            n_frequent=config.n_frequent,
            backoff=config.backoff,
        ),
    }
    studies: dict[str, _Study] = {}
    for alike, kind in follow(list(product((False, True), loads)), progress):
        title = f"{kind.capitalize()}, {'the same' if alike else 'others'} hidden from each model"
        task = loads[kind](
            share=config.share, alike=alike, n_neighbors=config.n_neighbors, seed=config.seed
        )
        studies[title] = _Study(task, config)
    return Findings(
        text=fill(_TEXT, config),
        tables=[study.table(title) for title, study in studies.items()],
        plots=[_plot(studies)],
        claims=[claim for title, study in studies.items() for claim in study.claims(title)],
        difference=_DIFFERENCE,
    )


class _Study:
    """What each rule makes of one task."""

    def __init__(self, task: Expansion, config: Config) -> None:
        rules = Rules(task, config.grid)
        self.task = task
        self.whole = rules.whole
        self.found = rules.all()
        self.knobs, self.validation = rules.knobs, rules.validation
        lacking = (~task.is_known).mean(axis=0)[task.truth]
        self.hidden = np.flatnonzero(task.is_test & (lacking >= _LACKING))
        self.test = np.flatnonzero(task.is_test)
        self.alike = bool((task.is_known == task.is_known[0]).all())
        self.judge, self.judge_all = (
            Judge(MEAN, part, groups=task.groups[part].tolist(), seed=config.seed)
            for part in (self.hidden, self.test)
        )

    def mass(self, scores: np.ndarray, samples: np.ndarray) -> np.ndarray:
        """What the true label gets."""
        return scores[self.task.row[samples], self.task.truth[samples]].astype(np.float64)

    def likelihood(self, scores: np.ndarray, samples: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(self.mass(scores, samples), FLOOR))

    def table(self, title: str) -> Table:
        ceiling = self.mass(self.whole, self.hidden).mean()
        seen = np.unique(self.task.row[self.test])
        rows: list[list[Cell]] = []
        for name, scores in {"nothing hidden": self.whole, **self.found}.items():
            mine = self.mass(scores, self.hidden)
            rank = ranks(scores[self.task.row[self.hidden]], self.task.truth[self.hidden])
            rows.append(
                [
                    name,
                    self.judge.figure(mine),
                    float(mine.mean() / ceiling),
                    float((rank < 2).mean()),
                    float((rank < 6).mean()),
                    self.judge.figure(self.likelihood(scores, self.hidden)),
                    float(self.likelihood(scores, self.test).mean()),
                    float(np.abs(scores[seen] - self.whole[seen]).sum(axis=1).mean()),
                ]
            )
        note = _NOTE.format(
            n_hidden=len(self.hidden),
            n_test=len(self.test),
            whom="every model" if self.alike else "a third of the models or more",
            floor=FLOOR,
            knobs="; ".join(f"{name}: {words}" for name, words in self.knobs.items()),
        )
        columns = [
            "rule",
            "mass, hidden",
            "recovered",
            "top 1, hidden",
            "top 5, hidden",
            "log-likelihood, hidden",
            "log-likelihood, all",
            "L1 to nothing hidden",
        ]
        return Table(title, columns, rows, digits=(0, 4, 3, 3, 3, 2, 3, 3), note=note)

    def claims(self, title: str) -> list[Claim]:
        claims = []
        for what, others in _AGAINST.items():
            over = max(others, key=lambda name: self.validation[name])
            of_hidden, of_all = (
                judge.gain(
                    *(self.likelihood(self.found[name], part) for name in ("barycenter", over))
                )
                for judge, part in ((self.judge, self.hidden), (self.judge_all, self.test))
            )
            claims.append(
                Claim(
                    f"at no cost to other labels, transport recovers hidden ones better than"
                    f" {what} ({title})",
                    "table 12",
                    of_hidden.low > 0 and of_all.high >= 0,
                    f"log-likelihood of hidden labels {of_hidden.words()}, of all"
                    f" {of_all.words()}, over {over}",
                )
            )
        return claims


def ranks(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Rank of the true label, from 1; among labels of the same score, the middle."""
    own = scores[np.arange(len(truth)), truth][:, None]
    above, same = (scores > own).sum(axis=1), (scores == own).sum(axis=1)
    return np.asarray(1 + above + (same - 1) / 2)


def _plot(studies: Mapping[str, _Study]) -> Plot:
    lines: dict[str, list[tuple[float | str, float]]] = {}
    for title, study in studies.items():
        ceiling = study.mass(study.whole, study.hidden).mean()
        short = title.split(" hidden")[0]
        for name in ("mean of those who know", *study.validation):
            if name in study.found:
                share = float(study.mass(study.found[name], study.hidden).mean() / ceiling)
                lines.setdefault(name, []).append((short, share))
    return Plot(
        "recovered",
        "Mass of hidden labels that comes back",
        "",
        "share of what whole models give",
        lines,
    )
