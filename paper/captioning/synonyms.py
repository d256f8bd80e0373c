"""Five captioners fused through synonyms (the paper's section 6.3, figure 2, left and centre)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paper.captioning.claims import (
    ends_sooner,
    entropy_grows,
    meaning_stays,
    ngrams_suffer,
)
from paper.captioning.kernels import glove_kernels, synonym_kernels
from paper.captioning.study import Found, Study, StudyConfig
from paper.captioning.tables import study_tables, sweep_plots
from paper.record.findings import Claim, Findings, Progress
from wassemble.kernels import distance_to_identity

__all__ = ["Config", "run"]

_TEXT = """\
K is 1 for a word itself and (share of votes / 2) ** (1 / epsilon) for a synonym; votes are
WordNet synsets that two words share, and 1 for a PPDB pair. {n_alone:,} of the words have no
synonym among the others, and keep to themselves. The far barycenter is at epsilon {far:g}, the
largest."""

_DIFFERENCE = """\
the paper's synonyms and votes (Power Thesaurus) are not free, and its figure has no numbers.
Our captioners are small and learned from 3,000 images, not 113,000; 2,504 words, not 10,096.
WordNet joins words by senses that captions never mean, and PPDB has few of them."""


@dataclass(frozen=True)
class Config(StudyConfig):
    """Knobs: epsilons of synonyms, and one of GloVe that is as far from the identity."""

    epsilons: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0, 2.0, 10.0)
    far: float = 10.0
    glove_epsilon: float = 0.305


def run(config: Config, progress: Progress = None) -> Findings:
    """The sweep on validation images, and the test tables."""
    study = Study(config, synonym_kernels, progress)
    found = study.run()
    steps, simple = found.steps, found.simple
    joined = np.asarray(study.kernel_at(config.far).kernel.row_sums) > 1
    n_alone = int((~joined).sum()) - len(study.vocabulary.special)
    text = _TEXT.format(n_alone=n_alone, far=config.far)
    return Findings(
        text=f"{study.describe()} {text}",
        tables=study_tables(study, found),
        plots=sweep_plots(steps, simple),
        claims=[
            entropy_grows(steps),
            ngrams_suffer(steps, simple),
            meaning_stays(found, at_most=0.02),
            ends_sooner(steps, simple),
            _diffuses_less(config, found),
        ],
        difference=_DIFFERENCE,
    )


def _diffuses_less(config: Config, found: Found) -> Claim:
    """Beside GloVe as far from the identity, a randomised search keeps more."""
    glove = Study(config, glove_kernels)
    fused = glove.barycenter(config.glove_epsilon)
    distance = float(distance_to_identity(fused.kernels[0]))
    other = glove.caption(glove.validation, fused, "randomised")
    level = found.simple["randomised"]["geometric mean"].cider.mean()
    last = found.steps[-1]
    own = last.found["randomised"]
    return Claim(
        "diffusion is smaller than with GloVe: neighbourhoods are limited (randomised)",
        "section 6.3",
        own.cider.mean() > other.cider.mean() and own.entropy < other.entropy,
        f"CIDEr {own.cider.mean():.3f}, entropy {own.entropy:.2f} at ||K - I||_F"
        f" {last.distance:.1f}; GloVe {other.cider.mean():.3f}, {other.entropy:.2f} at"
        f" {distance:.1f}; geometric mean {level:.3f}",
    )
