"""Tables and plots of the experiment on entropy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paper.record.findings import Cell, Plot, Table
from paper.record.paper_figures import paper_figures
from wassemble.labels import LabelSpace
from wassemble.metrics import entropy

__all__ = ["Step", "entropy_plots", "entropy_table", "sample_table", "words_table"]

_ENTROPY_NOTE = """\
Numbers behind a kernel's name are ||K - I||_F. Entropy is of the consensus after the context,
mean entropy over all contexts; a uniform consensus has {uniform:.2f}. Debiased is beyond the
paper ({n_sweeps} sweeps, after the context): the blur of the regularisation is taken out."""

_WORDS_NOTE = "A balanced consensus that has not converged sums to less than 100 %."


@dataclass(frozen=True, eq=False)
class Step:
    """What one kernel gave."""

    epsilon: float
    distance: float
    consensus: np.ndarray  # (1 + n_contexts, n_words)
    first: np.ndarray  # after one sweep, the context's
    debiased: np.ndarray | None  # the context's

    @property
    def title(self) -> str:
        near = f"{self.distance:.3g}" if self.distance < 100 else f"{self.distance:,.0f}"
        return f"{near} (epsilon {self.epsilon:g})"


def entropy_table(
    sweeps: dict[str, list[Step]],
    means: dict[str, np.ndarray],
    histograms: np.ndarray,
    n_sweeps: int,
) -> Table:
    """Entropies of models, means and every consensus, with the paper's where it has them."""
    paper = paper_figures("entropy")
    rows: list[list[Cell]] = []

    def row(
        name: str, found: np.ndarray, debiased: np.ndarray | None = None, key: str = ""
    ) -> None:
        spread = None if debiased is None else float(entropy(debiased))
        each = entropy(found)
        rows.append([name, float(each[0]), float(each.mean()), spread, paper.get(key, "entropy")])

    for number, histogram in enumerate(histograms, start=1):
        row(f"model {number}", histogram)
    for name, mean in means.items():
        row(name, mean, key=name)
    for name, steps in sweeps.items():
        for step in steps:
            key = f"Wasserstein, GloVe, {step.distance:.1f}" if name == "GloVe" else ""
            row(f"Wasserstein, {name}, {step.title}", step.consensus, step.debiased, key)
    columns = ["rule", "entropy", "mean entropy", "entropy, debiased", "paper's mean, table 7"]
    note = _ENTROPY_NOTE.format(uniform=np.log(histograms.shape[2]), n_sweeps=n_sweeps)
    return Table("Entropy of the consensus", columns, rows, digits=2, note=note)


def sample_table(
    words: LabelSpace,
    step: Step,
    means: dict[str, np.ndarray],
    histograms: np.ndarray,
    *,
    n_top: int,
) -> Table:
    """Table 2: one synonym kernel beside means and models."""
    listed = {f"Wasserstein, synonyms, {step.title}": step.consensus[0]}
    listed |= {name: mean[0] for name, mean in means.items()}
    listed |= {f"model {n}": each[0] for n, each in enumerate(histograms, start=1)}
    return _best_words("Best words, in percent", words, listed, n_top)


def words_table(words: LabelSpace, name: str, steps: list[Step], *, n_top: int) -> Table:
    """Tables 3 and 8."""
    listed = {step.title: step.consensus[0] for step in steps}
    title = f"Best words of the consensus through {name}, in percent, by ||K - I||_F"
    return _best_words(title, words, listed, n_top, note=_WORDS_NOTE)


def _best_words(
    title: str, words: LabelSpace, listed: dict[str, np.ndarray], n_top: int, note: str = ""
) -> Table:
    columns = []
    for histogram in listed.values():
        places = np.argsort(-histogram, kind="stable")[:n_top]
        columns.append([f"{words[i]} {100 * histogram[i]:.2f}" for i in places])
    rows: list[Sequence[Cell]] = [
        [str(rank), *cells] for rank, cells in enumerate(zip(*columns, strict=True))
    ]
    return Table(title, ["rank", *listed], rows, note=note)


def entropy_plots(
    words: LabelSpace, sweeps: dict[str, list[Step]], means: dict[str, np.ndarray]
) -> list[Plot]:
    """Entropy against distance, words as bars (figure 4), and the failure case (figure 5)."""
    curves: dict[str, list[tuple[float | str, float]]] = {
        name: [(step.distance, float(entropy(step.consensus).mean())) for step in steps]
        for name, steps in sweeps.items()
    }
    ends = [step.distance for steps in sweeps.values() for step in steps]
    for name, mean in means.items():
        level = float(entropy(mean).mean())
        curves[name] = [(min(ends), level), (max(ends), level)]
    widest = sweeps["synonyms"][0].consensus[0]
    shown = np.argsort(-widest, kind="stable")[:15]
    bars = {"Wasserstein, synonyms": widest} | {name: mean[0] for name, mean in means.items()}
    ranks = np.unique(np.geomspace(1, len(words), 40).astype(int))
    falls = {
        step.title: np.sort(step.consensus[0])[::-1] / step.consensus[0].sum()
        for step in [*sweeps["GloVe"][:3], sweeps["GloVe"][-1]]
    }
    return [
        Plot(
            "distance",
            "Entropy against the kernel's distance to the identity",
            "||K - I||_F",
            "mean entropy (nats)",
            curves,
            log_x=True,
        ),
        Plot(
            "words",
            "Best words of the consensus through synonyms",
            "",
            "percent",
            {name: [(words[i], 100 * float(h[i])) for i in shown] for name, h in bars.items()},
        ),
        Plot(
            "failure",
            "Too large an epsilon: mass of the k best words (GloVe)",
            "k",
            "share of the consensus",
            {name: [(int(k), float(h[:k].sum())) for k in ranks] for name, h in falls.items()},
            log_x=True,
        ),
    ]
