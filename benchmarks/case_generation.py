"""Captions: 10,000 words, beam 5, five captioners of 512 units, fused at every word."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import numpy as np

import wassemble as ws
from benchmarks.measure import race
from paper.captioners import SEEING
from paper.captioners.captioner import Captioner, read_captioner
from paper.data.captions import load_captions
from paper.data.files import data_folder, find_data
from paper.words.models import glove_kernels
from wassemble.inputs.words.embeddings import Embeddings

THREADS = "WASSEMBLE_NUM_THREADS"
EPSILON = 0.3
CAPTIONS_EPSILON = 0.05  # of `python -m paper generate`
N_TOP = 500
SWEEPS = {"rule": ws.Barycenter(max_sweeps=5, tolerance=None)}


def run(*, quick: bool) -> dict:
    """Milliseconds of one step of a beam search, and whether truncation changes captions."""
    load = os.getloadavg()[0]
    with _one_thread():
        steps = _steps(quick=quick)
    return {"load": load} | steps | {"truncation": _truncation(quick=quick)}


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for the models and for fusing: its time can be told from other work's."""
    import torch

    before, n_threads = os.environ.get(THREADS), torch.get_num_threads()
    torch.set_num_threads(1)
    os.environ[THREADS] = "1"
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
        del os.environ[THREADS]
        if before is not None:
            os.environ[THREADS] = before


def _steps(*, quick: bool) -> dict:
    """One step of five captioners with random weights, alone and fused."""
    models = _random_captioners()
    vocabulary = models[0].vocabulary
    sparse, dense = _kernels(vocabulary.words)
    options = {
        "arithmetic mean": {"rule": ws.ARITHMETIC},
        "50 neighbours": {"kernel": sparse} | SWEEPS,
        f"top {N_TOP} words, dense": {"kernel": dense, "n_top": N_TOP} | SWEEPS,
        "dense": {"kernel": dense} | SWEEPS,
    }
    fused = {name: ws.text.FusedNextWord(models, **each) for name, each in options.items()}
    image = np.random.default_rng(0).normal(size=(1, 16, 128)).astype(np.float32)
    words = np.arange(100, 105)
    first = fused["arithmetic mean"]
    state = first.reorder(first.start(image), np.zeros(5, dtype=np.int64))
    calls: dict[str, Callable[[], object]] = {
        "the models alone": lambda: first.step_models(state.states, words)
    }
    calls |= {name: partial(model.step, state, words) for name, model in fused.items()}
    slow = {"dense": calls.pop("dense")}
    timings = race(calls, n_rounds=5 if quick else 200, clock=time.process_time)
    timings |= race(slow, n_rounds=1 if quick else 3, clock=time.process_time)
    return {
        "n_words": len(vocabulary),
        "entries_per_word": sparse.kernel.n_stored / len(vocabulary),
        "timings": timings,
    }


def _random_captioners() -> list[Captioner]:
    import torch

    from paper.captioners.network import CaptionerNetwork

    with np.load(find_data("words/glove_100d_10k.npz")) as arrays:
        words = arrays["words"].tolist()
    vocabulary = ws.text.Vocabulary(["<end>", "<unk>", *words])
    found = []
    for seed in range(5):
        torch.manual_seed(seed)
        network = CaptionerNetwork(len(vocabulary), 128, n_units=512, n_embedding=512, dropout=0)
        found.append(Captioner(network, vocabulary, {}))
    return found


def _kernels(words: ws.LabelSpace) -> tuple[ws.LabelledKernel, ws.LabelledKernel]:
    """From the GloVe vectors of the words: about 50 entries in a row, and all of them."""
    with np.load(find_data("words/glove_100d_10k.npz")) as arrays:
        vectors = Embeddings(arrays["words"].tolist(), arrays["vectors"])
    options = {"embeddings": vectors, "epsilon": EPSILON}
    # The 33 nearest of each word, made symmetric, are about 50.
    sparse = ws.kernels.from_word_vectors(words, n_neighbors=33, **options)
    return sparse, ws.kernels.from_word_vectors(words, **options)


def _truncation(*, quick: bool) -> dict:
    """Captions of test images by the shipped captioners, with all words and with the top."""
    names = [name for name in SEEING if (data_folder() / f"captioners/{name}.npz").is_file()]
    models = [read_captioner(find_data(f"captioners/{name}.npz")) for name in names]
    vocabulary = models[0].vocabulary
    kernel = glove_kernels(vocabulary.words)(CAPTIONS_EPSILON)
    images = load_captions("test").features[: 20 if quick else 100]
    captions, dropped = {}, {}
    for n_top in (None, 1000, N_TOP):
        fused = ws.text.FusedNextWord(models, kernel=kernel, n_top=n_top, **SWEEPS)
        captions[n_top] = [
            best.text
            for start, stop in pairwise(range(0, len(images) + 1, 20))
            for [best] in ws.text.beam_search(fused, images[start:stop])
        ]
        dropped[n_top] = fused.account.mean_dropped
    return {
        "models": names,
        "n_images": len(images),
        "n_words": len(vocabulary),
        "rows": [
            {
                "n_top": n_top,
                "same": float(
                    np.mean([a == b for a, b in zip(captions[None], found, strict=True)])
                ),
                "mean_dropped": dropped[n_top],
            }
            for n_top, found in captions.items()
            if n_top is not None
        ],
    }
