"""Where the words of a consensus come from (the paper's table 9), read from the couplings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from paper.data.coco import load_coco_captions
from paper.record.findings import Claim, Findings, Progress, Table, fill
from paper.record.verdicts import EXACT, conclude
from paper.words.models import load_glove, next_words, synonym_kernels, train_models
from wassemble.kernels import distance_to_identity
from wassemble.labels import LabelSpace
from wassemble.solvers import Barycenter, BarycenterResult, solve_barycenter

_TEXT = """\
Four 4-gram models over 10,000 words, each of the captions of a quarter of {n_train:,} COCO images
(next-word models without pictures, not the paper's captioners), after "{context} ...", and the
synonym kernel of "Controllable entropy" between their words; epsilon {epsilon:g}, ||K - I||_F
{distance:.1f}, {n_sweeps} sweeps of Algorithm 1. Three words of the consensus, chosen by rule: the
best one; the best that is in no model's {n_known} best words, so that transport alone brought it;
and the best that is no synonym of the first but has synonyms itself. For each, the words of each
model that sent its mass, in percent of the model's coupling with the consensus."""

_NOTE = """\
Columns sum to 100 % over all words of a model; the {n_shown} largest shares are shown. After
{n_longer} sweeps the shares shown are {moved:.1f} points off at most: Algorithm 1 has not converged
after {n_sweeps} (residual {residual:.2f}; {later:.2f} after {n_longer})."""

_DIFFERENCE = """\
other models, another text and other synonyms; the paper's words are those of
an image of a car. What can be compared is the kind of answer."""

_WHY = """\
a coupling moves mass along entries of K alone, and the synonym kernel joins nothing but words of
like meaning"""


@dataclass(frozen=True)
class Config:
    """Knobs: the context and the kernel."""

    context: str = "a black and white"
    epsilon: float = 0.91
    strength: float = 0.5
    n_sweeps: int = 5
    n_known: int = 20
    n_shown: int = 5
    n_longer: int = 100


def run(config: Config, progress: Progress = None) -> Findings:
    """Shares of each model's words in three words of the consensus."""
    words, _ = load_glove()
    histograms = next_words(train_models(words), [config.context])[:, 0]
    kernel = synonym_kernels(words, config.strength)(config.epsilon).kernel
    result, longer = (
        solve_barycenter(histograms, kernel, Barycenter(max_sweeps=n_sweeps, tolerance=None))
        for n_sweeps in (config.n_sweeps, config.n_longer)
    )
    if progress is not None:
        progress(1, 1)
    links = sp.csr_array(kernel.links())
    places = choose_words(result.barycenter, histograms, links, n_known=config.n_known)
    rows, moved, joined = _rows(words, result, longer, links, places, config.n_shown)
    title = "Words that made three words of the consensus, in percent"
    columns = ["consensus", *(f"model {n}" for n in range(1, len(histograms) + 1))]
    claim = Claim(
        "couplings map words of the consensus back to words of like meaning",
        "section 4, table 9",
        joined > 99.9,
        f"{joined:.1f} % of each word's mass came from itself or a synonym, at least",
        EXACT,
    )
    note = fill(_NOTE, config, moved=moved, residual=result.residual, later=longer.residual)
    return Findings(
        text=fill(
            _TEXT,
            config,
            distance=float(distance_to_identity(kernel)),
            n_train=len(load_coco_captions()),
        ),
        tables=[Table(title, columns, rows, note=note)],
        claims=[claim],
        verdict=conclude([claim], _WHY),
        difference=_DIFFERENCE,
    )


def choose_words(
    consensus: np.ndarray, histograms: np.ndarray, links: sp.csr_array, *, n_known: int
) -> list[int]:
    """The best word, the best that no model has among its best, the best of another meaning.

    ``links`` says which words the kernel joins.
    """
    order = np.argsort(-consensus, kind="stable")
    first = int(order[0])
    known = np.argsort(-histograms, axis=1, kind="stable")[:, :n_known]
    new = next(int(i) for i in order if i not in known)
    has_synonyms = np.diff(links.indptr) > 1
    near = links[[first]].indices
    other = next(int(i) for i in order if has_synonyms[i] and i not in near)
    return [first, new, other]


def _rows(
    words: LabelSpace,
    result: BarycenterResult,
    longer: BarycenterResult,
    links: sp.csr_array,
    places: list[int],
    n_shown: int,
) -> tuple[list[list[str]], float, float]:
    """Cells; by how much more sweeps move a share shown; least share of words joined by K."""
    rows: list[list[str]] = []
    moved, joined = 0.0, 100.0
    for place in places:
        near = links[[place]].indices  # the kernel is symmetric
        shares, later = (np.array(each.contributions(place)) for each in (result, longer))
        joined = min(joined, float(shares[:, near].sum(axis=1).min()))
        best = np.argsort(-shares, axis=1, kind="stable")[:, :n_shown]
        shown, after = (np.take_along_axis(each, best, axis=1) for each in (shares, later))
        moved = max(moved, float(np.abs(shown - after).max()))
        for rank in range(n_shown):
            cells = [
                f"{words[i]} {share:.2f}" if i in near else ""
                for i, share in zip(best[:, rank], shown[:, rank], strict=True)
            ]
            rows.append([words[place] if rank == 0 else "", *cells])
    return rows, moved, joined
