"""Captioners fused through a kernel whose epsilon grows, beside the means; then the test images.

What the experiments on GloVe and on synonyms share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paper.captioning.gallery import FIVE, Captioned, Gallery, read_captioners
from paper.captioning.kernels import KernelAt
from paper.record.findings import Progress
from wassemble.kernels import distance_to_identity
from wassemble.labels import LabelSpace
from wassemble.solvers import Barycenter, PowerMean
from wassemble.text.fused import FusedNextWord
from wassemble.text.models import NextWordModel

__all__ = ["SEARCHES", "Found", "Rules", "Step", "Study", "StudyConfig"]

SEARCHES = ("top-k", "randomised")

Rules = dict[str, Captioned]
"""What each rule said, by its name."""

_TEXT = """\
{names} give a histogram of {n_words:,} words each at every step; Algorithm 1 fuses them with
equal weights, by at most {sweeps} sweeps, the paper's number, and fewer where a row has reached
a residual of {tolerance:g}. Beam {width}; the randomised search samples {n_samples} words in
each beam. Sentences are ranked by their mean log probability per word: mass that spreads makes
every word less likely, but not the end. Everything is chosen on {n_validation} validation images
(best CIDEr, for each search); {n_test} test images are judged once."""


@dataclass(frozen=True)
class StudyConfig:
    """Knobs: images, the search, and what is tried on validation images.

    Attributes
    ----------
    max_sweeps : int
        The paper's sweeps; fewer where a row has reached ``tolerance``.
    far : float
        An epsilon to judge on test images beside the best one.
    """

    epsilons: tuple[float, ...]
    far: float
    captioners: tuple[str, ...] = FIVE
    orders: tuple[float, ...] = (0.25, 0.5, 2.0)
    n_validation: int = 75
    n_test: int = 250
    width: int = 5
    n_samples: int = 5
    length_power: float = 1.0
    max_words: int = 14
    max_sweeps: int = 5
    tolerance: float = 1e-3
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Step:
    """What barycenters through one kernel said of validation images, by search."""

    epsilon: float
    distance: float
    found: dict[str, Captioned]


@dataclass(frozen=True, eq=False)
class Found:
    """What a study found.

    Attributes
    ----------
    steps : list of Step
        From the smallest epsilon to the largest.
    simple : dict of search to rules
        Single captioners and means, on validation images.
    tests : dict of search to rules
        Simple rules and barycenters, on test images.
    far : str
        The rule of the far barycenter.
    """

    steps: list[Step]
    simple: dict[str, Rules]
    tests: dict[str, Rules]
    far: str

    def best_simple(self, search: str) -> str:
        """The simple rule of best CIDEr on validation images."""
        rules = self.simple[search]
        return max(rules, key=lambda rule: rules[rule].cider.mean())


class Study:
    """Runs rules on validation and on test images.

    Parameters
    ----------
    kernels : callable
        From words to their kernels.
    """

    def __init__(
        self,
        config: StudyConfig,
        kernels: Callable[[LabelSpace], KernelAt],
        progress: Progress = None,
    ) -> None:
        self.config = config
        self.models = read_captioners(config.captioners)
        self.vocabulary = FusedNextWord(list(self.models.values())).vocabulary
        self.kernel_at = kernels(self.vocabulary.words)
        search = {
            "width": config.width,
            "length_power": config.length_power,
            "max_words": config.max_words,
        }
        self.validation = Gallery("val", config.n_validation, **search)
        self.test = Gallery("test", config.n_test, **search)
        self._progress = progress
        self._n_done = 0

    def run(self) -> Found:
        """The sweep, then everything that is judged on test images."""
        steps = self._sweep()
        simple: dict[str, Rules] = {}
        tests: dict[str, Rules] = {}
        far = f"barycenter, far (epsilon {self.config.far:g})"
        for search in SEARCHES:
            rules = self._simple_rules(search)
            simple[search] = self._judge(self.validation, rules, search)
            best = max(steps, key=lambda step: step.found[search].cider.mean()).epsilon
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

    def describe(self) -> str:
        """What is fused, searched and judged, in words."""
        config = self.config
        return _TEXT.format(
            names=f"{len(self.models)} LSTM captioners with attention ({', '.join(self.models)})",
            n_words=len(self.vocabulary),
            sweeps=config.max_sweeps,
            tolerance=config.tolerance,
            width=config.width,
            n_samples=config.n_samples,
            n_validation=len(self.validation.references),
            n_test=len(self.test.references),
        )

    def barycenter(self, epsilon: float) -> FusedNextWord:
        """All captioners fused through the kernel at ``epsilon``."""
        return FusedNextWord(
            list(self.models.values()),
            kernel=self.kernel_at(epsilon),
            rule=Barycenter(max_sweeps=self.config.max_sweeps, tolerance=self.config.tolerance),
        )

    def mean(self, order: float, epsilon: float | None = None) -> FusedNextWord:
        """A power mean, of what each captioner sends through the kernel if there is one."""
        return FusedNextWord(
            list(self.models.values()),
            kernel=None if epsilon is None else self.kernel_at(epsilon),
            rule=PowerMean(order),
        )

    def caption(
        self, gallery: Gallery, model: NextWordModel, search: str, **options: Any
    ) -> Captioned:
        """Captions of a gallery by one model."""
        if search == "randomised":
            options |= {"n_samples": self.config.n_samples, "seed": self.config.seed}
        found = gallery.caption(model, **options)
        self._n_done += 1
        if self._progress is not None:
            self._progress(self._n_done, self._n_all)
        return found

    def _judge(self, gallery: Gallery, rules: dict[str, NextWordModel], search: str) -> Rules:
        return {name: self.caption(gallery, model, search) for name, model in rules.items()}

    def _sweep(self) -> list[Step]:
        steps = []
        for epsilon in sorted(self.config.epsilons):
            fused = self.barycenter(epsilon)
            distance = float(distance_to_identity(fused.kernels[0]))
            found = {search: self.caption(self.validation, fused, search) for search in SEARCHES}
            steps.append(Step(epsilon, distance, found))
        return steps

    def _simple_rules(self, search: str) -> dict[str, NextWordModel]:
        """Single captioners and means; the order of the power mean is that of best CIDEr."""
        tried = {order: self.mean(order) for order in self.config.orders}
        best = max(
            tried,
            key=lambda order: self.caption(self.validation, tried[order], search).cider.mean(),
        )
        return self.models | {
            "arithmetic mean": self.mean(1),
            "geometric mean": self.mean(0),
            f"power mean (order {best:g}, tuned)": tried[best],
        }

    @property
    def _n_all(self) -> int:
        """Captionings: the sweep and the orders, simple rules on both splits, rules through K."""
        config = self.config
        n_simple = len(config.captioners) + 3
        return len(SEARCHES) * (len(config.epsilons) + len(config.orders) + 2 * n_simple + 2) + 2
