"""Captioners fused through a kernel whose epsilon grows, beside the means; then the test images.

What the experiments on GloVe and on synonyms share, with what section 6.3 says of captions as
epsilon grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile
from typing import Any

import numpy as np

from paper.captioning.gallery import Captioned, Gallery, Rules, SearchConfig, judged_table
from paper.record.findings import Claim, Findings, Plot, Progress, Table, fill, ticker
from paper.record.judging import tune
from paper.words.models import KernelAt
from wassemble.kernels import distance_to_identity
from wassemble.solvers import PowerMean
from wassemble.text import FusedNextWord, NextWordModel

SEARCHES = ("top-k", "randomised")

_SOURCE = "section 6.3"
_KEEPS = 0.9  # of the geometric mean's CIDEr: a search that still works

_TEXT = """\
{names} give a histogram of {n_words:,} words each at every step; Algorithm 1 fuses them with
equal weights, by at most {max_sweeps} sweeps, the paper's number, and fewer where a row has reached
a residual of {tolerance:g}. Beam {width}; the randomised search samples {n_samples} words in
each beam. Sentences are ranked by their mean log probability per word: mass that spreads makes
every word less likely, but not the end. Everything is chosen on {n_validation} validation images
(best CIDEr, for each search); {n_test} test images are judged once."""

_SWEEP_NOTE = """\
Validation images. Entropy is the mean over all steps of the search, in nats; a uniform
histogram has {uniform:.2f}. WMD is exp(-distance): the higher, the closer in meaning."""


@dataclass(frozen=True, kw_only=True)
class StudyConfig(SearchConfig):
    """Knobs: images, and what is tried on validation images."""

    epsilons: tuple[float, ...]
    far: float  # an epsilon to judge on test images beside the best one
    orders: tuple[float, ...] = (0.25, 0.5, 2.0)
    n_validation: int = 75
    n_test: int = 250
    n_samples: int = 5


@dataclass(frozen=True, eq=False)
class Step:
    """What barycenters through one kernel said of validation images, by search."""

    epsilon: float
    distance: float
    found: dict[str, Captioned]


@dataclass(frozen=True, eq=False)
class Found:
    """What a study found."""

    steps: list[Step]  # from the smallest epsilon to the largest
    simple: dict[str, Rules]  # by search: single captioners and means, on validation images
    tests: dict[str, Rules]  # by search: simple rules and barycenters, on test images
    far: str  # the rule of the far barycenter

    def best_simple(self, search: str) -> str:
        """The simple rule of best CIDEr on validation images."""
        rules = self.simple[search]
        return max(rules, key=lambda rule: rules[rule].mean_cider)


class Study:
    """Runs rules on validation and on test images; ``kernels`` makes kernels of the words."""

    def __init__(
        self, config: StudyConfig, kernels: Callable[..., KernelAt], progress: Progress = None
    ) -> None:
        self.config = config
        self.models = config.read_captioners()
        self.vocabulary = FusedNextWord(list(self.models.values())).vocabulary
        self.kernel_at = kernels(self.vocabulary.words)
        # The sweep and the orders, simple rules on both splits, rules through K.
        n_each = len(config.epsilons) + len(config.orders) + 2 * (len(config.captioners) + 3) + 2
        tick = ticker(progress, len(SEARCHES) * n_each + 2)
        self.validation = config.gallery("val", config.n_validation, tick)
        self.test = config.gallery("test", config.n_test, tick)

    def run(self) -> Found:
        """The sweep, then everything that is judged on test images."""
        steps = [self._step(epsilon) for epsilon in sorted(self.config.epsilons)]
        simple: dict[str, Rules] = {}
        tests: dict[str, Rules] = {}
        far = f"barycenter, far (epsilon {self.config.far:g})"
        for search in SEARCHES:
            rules = self._simple_rules(search)
            simple[search] = self._judge(self.validation, rules, search)
            best = max(steps, key=lambda step: step.found[search].mean_cider).epsilon
            rules[f"arithmetic mean through K (epsilon {best:g})"] = self.mean(1, best)
            rules[f"barycenter, best (epsilon {best:g})"] = self.barycenter(best)
            tests[search] = self._judge(self.test, rules, search)
        # For top-k alone: a randomised search is lost there.
        fused = self.barycenter(self.config.far)
        tests["top-k"][far] = self.caption(self.test, fused, "top-k")
        tests["top-k"][f"{far}, not per word"] = self.caption(
            self.test, fused, "top-k", length_power=0.0
        )
        return Found(steps, simple, tests, far)

    def report(
        self, found: Found, text: str, claims: Sequence[Claim], difference: str, paper: str = ""
    ) -> Findings:
        """Tables, plots and the claims that every kernel is held against, and its own."""
        steps, simple = found.steps, found.simple
        done = fill(
            _TEXT,
            self.config,
            names=f"{len(self.models)} LSTM captioners with attention ({', '.join(self.models)})",
            n_words=len(self.vocabulary),
            n_validation=len(self.validation.references),
            n_test=len(self.test.references),
        )
        return Findings(
            text=f"{done} {text}",
            tables=[
                _sweep_table(steps, simple, n_words=len(self.vocabulary)),
                *(
                    judged_table(
                        f"Test images, {search} search",
                        found.tests[search],
                        self.test,
                        self.test.judge(self.config.seed),
                        over=found.best_simple(search),
                        paper=paper if search == "top-k" else "",
                    )
                    for search in SEARCHES
                ),
            ],
            plots=_sweep_plots(steps, simple),
            claims=[
                entropy_grows(steps),
                ngrams_suffer(steps, simple),
                meaning_stays(found, at_most=0.02),
                ends_sooner(steps, simple),
                *claims,
            ],
            difference=difference,
        )

    def barycenter(self, epsilon: float) -> FusedNextWord:
        """All captioners fused through the kernel at ``epsilon``."""
        return self.config.barycenter(self.models.values(), self.kernel_at(epsilon))

    def mean(self, order: float, epsilon: float | None = None) -> FusedNextWord:
        """A power mean, of what each captioner sends through the kernel if there is one."""
        kernel = None if epsilon is None else self.kernel_at(epsilon)
        return FusedNextWord(list(self.models.values()), kernel=kernel, rule=PowerMean(order))

    def caption(
        self, gallery: Gallery, model: NextWordModel, search: str, **options: Any
    ) -> Captioned:
        """Captions of a gallery by one model."""
        if search == "randomised":
            options |= {"n_samples": self.config.n_samples, "seed": self.config.seed}
        return gallery.caption(model, **options)

    def _judge(self, gallery: Gallery, rules: dict[str, NextWordModel], search: str) -> Rules:
        return {name: self.caption(gallery, model, search) for name, model in rules.items()}

    def _step(self, epsilon: float) -> Step:
        fused = self.barycenter(epsilon)
        distance = float(distance_to_identity(fused.kernels[0]))
        by_search = {each: self.caption(self.validation, fused, each) for each in SEARCHES}
        return Step(epsilon, distance, by_search)

    def _simple_rules(self, search: str) -> dict[str, NextWordModel]:
        """Single captioners and means; the order of the power mean is that of best CIDEr."""
        best, _ = tune(
            self.config.orders,
            lambda order: self.caption(self.validation, self.mean(order), search),
            lambda said: said.mean_cider,
        )
        return self.models | {
            "arithmetic mean": self.mean(1),
            "geometric mean": self.mean(0),
            f"power mean (order {best:g}, tuned)": self.mean(best),
        }


def entropy_grows(steps: Sequence[Step]) -> Claim:
    """The entropy of the fused histograms rises with epsilon."""
    spread = {search: [step.found[search].entropy for step in steps] for search in SEARCHES}
    return Claim(
        "entropy goes up with epsilon",
        _SOURCE,
        all(low < high for each in spread.values() for low, high in pairwise(each)),
        "; ".join(f"{search}: {e[0]:.2f} to {e[-1]:.2f}" for search, e in spread.items()),
    )


def ngrams_suffer(steps: Sequence[Step], simple: Mapping[str, Rules]) -> Claim:
    """CIDEr falls below the means' as epsilon grows, in top-k search."""
    level = simple["top-k"]["geometric mean"].mean_cider
    first, last = (step.found["top-k"].mean_cider for step in (steps[0], steps[-1]))
    return Claim(
        "top-k: CIDEr deteriorates as epsilon grows",
        _SOURCE,
        last < first and last < level,
        f"CIDEr {first:.3f} to {last:.3f}, geometric mean {level:.3f}",
    )


