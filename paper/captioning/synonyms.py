"""Five captioners fused through synonyms (the paper's section 6.3, figure 2, left and centre)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paper.captioning.study import Found, Study, StudyConfig, randomised_loss, tell_reach
from paper.record.findings import Claim, Findings, Progress, fill
from paper.record.verdicts import claim_gains
from paper.words.models import epsilon_at, glove_kernels, synonym_kernels

_TEXT = """\
K is 1 for a word itself and (share of votes / 2) ** (1 / epsilon) for a synonym; votes are
WordNet synsets that two words share, and 1 for a PPDB pair. {n_alone:,} of the words have no
synonym among the others, and keep to themselves. Distances are of the paper's table 3."""

_WHY = """\
neighbourhoods are limited, so that even a randomised search stays in them; but synonyms of senses
that captions never mean cost more than paraphrases do in the paper"""

_DIFFERENCE = """\
the paper's synonyms and votes (Power Thesaurus) are not free, and its figure has no numbers.
Our captioners are small, and are told what 3,000 images, not 113,000, taught a regression to see.
WordNet joins words by senses that captions never mean, and PPDB has few of them."""


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Knobs: distances of synonym kernels to the identity."""

    distances: tuple[float, ...] = (0.25, 15.8, 43.3, 79.8, 109.7)
    far: float = 109.7


def run(config: Config, progress: Progress = None) -> Findings:
    """The sweep on validation images, and the test tables."""
    study = Study(config, synonym_kernels, progress)
    found = study.run()
    joined = np.asarray(study.kernel_at(1.0).kernel.row_sums) > 1
    n_alone = int((~joined).sum()) - len(study.vocabulary.special)
    text = fill(_TEXT, config, n_alone=n_alone)
    claims = [_diffuses_less(study, found)]
    return study.report(
        found,
        text,
        claims,
        why=_WHY,
        difference=_DIFFERENCE,
        meaning="section 6.3, figure 2",
    )


def _diffuses_less(study: Study, found: Found) -> Claim:
    """Beside GloVe as far from the identity, a randomised search keeps more."""
    last = found.steps[-1]
    kernels = glove_kernels(study.vocabulary.words)
    kernel = kernels(epsilon_at(kernels, last.distance))
    glove = study.config.barycenter(study.models.values(), kernel, n_top=study.config.n_top)
    gallery = study.config.gallery("val", study.config.n_validation)
    other = study.caption(gallery, glove, "randomised")
    own, judge = last.found["randomised"], gallery.judge(study.config.seed)
    more = float(randomised_loss(last, found.simple).mean())
    return claim_gains(
        "diffusion is smaller than with GloVe: neighbourhoods are limited (randomised, CIDEr)",
        "section 6.3",
        {f"GloVe, both at distance {last.distance:g}": judge.gain(own.cider, other.cider)},
        beside=f"entropy {own.entropy:.2f}, with GloVe {other.entropy:.2f}; a randomised search"
        f" loses {more:+.3f} more than top-k there; {tell_reach(found.steps, found.simple)}",
    )
