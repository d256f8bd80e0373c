"""Four next-word models over 10,000 words, and the vectors of those words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.data.captions import load_captions
from paper.data.files import find_data
from wassemble.labels import LabelSpace
from wassemble.text import NGramModel, Vocabulary

_N_MODELS = 4
_ORDER = 4
_SPECIAL = ("<end>", "<unk>")


def load_glove(n_words: int = 10_000) -> tuple[LabelSpace, np.ndarray]:
    """The most frequent words of GloVe, and their unit vectors in float32."""
    with np.load(find_data("words/glove_100d_10k.npz")) as arrays:
        words = LabelSpace(arrays["words"][:n_words].tolist())
        vectors = arrays["vectors"][:n_words].astype(np.float32)
    return words, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def vocabulary_of(words: LabelSpace) -> Vocabulary:
    """The words, after the end of a sentence and the unknown word."""
    return Vocabulary(LabelSpace([*_SPECIAL, *words]))


def train_models(words: LabelSpace) -> list[NGramModel]:
    """Smoothed 4-gram models, each of a quarter of the images with training captions."""
    vocabulary = vocabulary_of(words)
    captions = load_captions("train").captions
    return [
        NGramModel.fit(
            [text.split() for image in captions[number::_N_MODELS] for text in image],
            order=_ORDER,
            vocabulary=vocabulary,
        )
        for number in range(_N_MODELS)
    ]


def next_words(models: Sequence[NGramModel], contexts: Sequence[str]) -> np.ndarray:
    """What each model expects after each context, given that it is one of the words.

    Returns
    -------
    histograms : float64 array of shape (n_models, n_contexts, n_words)
    """
    histograms: np.ndarray = np.array(
        [[_next_word(model, context.split()) for context in contexts] for model in models]
    )
    return histograms / histograms.sum(axis=2, keepdims=True)


def _next_word(model: NGramModel, context: Sequence[str]) -> np.ndarray:
    state = model.start([None])
    for word in [model.vocabulary.start_index, *model.vocabulary.encode(context)]:
        logs, state = model.step(state, np.array([word]))
    return np.exp(logs[0, len(_SPECIAL) :].astype(np.float64))


def draw_contexts(n_contexts: int, seed: int) -> list[str]:
    """Beginnings of test captions, of three words or more, cut at a place drawn by ``seed``."""
    rng = np.random.default_rng(seed)
    captions = [image[0].split() for image in load_captions("test").captions]
    long = [words for words in captions if len(words) > 3]
    chosen = rng.choice(len(long), size=n_contexts, replace=False)
    return [" ".join(long[i][: rng.integers(3, len(long[i]))]) for i in chosen]
