"""How good captions are beside the references of their pictures, and how varied.

Captions are texts whose words are parted by blanks, in lower case and without punctuation,
as COCO's tokeniser leaves them: nothing is tokenised here. CIDEr needs no
package, BLEU pycocoevalcap, METEOR Java as well, SPICE also a parser of 400 MB; the Word
Mover's Distance needs POT.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np

from paper.data.coco import load_coco_captions
from wassemble._checks import check_count, fail
from wassemble._extras import load_extra
from wassemble.errors import MissingExtraError
from wassemble.inputs.words.embeddings import Embeddings

_PARSER = "stanford-corenlp-3.6.0.jar"
Ngrams = Counter[tuple[str, ...]]

_N = 4  # n-grams of one to four words
_SIGMA = 6.0  # how much a difference in length may be, in words


@dataclass(frozen=True, eq=False)
class CaptionScore:
    """A score of all captions, and of each."""

    value: float  # of all together: for BLEU and METEOR not the mean of the single ones
    per_image: np.ndarray


def cider(
    captions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    frequencies: Frequencies | None = None,
) -> CaptionScore:
    """CIDEr-D (Vedantam et al. 2015): rare n-grams shared with the references; from 0 to 10.

    One caption and some references for each image. How rare an n-gram is, is counted in the
    references, or said by ``frequencies``: scores compare only if these are the same.

    Examples
    --------
    >>> cider(["a cat on a mat", "a dog"], [["a cat on a mat"], ["the park"]]).per_image.round(3)
    array([10.,  0.])
    """
    _check(captions, references)
    scorer = CiderD([[text.split() for text in texts] for texts in references], frequencies)
    scores = [scorer.score(image, text.split()) for image, text in enumerate(captions)]
    return CaptionScore(float(np.mean(scores)), np.array(scores))


def bleu(
    captions: Sequence[str], references: Sequence[Sequence[str]], *, n: int = 4
) -> CaptionScore:
    """BLEU (Papineni et al. 2002) with n-grams of one to ``n`` words; from 0 to 1.

    Arguments as for `cider`.
    """
    _check(captions, references)
    module = load_extra("pycocoevalcap.bleu.bleu", "captions", purpose="BLEU")
    values, per_image = module.Bleu(n).compute_score(*_tables(captions, references), verbose=0)
    return CaptionScore(float(values[n - 1]), np.array(per_image[n - 1]))


def meteor(captions: Sequence[str], references: Sequence[Sequence[str]]) -> CaptionScore:
    """METEOR (Denkowski and Lavie 2014), by the Java program in pycocoevalcap; from 0 to 1.

    Arguments as for `cider`.
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

    Arguments as for `cider`.
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
    to_nearest: bool = True,
) -> CaptionScore:
    """Exact cost of moving a caption's words onto those of its nearest reference.

    Kusner et al. 2015: each word has the same mass, moving it costs the Euclidean distance
    of the words' vectors. The smaller, the closer in meaning. Words without a vector are left
    out, and ``leave_out``, such as stop words; a caption that has no others scores nan, and the
    value is the mean over the rest. Without ``to_nearest`` it is the mean over the references.

    Examples
    --------
    >>> vectors = Embeddings(["cat", "dog", "mat"], [[1, 0], [0.6, 0.8], [0, 1]])
    >>> word_movers_distance(["a cat mat"], [["dog mat", "mat"]], vectors).per_image.round(3)
    array([0.447])
    """
    _check(captions, references)
    exact = load_extra("ot", "captions", purpose="the Word Mover's Distance").emd2
    vectors = embeddings.vectors

    def distance(first: str, second: str) -> float:
        words, masses = _bag(first, embeddings, leave_out)
        others, other_masses = _bag(second, embeddings, leave_out)
        if not words or not others:
            return np.nan
        cost = np.linalg.norm(vectors[words][:, None] - vectors[others], axis=2)
        return float(exact(masses, other_masses, cost.astype(np.float64)))

    def over_references(distances: list[float]) -> float:
        # A reference without a known word is no reference.
        known = [each for each in distances if not np.isnan(each)]
        if not known:
            return np.nan
        return min(known) if to_nearest else float(np.mean(known))

    per_image = np.array(
        [
            over_references([distance(caption, reference) for reference in texts])
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


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Of how many images the captions have an n-gram."""

    n_images: int
    n_images_with: Mapping[tuple[str, ...], int]  # those of one image only may be left out


def count_frequencies(references: Sequence[Sequence[Sequence[str]]]) -> Frequencies:
    """In the captions of some images, each a sequence of words.

    N-grams of a single image are left out: to CIDEr they are as rare as those of none.
    """
    kept: dict[tuple[str, ...], int] = {}
    for n in range(1, _N + 1):  # one after the other: of all captions they are millions
        counts: Ngrams = Counter()
        for each in references:
            counts.update({ngram for caption in each for ngram in _ngrams(caption, n)})
        kept |= {ngram: count for ngram, count in counts.items() if count > 1}
    return Frequencies(len(references), kept)


@cache
def coco_frequencies() -> Frequencies:
    """Frequencies in the captions of 118,287 COCO images: all that we have no features of."""
    captions = load_coco_captions().values()
    return count_frequencies([[text.split() for text in texts] for texts in captions])


@final
class CiderD:
    """CIDEr-D of one caption at a time, against references that were prepared once.

    For training and stopping rules, where a caption's score is wanted thousands of times.

    N-grams that are in the references of many images, or so say ``frequencies``, count less.
    Vedantam et al. 2015, in the clipped form CIDEr-D, as COCO's server and pycocoevalcap
    compute it. A caption is a sequence of words.

    Examples
    --------
    >>> cider = CiderD([["a cat on a mat".split()], ["two dogs in the park".split()]])
    >>> round(cider.score(0, "a cat on a mat".split()), 3)
    10.0
    >>> cider.score(0, "two dogs in the park".split())
    0.0
    """

    def __init__(
        self,
        references: Sequence[Sequence[Sequence[str]]],
        frequencies: Frequencies | None = None,
    ) -> None:
        frequencies = frequencies or count_frequencies(references)
        self._log_n_images = math.log(frequencies.n_images)
        self._n_images_with = frequencies.n_images_with
        counts = [[_count_ngrams(caption) for caption in each] for each in references]
        self._lengths = [[len(caption) for caption in each] for each in references]
        self._norms = []
        # Per image: which references have an n-gram, and with what weight.
        self._holders: list[dict[tuple[str, ...], list[tuple[int, float]]]] = []
        for each in counts:
            holders = defaultdict(list)
            norms = []
            for place, ngrams in enumerate(each):
                weights, norm = self._weigh(ngrams)
                norms.append(norm)
                for ngram, weight in weights.items():
                    holders[ngram].append((place, weight))
            self._holders.append(dict(holders))
            self._norms.append(norms)

    def score(self, image: int, caption: Sequence[str]) -> float:
        """Score of ``caption`` for an image, by its place; from 0 to 10."""
        weights, norm = self._weigh(_count_ngrams(caption))
        lengths, norms, holders = self._lengths[image], self._norms[image], self._holders[image]
        shared = [[0.0] * _N for _ in lengths]
        for ngram, weight in weights.items():
            for place, theirs in holders.get(ngram, ()):
                shared[place][len(ngram) - 1] += min(weight, theirs) * theirs
        total = 0.0
        for place, length in enumerate(lengths):
            # In bigrams, as the reference code counts: a caption of one word is as long as none.
            gap = max(len(caption), 1) - max(length, 1)
            near = math.exp(-(gap**2) / (2 * _SIGMA**2))
            for mine, theirs, both in zip(norm, norms[place], shared[place], strict=True):
                if mine > 0 and theirs > 0:
                    total += near * both / (mine * theirs)
        return 10 * total / (_N * len(lengths))

    def _weigh(self, counts: Ngrams) -> tuple[dict[tuple[str, ...], float], list[float]]:
        """Weight of each n-gram: its count by its rarity; and the norm for each n."""
        squares = [0.0] * _N
        weights = {}
        for ngram, count in counts.items():
            weight = count * (self._log_n_images - math.log(self._n_images_with.get(ngram, 1)))
            weights[ngram] = weight
            squares[len(ngram) - 1] += weight**2
        return weights, [math.sqrt(square) for square in squares]


def _count_ngrams(caption: Sequence[str]) -> Ngrams:
    return Counter(ngram for n in range(1, _N + 1) for ngram in _ngrams(caption, n))


def distinct_n(texts: Sequence[str], n: int = 2) -> float:
    """Share of different n-grams among all n-grams (Li et al. 2016); nan if there is none.

    Examples
    --------
    >>> distinct_n(["a cat sat", "a cat ran"], 1)
    0.6666666666666666
    """
    ngrams = [ngram for text in texts for ngram in _ngrams(text.split(), n)]
    return len(set(ngrams)) / len(ngrams) if ngrams else math.nan


def vocabulary_size(texts: Sequence[str]) -> int:
    """Number of different words.

    Examples
    --------
    >>> vocabulary_size(["a cat sat", "a cat ran"])
    4
    """
    return len({word for text in texts for word in text.split()})


def self_bleu(texts: Sequence[str], n: int = 4) -> float:
    """Mean BLEU of each text with all others as its references (Zhu et al. 2018).

    The larger, the more the texts are alike. N-grams are of one to ``n`` words.

    Examples
    --------
    >>> self_bleu(["a cat sat on it", "a cat sat on it", "a cat sat on it"])
    1.0
    """
    n = check_count(n, "n")
    if len(texts) < 2:
        fail(f"`texts` must hold at least two, to compare; got {len(texts)}.")
    words = [text.split() for text in texts]
    counts = [[Counter(_ngrams(each, size)) for size in range(1, n + 1)] for each in words]
    # An n-gram's largest count in the others is the largest of all, or, for the text that has
    # that one, the second largest.
    largest = [_two_largest([each[size] for each in counts]) for size in range(n)]
    total = 0.0
    for place, (each, ngrams) in enumerate(zip(words, counts, strict=True)):
        others = [len(other) for other in words[:place] + words[place + 1 :]]
        nearest = min(others, key=lambda length: (abs(length - len(each)), length))
        total += _bleu(len(each), nearest, ngrams, largest)
    return total / len(words)


def _bleu(
    length: int,
    reference_length: int,
    ngrams: list[Ngrams],
    largest: list[dict[tuple[str, ...], tuple[int, int]]],
) -> float:
    log_precision = 0.0
    for counted, most in zip(ngrams, largest, strict=True):
        shared = 0
        for ngram, count in counted.items():
            first, second = most[ngram]
            shared += min(count, second if count == first else first)
        if not shared:
            return 0.0
        log_precision += math.log(shared / counted.total()) / len(ngrams)
    return math.exp(log_precision + min(0.0, 1 - reference_length / length))


def _two_largest(counts: list[Ngrams]) -> dict[tuple[str, ...], tuple[int, int]]:
    """The two largest counts of each n-gram, equal ones twice."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for counted in counts:
        for ngram, count in counted.items():
            first, second = found.get(ngram, (0, 0))
            found[ngram] = (max(first, count), max(second, min(first, count)))
    return found


def _ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]