def meaning_stays(found: Found, *, at_most: float) -> Claim:
    """In top-k search WMD changes little, less than CIDEr falls."""
    rules = found.tests["top-k"]
    mean, far = rules["geometric mean"], rules[found.far]
    meaning = far.mean_similarity / mean.mean_similarity - 1
    ngrams = far.mean_cider / mean.mean_cider - 1
    return Claim(
        f"top-k: WMD stays (within {at_most:.0%}) while CIDEr falls more, {found.far}",
        _SOURCE,
        abs(meaning) <= at_most and ngrams < -abs(meaning),
        f"WMD {meaning:+.1%}, CIDEr {ngrams:+.1%} beside the geometric mean, test images",
    )


def reach(steps: Sequence[Step], simple: Mapping[str, Rules], search: str) -> float:
    """The epsilon up to which CIDEr keeps nine tenths of the geometric mean's; 0 if nowhere."""
    level = _KEEPS * simple[search]["geometric mean"].mean_cider
    kept = takewhile(lambda step: step.found[search].mean_cider >= level, steps)
    return max((step.epsilon for step in kept), default=0.0)


def ends_sooner(steps: Sequence[Step], simple: Mapping[str, Rules]) -> Claim:
    """A randomised search bears less epsilon than top-k."""
    ends = {search: reach(steps, simple, search) for search in SEARCHES}
    return Claim(
        "a randomised search works only up to a smaller epsilon",
        _SOURCE,
        ends["randomised"] < ends["top-k"],
        "CIDEr keeps 90 % of the geometric mean's up to epsilon "
        + ", ".join(f"{end:g} ({search})" for search, end in ends.items()),
    )


