"""Tables and plots of the experiments that caption pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from paper.captioning.gallery import Captioned, Gallery, java_scores
from paper.captioning.study import SEARCHES, Found, Rules, Step, Study
from paper.record.findings import Cell, Plot, Table
from paper.record.paper_figures import PaperFigures
from wassemble.metrics.captions import vocabulary_size

__all__ = ["judged_table", "study_tables", "sweep_plots"]

_TEST_NOTE = """\
Gains in CIDEr are over the simple rule that is best on validation images ({over}), paired, with
95 % bootstrap intervals over images. WMD is exp(-Word Mover's Distance) to the nearest
reference, the higher the closer in meaning; entropy is the mean over all steps of the search,
in nats; words are those of a caption, on average, and the different words of all captions."""

_SWEEP_NOTE = """\
Validation images. Entropy is the mean over all steps of the search, in nats; a uniform
histogram has {uniform:.2f}. WMD is exp(-distance): the higher, the closer in meaning."""


def study_tables(study: Study, found: Found, *, paper: PaperFigures | None = None) -> list[Table]:
    """The sweep on validation images, and every rule on test images."""
    return [
        _sweep_table(found.steps, found.simple, n_words=len(study.vocabulary)),
        *(
            judged_table(
                f"Test images, {search} search",
                found.tests[search],
                study.test,
                over=found.best_simple(search),
                seed=study.config.seed,
                paper=paper if search == "top-k" else None,
            )
            for search in SEARCHES
        ),
    ]


def _sweep_table(steps: Sequence[Step], simple: Mapping[str, Rules], *, n_words: int) -> Table:
    """Every step of the sweep below the simple rules, for both searches."""

    def row(name: str, distance: float | None, found: Mapping[str, Captioned]) -> list[Cell]:
        cells: list[Cell] = [name, distance]
        for search in SEARCHES:
            each = found[search]
            cells += [
                float(each.cider.mean()),
                float(each.similarity.mean()),
                each.entropy,
                each.n_words,
            ]
        return cells

    rows = [
        row(rule, None, {search: simple[search][rule] for search in SEARCHES})
        for rule in simple[SEARCHES[0]]
        if all(rule in each for each in simple.values())  # tuned ones may differ
    ]
    rows += [
        row(f"barycenter, epsilon {step.epsilon:g}", step.distance, step.found) for step in steps
    ]
    columns = ["CIDEr", "WMD", "entropy", "words"]
    return Table(
        "Validation images, as epsilon grows",
        ["rule", "||K - I||_F", *(f"{search}: {c}" for search in SEARCHES for c in columns)],
        rows,
        digits=[0, 1, *[3, 3, 2, 1] * len(SEARCHES)],
        note=_SWEEP_NOTE.format(uniform=np.log(n_words)),
    )


def sweep_plots(steps: Sequence[Step], simple: Mapping[str, Rules]) -> list[Plot]:
    """CIDEr, meaning and entropy against the distance of K to the identity."""
    shown: dict[str, tuple[str, Callable[[Captioned], float]]] = {
        "cider": ("CIDEr", lambda each: float(each.cider.mean())),
        "wmd": ("WMD similarity", lambda each: float(each.similarity.mean())),
        "entropy": ("entropy of a step (nats)", lambda each: each.entropy),
    }
    ends = steps[0].distance, steps[-1].distance
    plots = []
    for name, (title, value) in shown.items():
        series: dict[str, list[tuple[float | str, float]]] = {}
        for search in SEARCHES:
            series[f"barycenter, {search}"] = [
                (step.distance, value(step.found[search])) for step in steps
            ]
            for mean in ("arithmetic mean", "geometric mean"):
                level = value(simple[search][mean])
                series[f"{mean}, {search}"] = [(x, level) for x in ends]
        caption = f"{title} against the kernel's distance to the identity, validation images"
        plots.append(Plot(name, caption, "||K - I||_F", title, series, log_x=True))
    return plots


def judged_table(
    title: str,
    rules: Rules,
    gallery: Gallery,
    *,
    over: str,
    seed: int,
    paper: PaperFigures | None = None,
    extra: Mapping[str, Mapping[str, Cell]] | None = None,
    note: str = "",
) -> Table:
    """Every rule on test images, with more columns where there are.

    The paper's figures are found by a rule's name without what is in brackets.
    """
    judge, more = gallery.judge(seed), extra or {}
    by_java, missing = java_scores(rules, gallery.references)
    rows: list[list[Cell]] = []
    for name, found in rules.items():
        gain = judge.gain(found.cider, rules[over].cider) if name != over else None
        cells: list[Cell] = [name, judge.figure(found.cider), gain]
        cells += [scores[name] for scores in by_java.values()]
        cells += [judge.figure(found.similarity), found.entropy, found.n_words]
        cells.append(vocabulary_size(found.texts))
        cells += [column[name] for column in more.values()]
        if paper is not None:
            key = re.sub(r" \(.*?\)", "", name)
            cells += [paper.get(key, column) for column in ("CIDEr", "entropy", "WMD")]
        rows.append(cells)
    columns = ["rule", "CIDEr", "gain in CIDEr", *by_java, "WMD", "entropy"]
    columns += ["words", "different words", *more]
    digits = [0, 3, 3, *(3 for _ in by_java), 3, 2, 1, 0, *(3 for _ in more)]
    if paper is not None:
        columns += ["paper: CIDEr", "paper: entropy", "paper: WMD"]
        digits += [3, 2, 3]
    notes = [_TEST_NOTE.format(over=over), note, *missing]
    return Table(title, columns, rows, digits=digits, note=" ".join(filter(None, notes)))
