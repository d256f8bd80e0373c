"""Captions side by side for a page of test images (the paper's appendix A, figure 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paper.captioning.gallery import Gallery, Rules, SearchConfig
from paper.record.findings import Findings, Progress, Table, fill, paper_figures, ticker
from paper.words.models import epsilon_at, glove_kernels, synonym_kernels
from wassemble.solvers import ARITHMETIC, GEOMETRIC
from wassemble.text import FusedNextWord, NextWordModel

_TEXT = """\
The first {n_images} test images by number, not chosen by what was said of them: captions of
five captioners, of their means and of barycenters through GloVe (epsilon {glove:.3g}) and synonyms
(epsilon {synonyms:.3g}), as far from the identity as in the paper's table 7 and in the middle of
its table 3, with the reference captions. Numbers are those of COCO val2017; pictures are not
shipped. Beam {width}, sentences ranked by their mean log probability per word; nothing is
tuned here. CIDEr is of the single caption, with n-grams counted on all test images."""

_SAME_NOTE = """\
Of {n_images} images: captions that are word for word those of the geometric mean, and captions
with a word that no single captioner said of the image."""

_VERDICT = """\
That people find the barycenter's captions the most correct cannot be decided here: nobody was
asked."""

_DIFFERENCE = """\
the paper chose its examples, and asked people for the most correct caption ({shares}, figure
3)."""


@dataclass(frozen=True, kw_only=True)
class Config(SearchConfig):
    """Knobs: images and kernels."""

    n_images: int = 16
    glove_distance: float = 48.5
    synonym_distance: float = 59.4
    n_samples: int = 5
    n_top: int = 1000


def run(config: Config, progress: Progress = None) -> Findings:
    """Captions of each rule for each image."""
    captioners = config.read_captioners()
    models: list[NextWordModel] = list(captioners.values())
    arithmetic = FusedNextWord(models, rule=ARITHMETIC)
    words = arithmetic.vocabulary.words
    kernels = {
        "glove": (glove_kernels(words), config.glove_distance),
        "synonyms": (synonym_kernels(words), config.synonym_distance),
    }
    epsilons = {name: epsilon_at(*each) for name, each in kernels.items()}
    glove, synonyms = (
        config.barycenter(models, kernel_at(epsilons[name]), n_top=config.n_top)
        for name, (kernel_at, _) in kernels.items()
    )
    rules: dict[str, NextWordModel] = {
        **captioners,
        "arithmetic mean": arithmetic,
        "geometric mean": FusedNextWord(models, rule=GEOMETRIC),
        "barycenter, GloVe": glove,
        "barycenter, synonyms": synonyms,
    }
    sampled: dict[str, NextWordModel] = {
        "arithmetic mean, randomised": arithmetic,
        "barycenter, GloVe, randomised": glove,
    }
    tick = ticker(progress, len(rules) + len(sampled))
    gallery = config.gallery("test", config.n_images, tick)
    found: Rules = {name: gallery.caption(model) for name, model in rules.items()}
    for name, model in sampled.items():
        found[name] = gallery.caption(model, n_samples=config.n_samples, seed=config.seed)
    asked = paper_figures("captioning-examples").figures
    shares = ", ".join(f"{rule} {each['best, percent']} %" for rule, each in asked.items())
    return Findings(
        text=fill(_TEXT, config, n_images=len(gallery.references), **epsilons),
        tables=[
            _summary(found, tuple(captioners)),
            *(_image(gallery, found, place) for place in range(len(gallery.references))),
        ],
        verdict=_VERDICT,
        difference=_DIFFERENCE.format(shares=shares),
    )


def _summary(found: Rules, singles: tuple[str, ...]) -> Table:
    """How far each rule is from the geometric mean, and from what single captioners say."""
    plain = found["geometric mean"].texts
    said = [
        {word for name in singles for word in found[name].texts[place].split()}
        for place in range(len(plain))
    ]
    rows: list[list[Any]] = []
    for name, each in found.items():
        if name in singles:
            continue
        same = sum(own == other for own, other in zip(each.texts, plain, strict=True))
        new = sum(
            not set(own.split()) <= words for own, words in zip(each.texts, said, strict=True)
        )
        rows.append([name, same, new])
    columns = ["rule", "same as the geometric mean", "with a word that no captioner said"]
    return Table("Paraphrases", columns, rows, note=_SAME_NOTE.format(n_images=len(plain)))


def _image(gallery: Gallery, found: Rules, place: int) -> Table:
    rows = [[name, each.texts[place], float(each.cider[place])] for name, each in found.items()]
    rows += [["reference", text, None] for text in gallery.references[place]]
    title = f"Image {gallery.image_ids[place]}"
    return Table(title, ["who", "caption", "CIDEr"], rows, digits=2)