def _sweep_table(steps: Sequence[Step], simple: Mapping[str, Rules], *, n_words: int) -> Table:
    """Every step of the sweep below the simple rules, for both searches."""

    def row(name: str, distance: float | None, by_search: Mapping[str, Captioned]) -> list[Any]:
        each = [by_search[search] for search in SEARCHES]
        cells = [(e.mean_cider, e.mean_similarity, e.entropy, e.n_words) for e in each]
        return [name, distance, *chain.from_iterable(cells)]

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


def _sweep_plots(steps: Sequence[Step], simple: Mapping[str, Rules]) -> list[Plot]:
    """CIDEr, meaning and entropy against the distance of K to the identity."""
    shown: dict[str, tuple[str, Callable[[Captioned], float]]] = {
        "cider": ("CIDEr", lambda each: each.mean_cider),
        "wmd": ("WMD similarity", lambda each: each.mean_similarity),
        "entropy": ("entropy of a step (nats)", lambda each: each.entropy),
    }
    ends = steps[0].distance, steps[-1].distance
    plots = []
    for name, (title, value) in shown.items():
        series = {}
        for search in SEARCHES:
            points = [(step.distance, value(step.found[search])) for step in steps]
            series[f"barycenter, {search}"] = points
            for mean in ("arithmetic mean", "geometric mean"):
                level = value(simple[search][mean])
                series[f"{mean}, {search}"] = [(x, level) for x in ends]
        caption = f"{title} against the kernel's distance to the identity, validation images"
        plots.append(Plot(name, caption, "||K - I||_F", title, series, log_x=True))
    return plots
