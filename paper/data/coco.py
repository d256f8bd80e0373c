"""Captions of all COCO images, as they lie in pycocoevalcap's wheel, and what is counted in them.

The jar of SPICE in that wheel has the captions of COCO's train2014 and val2014: 616,767 of
123,287 images. They are read from there and not shipped again. We have features of 5,000 of
these images (`paper.data.captions`), which are left out: what is counted here has not seen them.
"""

from __future__ import annotations

import json
import re
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from paper.data.captions import load_image_ids
from wassemble._extras import load_extra
from wassemble.errors import MissingExtraError
from wassemble.inputs.words.embeddings import Embeddings

N_IMAGES, N_CAPTIONS = 123_287, 616_767
MIN_USES = 5  # of a word that is kept, as in the paper's section 6.3
N_DIMENSIONS = 100  # of word vectors
_WINDOW = 2
_PARTS = tuple(f"coco/annotations/captions_{part}2014.json" for part in ("train", "val"))


@cache
def load_coco_captions() -> Mapping[int, tuple[str, ...]]:
    """Captions of 118,287 COCO images by their numbers: all but those that we have features of.

    Five or more of each; words parted by blanks, as `load_captions` has them.
    """
    captions = read_jar(_find_jar())
    held_out = set(load_image_ids().tolist())
    return {image: texts for image, texts in captions.items() if image not in held_out}


@cache
def load_coco_words() -> tuple[str, ...]:
    """The 10,192 words that `load_coco_captions` has five times or more, most frequent first.

    The paper has 10,096. Words that come equally often are in the order of the alphabet.
    """
    counts = Counter(
        word for texts in load_coco_captions().values() for text in texts for word in text.split()
    )
    kept = (word for word, count in counts.items() if count >= MIN_USES)
    return tuple(sorted(kept, key=lambda word: (-counts[word], word)))


@cache
def load_coco_vectors() -> Embeddings:
    """A vector of length 1 for each word of `load_coco_words`, learned from the captions alone.

    Words that stand beside the same words are near each other: positive pointwise mutual
    information with the two words before and after (contexts to the power .75, Levy et al.
    2015), reduced to 100 dimensions. The paper has vectors learned from pictures as well. The
    experiments use GloVe as the paper does, which has 9,912 of these words; these have all.
    """
    counts = _count_neighbours(load_coco_words())
    totals = np.asarray(counts.sum(axis=0)).ravel()
    contexts = totals**0.75 / (totals**0.75).sum()
    expected = totals[counts.row] * contexts[counts.col]
    counts.data = np.maximum(np.log(counts.data / expected), 0)
    # The first vector is given, so that each run ends with the same ones.
    first = np.full(len(totals), len(totals) ** -0.5)
    vectors, values, _ = svds(counts.tocsr(), N_DIMENSIONS, v0=first)
    vectors *= np.sqrt(values)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Embeddings(load_coco_words(), vectors, origin="vectors of words in COCO captions")


def _count_neighbours(words: Sequence[str]) -> sparse.coo_array:
    """How often each word stands at most ``_WINDOW`` words from each other, (n_words, n_words)."""
    numbers = {word: number for number, word in enumerate(words)}
    texts = (text for each in load_coco_captions().values() for text in each)
    # Captions end with words of no number, so that none is beside another caption's.
    line = (numbers.get(word, -1) for text in texts for word in text.split() + [""] * _WINDOW)
    flat = np.fromiter(line, dtype=np.int32)
    pairs = [_pair(flat[:-gap], flat[gap:]) for gap in range(1, _WINDOW + 1)]
    before, after = np.concatenate(pairs, axis=1)
    shape = len(words), len(words)
    counts = sparse.coo_array((np.ones(len(before)), (before, after)), shape=shape).tocsr()
    return (counts + counts.T).tocoo()


def _pair(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.stack([first, second])[:, (first >= 0) & (second >= 0)]


def split_words(text: str) -> str:
    """A caption as ours are: lower case, words parted by blanks.

    Accents are dropped, a possessive is the word "s", other apostrophes go, and every other
    character that is no letter and no digit parts words.

    Examples
    --------
    >>> split_words("The dog's water-bowl isn't red.")
    'the dog s water bowl isnt red'
    """
    text = text.lower()
    if not text.isascii():
        text = "".join(
            c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)
        )
    text = _POSSESSIVE.sub(" s ", text).replace("'", "")
    return " ".join(_WORD.findall(text))


_POSSESSIVE, _WORD = re.compile(r"'s\b"), re.compile(r"[a-z0-9]+")


def _find_jar() -> Path:
    module = load_extra("pycocoevalcap", "captions", purpose="reading the captions of COCO")
    return Path(module.__path__[0]) / "spice" / "spice-1.0.jar"


def read_jar(path: Path) -> dict[int, tuple[str, ...]]:
    """Captions of all COCO images, by the images' numbers, in the order of the captions' own."""
    annotations = _read_annotations(path)
    captions: dict[int, list[str]] = {}
    for each in sorted(annotations, key=lambda each: (each["image_id"], each["id"])):
        captions.setdefault(each["image_id"], []).append(split_words(each["caption"]))
    if (len(captions), len(annotations)) != (N_IMAGES, N_CAPTIONS):
        _refuse(path, f"got {len(annotations):,} of {len(captions):,}")
    return {image: tuple(texts) for image, texts in captions.items()}


def _read_annotations(path: Path) -> list[dict[str, Any]]:
    try:
        with zipfile.ZipFile(path) as jar:
            parts = [json.loads(jar.read(part))["annotations"] for part in _PARTS]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        _refuse(path, str(error))
    return [each for part in parts for each in part]


def _refuse(path: Path, reason: str) -> NoReturn:
    raise MissingExtraError(
        f"{path}: must hold {N_CAPTIONS:,} captions of {N_IMAGES:,} COCO images; {reason}.\n"
        "hint: pip install pycocoevalcap==1.2, whose wheel has them"
    )
