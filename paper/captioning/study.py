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

from paper.captioning.gallery import (
    Captioned,
    Gallery,
    Rules,
    SearchConfig,
    entropy_gain,
    judged_table,
)
from paper.record.findings import Claim, Figure, Findings, Plot, Progress, Table, fill, ticker
from paper.record.judging import Judge, tune
from paper.record.verdicts import (
    all_hold,
    claim_gains,
    conclude,
    held,
    is_within,
    smallest_visible,
)
from paper.words.models import KernelAt, epsilon_at
from wassemble.solvers import PowerMean
from wassemble.text import FusedNextWord, NextWordModel

SEARCHES = ("top-k", "randomised")

_SOURCE = "section 6.3"
_KEEPS = 0.9  # of the geometric mean's CIDEr: a search that still works

_TEXT = """\
{names} give a histogram of {n_words:,} words each at every step; Algorithm 1 fuses them with
equal weights, by at most {max_sweeps} sweeps, the paper's number, and fewer where a row has reached
a residual of {tolerance:g}, between the {n_top:,} words that some captioner finds likeliest for an
image; all others count as one. Beam {width}; the randomised search samples {n_samples} words in
each beam. Sentences are ranked by their mean log probability per word: mass that spreads makes
every word less likely, but not the end. Everything is chosen on {n_validation} validation images
(best CIDEr, for each search; a sample of the 700 that there are, as the {n_test} test images, which
are judged once, are of 1,300). Kernels go by ||K - I||_F,
times the root of 10,096 (the paper's words) over ours."""

_SWEEP_NOTE = """\
Validation images. Entropy is as in the tables below, in nats; if uniform, it is {uniform:.2f}.
WMD is 1 / (1 + distance), as the paper's: the higher, the closer in meaning."""


@dataclass(frozen=True, kw_only=True)
class StudyConfig(SearchConfig):
    """Knobs: images, and what is tried on validation images."""

    distances: tuple[float, ...]  # of K to the identity, as `epsilon_at` takes them
    far: float  # one of them, judged on test images beside the best one
    orders: tuple[float, ...] = (0.5, 2.0)
    n_top: int = 1000  # words that take part in a step of a barycenter
    n_validation: int = 100
    n_test: int = 200
    n_samples: int = 5


@dataclass(frozen=True, eq=False)
class Step:
    """What barycenters through one kernel said of validation images, by search."""

    distance: float
    epsilon: float
    found: dict[str, Captioned]


