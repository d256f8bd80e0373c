"""How good captions are beside the references of their pictures.

Captions are texts whose words are parted by blanks, in lower case and without punctuation,
as COCO's tokeniser leaves them: nothing is tokenised here. CIDEr needs no
package, BLEU pycocoevalcap, METEOR Java as well, SPICE also a parser of 400 MB; the Word
Mover's Distance needs POT.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.errors import MissingExtraError
from wassemble.inputs.words.embeddings import Embeddings
from wassemble.metrics.cider import CiderD

__all__ = ["CaptionScore", "bleu", "cider", "meteor", "spice", "word_movers_distance"]

_PARSER = "stanford-corenlp-3.6.0.jar"


@dataclass(frozen=True, eq=False)
class CaptionScore:
    """A score of all captions, and of each.

    Attributes
    ----------
    value : float
        Of all captions together. For BLEU and METEOR it is not the mean of the single ones.
    per_image : ndarray of shape (n_images,)
    """

    value: float
    per_image: np.ndarray


def cider(captions: Sequence[str], references: Sequence[Sequence[str]]) -> CaptionScore:
    """CIDEr-D (Vedantam et al. 2015): rare n-grams shared with the references; from 0 to 10.

    Parameters
    ----------
    captions : sequence of str
        One for each image.
    references : sequence of sequences of str
        Some for each image. How rare an n-gram is, is counted on them.

    Examples
    --------
    >>> cider(["a cat on a mat", "a dog"], [["a cat on a mat"], ["the park"]]).per_image.round(3)
    array([10.,  0.])
    """
    _check(captions, references)
    scorer = CiderD([[text.split() for text in texts] for texts in references])
    scores = [scorer.score(image, text.split()) for image, text in enumerate(captions)]
    return CaptionScore(float(np.mean(scores)), np.array(scores))


def bleu(
    captions: Sequence[str], references: Sequence[Sequence[str]], *, n: int = 4
) -> CaptionScore:
    """BLEU (Papineni et al. 2002) with n-grams of one to ``n`` words; from 0 to 1.

    Parameters
    ----------
    captions, references
        As for `cider`.
    """
    _check(captions, references)
    module = load_extra("pycocoevalcap.bleu.bleu", "captions", purpose="BLEU")
    values, per_image = module.Bleu(n).compute_score(*_tables(captions, references), verbose=0)
    return CaptionScore(float(values[n - 1]), np.array(per_image[n - 1]))


def meteor(captions: Sequence[str], references: Sequence[Sequence[str]]) -> CaptionScore:
    """METEOR (Denkowski and Lavie 2014), by the Java program in pycocoevalcap; from 0 to 1.

    Parameters
    ----------
    captions, references
        As for `cider`.
    """
    _check(captions, references)
    module = load_extra("pycocoevalcap.meteor.meteor", "captions", purpose="METEOR")
    _check_java("METEOR")
    scorer = module.Meteor()
    try:
        value, per_image = scorer.compute_score(*_tables(captions, references))
    except (ValueError, OSError) as error:  # an answer that is no number, or none
        message = scorer.meteor_p.stderr.read().decode(errors="replace").strip()
        raise MissingExtraError(
            f"METEOR's Java program must answer with numbers; {message or error}.\n"
            "hint: it needs 2 GB of memory and Java 8 or later"
        ) from None
    finally:
        scorer.meteor_p.kill()  # the rest of its cleaning leaves these open
        scorer.meteor_p.stdout.close()
        scorer.meteor_p.stderr.close()
    return CaptionScore(value, np.array(per_image))


def spice(captions: Sequence[str], references: Sequence[Sequence[str]]) -> CaptionScore:
    """SPICE (Anderson et al. 2016): objects, attributes and relations shared; from 0 to 1.

    Its parser does not come with pycocoevalcap and is not downloaded unasked.

    Parameters
    ----------
    captions, references
        As for `cider`.
    """
    _check(captions, references)
    module = load_extra("pycocoevalcap.spice.spice", "captions", purpose="SPICE")
    _check_java("SPICE")
    parser = Path(module.__file__).parent / "lib" / _PARSER
    if not parser.is_file():
        raise MissingExtraError(
            f"SPICE needs the parser {_PARSER}, which is not installed.\n"
            "hint: python -m pycocoevalcap.spice.get_stanford_models downloads it (400 MB)"
        )
    value, entries = module.Spice().compute_score(*_tables(captions, references))
    return CaptionScore(float(value), np.array([entry["All"]["f"] for entry in entries]))


def word_movers_distance(
    captions: Sequence[str],
    references: Sequence[Sequence[str]],
    embeddings: Embeddings,
    *,
    leave_out: Collection[str] = (),
) -> CaptionScore:
    """Exact cost of moving a caption's words onto those of its nearest reference.

    Kusner et al. 2015: each word has the same mass, moving it costs the Euclidean distance
    of the words' vectors. The smaller, the closer in meaning.

    Parameters
    ----------
    captions, references
        As for `cider`.
    embeddings : Embeddings
        Words without a vector are left out.
    leave_out : collection of str
        Other words to leave out, such as stop words.

    Returns
    -------
    score : CaptionScore
        nan for a caption without a word that has a vector; the value is the mean over the
        others.

    Examples
    --------
    >>> vectors = Embeddings(["cat", "dog", "mat"], [[1, 0], [0.6, 0.8], [0, 1]])
    >>> word_movers_distance(["a cat mat"], [["dog mat", "mat"]], vectors).per_image.round(3)
    array([0.447])
    """
    _check(captions, references)
    exact = load_extra("ot", "captions", purpose="the Word Mover's Distance").emd2

    def distance(first: str, second: str) -> float:
        words, masses = _bag(first, embeddings, leave_out)
        others, other_masses = _bag(second, embeddings, leave_out)
        if not words or not others:
            return np.nan
        cost = np.linalg.norm(
            embeddings.vectors[words][:, None] - embeddings.vectors[others], axis=2
        )
        return float(exact(masses, other_masses, cost.astype(np.float64)))

    per_image = np.array(
        [
            # fmin: a reference without a known word is no reference
            np.fmin.reduce([distance(caption, reference) for reference in texts])
            for caption, texts in zip(captions, references, strict=True)
        ]
    )
    known = per_image[~np.isnan(per_image)]
    return CaptionScore(float(known.mean()) if len(known) else np.nan, per_image)


def _bag(
    text: str, embeddings: Embeddings, leave_out: Collection[str]
) -> tuple[list[int], np.ndarray]:
    """Places of a caption's words in the embeddings, and the mass of each."""
    found = (embeddings.find(word) for word in text.split() if word not in leave_out)
    counts = Counter(place for place in found if place is not None)
    return list(counts), np.array(list(counts.values()), dtype=np.float64) / max(counts.total(), 1)


def _check(captions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if isinstance(captions, str) or len(captions) != len(references) or not len(captions):
        fail(
            "there must be one caption, and a list of references, for each image; got"
            f" {'one text' if isinstance(captions, str) else f'{len(captions)} captions'}"
            f" and {len(references)} lists."
        )
    for image, texts in enumerate(references):
        if isinstance(texts, str) or not len(texts):
            fail(
                f"`references` must hold a list of captions for each image; got {texts!r}"
                f" at image {image}."
            )


def _tables(
    captions: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[dict[int, Any], dict[int, Any]]:
    """References and captions as pycocoevalcap wants them."""
    return (
        {image: list(texts) for image, texts in enumerate(references)},
        {image: [text] for image, text in enumerate(captions)},
    )


def _check_java(metric: str) -> None:
    if shutil.which("java") is None:
        raise MissingExtraError(
            f"{metric} needs Java, which is not installed.\n"
            "hint: install a Java runtime, or leave this metric out"
        )
