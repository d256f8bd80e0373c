"""Five captioners fused through synonyms (the paper's section 6.3, figure 2, left and centre)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paper.captioning.study import Found, Study, StudyConfig
from paper.record.findings import Claim, Findings, Progress, fill
from paper.words.models import glove_kernels, synonym_kernels
from wassemble.kernels import distance_to_identity

_TEXT = """\
K is 1 for a word itself and (share of votes / 2) ** (1 / epsilon) for a synonym; votes are
WordNet synsets that two words share, and 1 for a PPDB pair. {n_alone:,} of the words have no
synonym among the others, and keep to themselves. The far barycenter is at epsilon {far:g}, the
largest."""

_DIFFERENCE = """\
the paper's synonyms and votes (Power Thesaurus) are not free, and its figure has no numbers.
Our captioners are small and learned from 3,000 images, not 113,000; 2,504 words, not 10,096.
WordNet joins words by senses that captions never mean, and PPDB has few of them."""


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Knobs: epsilons of synonyms, and one of GloVe that is as far from the identity."""

    epsilons: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0, 2.0, 10.0)
    far: float = 10.0
    glove_epsilon: float = 0.305


def run(config: Config, progress: Progress = None) -> Findings:
    """The sweep on validation images, and the test tables."""
    study = Study(config, synonym_kernels, progress)
    found = study.run()
    joined = np.asarray(study.kernel_at(config.far).kernel.row_sums) > 1
    n_alone = int((~joined).sum()) - len(study.vocabulary.special)
    text = fill(_TEXT, config, n_alone=n_alone)
    return study.report(found, text, [_diffuses_less(config, found)], _DIFFERENCE)


def _diffuses_less(config: Config, found: Found) -> Claim:
    """Beside GloVe as far from the identity, a randomised search keeps more."""
    glove = Study(config, glove_kernels)
    fused = glove.barycenter(config.glove_epsilon)
    distance = float(distance_to_identity(fused.kernels[0]))
    other = glove.caption(glove.validation, fused, "randomised")
    level = found.simple["randomised"]["geometric mean"].mean_cider
    last = found.steps[-1]
    own = last.found["randomised"]
    return Claim(
        "diffusion is smaller than with GloVe: neighbourhoods are limited (randomised)",
        "section 6.3",
        own.mean_cider > other.mean_cider and own.entropy < other.entropy,
        f"CIDEr {own.mean_cider:.3f}, entropy {own.entropy:.2f} at ||K - I||_F"
        f" {last.distance:.1f}; GloVe {other.mean_cider:.3f}, {other.entropy:.2f} at"
        f" {distance:.1f}; geometric mean {level:.3f}",
    )
