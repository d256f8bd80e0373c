"""How each captioner is trained: its size, words, objective and seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble.labels import LabelSpace
from wassemble.text.vocabulary import Vocabulary

# The most frequent words are in every vocabulary: without "a" and "of" nothing is said.
_N_ALWAYS = 100


@dataclass(frozen=True)
class Recipe:
    """Everything that a trained captioner depends on, besides the data."""

    name: str
    seed: int
    n_units: int  # of the LSTM's state
    n_embedding: int  # of a word's vector
    # Name of the captioner whose weights are the first ones. Given, the objective is
    # self-critical: the CIDEr of sampled captions (Rennie et al. 2017). Else it is the
    # cross-entropy of the references.
    begin_from: str = ""
    # Whether it sees no picture and is told its concepts: then it learns from the captions of all
    # COCO images, and has their words.
    is_blind: bool = False
    label_smoothing: float = 0.0  # share of each target's mass that goes to all words alike
    n_frequent: int = 0  # only this many of the most frequent words; 0 for all
    share_missing: float = 0.0  # of words beyond the most frequent, left out at random
    dropout: float = 0.4
    learning_rate: float = 2e-3
    decay: float = 0.85
    max_epochs: int = 8  # passes over the training images
    patience: int = 2  # passes without a better validation CIDEr at which training stops

    def choose_words(self, words: tuple[str, ...]) -> Vocabulary:
        """The vocabulary, from words in the order of their frequency."""
        if self.n_frequent:
            words = words[: self.n_frequent]
        rng = np.random.default_rng(self.seed)
        is_kept = rng.random(len(words)) >= self.share_missing
        is_kept[:_N_ALWAYS] = True
        kept = [word for word, keep in zip(words, is_kept, strict=True) if keep]
        return Vocabulary(LabelSpace(["<end>", "<unk>", *kept]))


_SELF_CRITICAL: dict[str, Any] = {
    "dropout": 0.0,  # captions are drawn from, and scored for, the same network
    "learning_rate": 3e-4,
    "max_epochs": 5,
    # The likeliest words get worse before they get better, while drawn captions, whose
    # score is the objective, get better all the time: stopping early would undo it.
    "patience": 5,
}

_CONCEPTS: dict[str, Any] = {"is_blind": True, "dropout": 0.2, "decay": 0.9, "max_epochs": 3}

RECIPES = {
    recipe.name: recipe
    for recipe in (
        # The five that the experiments fuse.
        Recipe("cross-entropy", seed=1, n_units=192, n_embedding=128),
        Recipe("cross-entropy-small", seed=2, n_units=128, n_embedding=100),
        Recipe("smoothed", seed=3, n_units=256, n_embedding=200, label_smoothing=0.1),
        Recipe("self-critical", 4, 192, 128, begin_from="cross-entropy", **_SELF_CRITICAL),
        Recipe(
            "self-critical-small", 5, 128, 100, begin_from="cross-entropy-small", **_SELF_CRITICAL
        ),
        # Two with other words.
        Recipe("frequent-words", seed=6, n_units=192, n_embedding=128, n_frequent=1200),
        Recipe("missing-words", seed=7, n_units=192, n_embedding=128, share_missing=0.2),
        # Five with the words of all COCO captions.
        Recipe("concepts", 11, 320, 128, **_CONCEPTS),
        Recipe("concepts-small", 13, 192, 100, **_CONCEPTS),
        Recipe("concepts-large", 14, 448, 160, **_CONCEPTS),
        Recipe(
            "concepts-self-critical",
            12,
            320,
            128,
            begin_from="concepts",
            is_blind=True,
            **_SELF_CRITICAL | {"decay": 0.87, "max_epochs": 15, "patience": 15},
        ),
        Recipe(
            "concepts-small-self-critical",
            15,
            192,
            100,
            begin_from="concepts-small",
            is_blind=True,
            **_SELF_CRITICAL | {"decay": 0.87, "max_epochs": 8, "patience": 8},
        ),
        # For tests.
        Recipe("tiny", seed=8, n_units=32, n_embedding=32, n_frequent=300, dropout=0.1),
    )
}