@dataclass(frozen=True, eq=False)
class Found:
    """What a study found."""

    steps: list[Step]  # from the nearest kernel to the farthest
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
        n_each = len(config.distances) + len(config.orders) + 2 * (len(config.captioners) + 3) + 2
        tick = ticker(progress, len(SEARCHES) * n_each + 1)
        self.validation = config.gallery("val", config.n_validation, tick)
        self.test = config.gallery("test", config.n_test, tick)

    def run(self) -> Found:
        """The sweep, then everything that is judged on test images."""
        steps = [self._step(distance) for distance in sorted(self.config.distances)]
        simple: dict[str, Rules] = {}
        tests: dict[str, Rules] = {}
        for search in SEARCHES:
            rules = self._simple_rules(search)
            simple[search] = self._judge(self.validation, rules, search)
            best = max(steps, key=lambda step: step.found[search].mean_cider)
            title = f"(distance {best.distance:g})"
            rules[f"arithmetic mean through K {title}"] = self.mean(1, best.epsilon)
            rules[f"barycenter, best {title}"] = self.barycenter(best.epsilon)
            tests[search] = self._judge(self.test, rules, search)
        # For top-k alone: a randomised search is lost there.
        far = f"barycenter, far (distance {self.config.far:g})"
        fused = self.barycenter(epsilon_at(self.kernel_at, self.config.far))
        tests["top-k"][far] = self.caption(self.test, fused, "top-k")
        return Found(steps, simple, tests, far)

    def report(
        self,
        found: Found,
        text: str,
        claims: Sequence[Claim],
        *,
        why: str,
        difference: str,
        meaning: str,
        paper: str = "",
    ) -> Findings:
        """Tables, plots and the claims that every kernel is held against, and its own.

        ``meaning`` is where the paper says that meaning stays.
        """
        steps, simple = found.steps, found.simple
        judge, test_judge = (each.judge(self.config.seed) for each in (self.validation, self.test))
        all_claims = [
            entropy_grows(steps, self.config.seed),
            ngrams_suffer(steps, judge, self.config.far),
            meaning_stays(found, test_judge, source=meaning, at_most=0.02),
            *claims,
        ]
        done = fill(
            _TEXT,
            self.config,
            names=f"{len(self.models)} LSTM captioners ({', '.join(self.models)})",
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
                        test_judge,
                        over=found.best_simple(search),
                        paper=paper if search == "top-k" else "",
                    )
                    for search in SEARCHES
                ),
            ],
            plots=_sweep_plots(steps, simple),
            claims=all_claims,
            verdict=conclude(all_claims, why),
            difference=difference,
        )

    def barycenter(self, epsilon: float) -> FusedNextWord:
        """All captioners fused through the kernel at ``epsilon``."""
        kernel, n_top = self.kernel_at(epsilon), self.config.n_top
        return self.config.barycenter(self.models.values(), kernel, n_top=n_top)

    def mean(self, order: float, epsilon: float | None = None) -> FusedNextWord:
        """A power mean, of what each captioner sends through the kernel if there is one."""
        models, rule = list(self.models.values()), PowerMean(order)
        if epsilon is None:
            return FusedNextWord(models, rule=rule)
        kernel, n_top = self.kernel_at(epsilon), self.config.n_top
        return FusedNextWord(models, kernel=kernel, rule=rule, n_top=n_top)

    def caption(
        self, gallery: Gallery, model: NextWordModel, search: str, **options: Any
    ) -> Captioned:
        """Captions of a gallery by one model."""
        if search == "randomised":
            options |= {"n_samples": self.config.n_samples, "seed": self.config.seed}
        return gallery.caption(model, **options)

    def _judge(self, gallery: Gallery, rules: dict[str, NextWordModel], search: str) -> Rules:
        return {name: self.caption(gallery, model, search) for name, model in rules.items()}

    def _step(self, distance: float) -> Step:
        epsilon = epsilon_at(self.kernel_at, distance)
        fused = self.barycenter(epsilon)
        by_search = {each: self.caption(self.validation, fused, each) for each in SEARCHES}
        return Step(distance, epsilon, by_search)

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


def entropy_grows(steps: Sequence[Step], seed: int) -> Claim:
    """The entropy of the fused histograms rises with epsilon."""
    spread = {search: [step.found[search].entropy for step in steps] for search in SEARCHES}
    rises = [
        entropy_gain(far.found[search], near.found[search], seed)
        for search in SEARCHES
        for near, far in pairwise(steps)
    ]
    least = min(rises, key=lambda rise: rise.low)
    ends = "; ".join(f"{search}: {e[0]:.2f} to {e[-1]:.2f}" for search, e in spread.items())
    return Claim(
        "entropy goes up with epsilon, at every step",
        _SOURCE,
        all_hold([held(rise) for rise in rises]),
        f"{ends}; the least sure step {least.words(2)}",
        f"{smallest_visible(least):.2f}",
    )


def ngrams_suffer(steps: Sequence[Step], judge: Judge, papers: float) -> Claim:
    """CIDEr falls as epsilon grows, in top-k search; ``papers`` is the paper's largest distance."""
    near, last = steps[0].found["top-k"].cider, steps[-1]
    far = last.found["top-k"].cider
    return claim_gains(
        "top-k: CIDEr deteriorates as epsilon grows",
        _SOURCE,
        {f"the same at distance {last.distance:g}": judge.gain(near, far)},
        beside=f"{near.mean():.3f} at distance {steps[0].distance:g}, {far.mean():.3f} there"
        + tell_papers(steps, papers, lambda step: judge.gain(near, step.found["top-k"].cider)),
    )


def tell_papers(steps: Sequence[Step], papers: float, gain: Callable[[Step], Figure]) -> str:
    """A gain at the paper's largest distance, in words, where one beyond it is judged."""
    at = [step for step in steps[:-1] if step.distance == papers]
    return "".join(f"; at {papers:g}, the paper's largest, {gain(step).words()}" for step in at)


def meaning_stays(found: Found, judge: Judge, *, source: str, at_most: float) -> Claim:
    """In top-k search WMD changes little."""
    rules = found.tests["top-k"]
    mean, far = rules["geometric mean"], rules[found.far]
    change = judge.gain(far.paper_similarity, mean.paper_similarity)
    bound = at_most * mean.mean_paper_similarity
    ours = far.mean_similarity / mean.mean_similarity - 1
    return Claim(
        f"top-k: WMD remains stable (within {at_most:.0%}), {found.far}",
        source,
        is_within(change, -bound, bound),
        f"{change.words(4)} beside the geometric mean's {mean.mean_paper_similarity:.3f};"
        f" exp(-distance) to the nearest reference {ours:+.1%}",
        f"{smallest_visible(change):.4f}",
    )


def reach(steps: Sequence[Step], simple: Mapping[str, Rules], search: str) -> float:
    """The distance up to which CIDEr keeps nine tenths of the geometric mean's; 0 if nowhere."""
    level = _KEEPS * simple[search]["geometric mean"].mean_cider
    kept = takewhile(lambda step: step.found[search].mean_cider >= level, steps)
    return max((step.distance for step in kept), default=0.0)


def randomised_loss(step: Step, simple: Mapping[str, Rules]) -> np.ndarray:
    """By image, how much more CIDEr a randomised search loses there than top-k does."""
    lost = [
        simple[search]["geometric mean"].cider - step.found[search].cider
        for search in ("randomised", "top-k")
    ]
    return lost[0] - lost[1]


def tell_reach(steps: Sequence[Step], simple: Mapping[str, Rules]) -> str:
    """How far each search goes, in words."""
    ends = (f"{reach(steps, simple, search):g} ({search})" for search in SEARCHES)
    return f"CIDEr keeps 90 % of the geometric mean's up to distance {', '.join(ends)}"


def _sweep_table(steps: Sequence[Step], simple: Mapping[str, Rules], *, n_words: int) -> Table:
    """Every step of the sweep below the simple rules, for both searches."""

    def row(name: str, epsilon: float | None, by_search: Mapping[str, Captioned]) -> list[Any]:
        each = [by_search[search] for search in SEARCHES]
        cells = [(e.mean_cider, e.mean_paper_similarity, e.entropy, e.n_words) for e in each]
        return [name, epsilon, *chain.from_iterable(cells)]

    rows = [
        row(rule, None, {search: simple[search][rule] for search in SEARCHES})
        for rule in simple[SEARCHES[0]]
        if all(rule in each for each in simple.values())  # tuned ones may differ
    ]
    rows += [
        row(f"barycenter, distance {step.distance:g}", step.epsilon, step.found) for step in steps
    ]
    columns = ["CIDEr", "WMD", "entropy", "words"]
    return Table(
        "Validation images, as epsilon grows",
        ["rule", "epsilon", *(f"{search}: {c}" for search in SEARCHES for c in columns)],
        rows,
        digits=[0, 3, *[3, 3, 2, 1] * len(SEARCHES)],
        note=_SWEEP_NOTE.format(uniform=np.log(n_words)),
    )


def _sweep_plots(steps: Sequence[Step], simple: Mapping[str, Rules]) -> list[Plot]:
    """CIDEr, meaning and entropy against the distance of K to the identity."""
    shown: dict[str, tuple[str, Callable[[Captioned], float]]] = {
        "cider": ("CIDEr", lambda each: each.mean_cider),
        "wmd": ("WMD similarity", lambda each: each.mean_paper_similarity),
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
