"""Examples of the explorer that need the data sets of the repository."""

from __future__ import annotations

from functools import partial

import numpy as np

from paper.data.captions import load_captions
from paper.evidence.tasks import TASKS, Task
from paper.words.models import load_glove, next_words, vocabulary_of
from wassemble.inputs import Embeddings, Predictions
from wassemble.kernels import from_word_vectors
from wassemble.text import NGramModel
from wassemble.web.explorer.cases import Table
from wassemble.web.explorer.examples import Example
from wassemble.web.explorer.similarity import NAMES, Similarity, from_cost, given_kernel


def _load_task(name: str) -> tuple[Table, dict[str, Similarity]]:
    task: Task = TASKS[name]()
    kernels = {kernel: given_kernel(made) for kernel, made in task.kernels.items()}
    table = Table(
        f"example {name}",
        task.title,
        task.models,
        task.kind,
        task.target,
        truth=_truth(task),
        names={label: label.replace("_", " ") for label in task.target},
    )
    return table, {**kernels, "names": NAMES}


def _truth(task: Task) -> dict[str, tuple[str, ...]]:
    """The true labels of each sample."""
    if isinstance(task.truth, np.ndarray):
        names = [
            tuple(task.target[i] for i in np.flatnonzero(row == 1).tolist()) for row in task.truth
        ]
    else:
        names = [(name,) for name in task.truth]
    samples = task.models[0].samples.tolist()
    return {str(sample): true for sample, true in zip(samples, names, strict=True)}


# Beginnings of sentences to go on with.
_N_BEGINNINGS = 24


def _load_words() -> tuple[Table, dict[str, Similarity]]:
    """Next words of three n-gram models, over the 10,000 words that have a vector."""
    words, vectors = load_glove()
    captions = [[text.split() for text in some] for some in load_captions("train").captions]
    # Each has read other captions of the same pictures.
    names = {"bigrams": (2, 0), "trigrams": (3, 1), "other trigrams": (3, 3)}
    trained = [
        NGramModel.fit(
            [text for some in captions for text in some[first : first + 2]],
            order=order,
            vocabulary=vocabulary_of(words),
        )
        for order, first in names.values()
    ]
    begun = _beginnings()
    samples = [f"{some} …" for some in begun]
    models = [
        Predictions(name, samples, words, scores, kind="multiclass")
        for name, scores in zip(names, next_words(trained, begun), strict=True)
    ]
    note = "Each histogram is of the next word, given that it is one of the 10,000."
    title = "Next words, 10,000 labels"
    table = Table("example words", title, models, "multiclass", words, note=note)
    embeddings = Embeddings(words, vectors)
    near = from_cost("GloVe word vectors", from_word_vectors, embeddings=embeddings)
    return table, {"GloVe": near, "names": NAMES}


def _beginnings() -> list[str]:
    """First words of captions that no model has read, each beginning once."""
    texts = [some[0].split() for some in load_captions("test").captions]
    cut = [(text, 2 + number % 5) for number, text in enumerate(texts)]
    begun = [" ".join(text[:n_words]) for text, n_words in cut if len(text) > n_words]
    return list(dict.fromkeys(begun))[:_N_BEGINNINGS]


EXAMPLES = (
    Example(
        "words",
        "Next words: 10,000 labels",
        "Three language models go on with a sentence; words that mean the same share mass.",
        ("GloVe", "names"),
        _load_words,
        "a man riding a … → horse",
    ),
    Example(
        "cifar100",
        "CIFAR-100",
        "Three networks' twenty best of a hundred classes; kernels from words and from a tree.",
        ("GloVe", "tree", "names"),
        partial(_load_task, "cifar100"),
        "oak? maple? → willow tree",
        "show=gained",
    ),
    Example(
        "coco",
        "COCO, many labels at once",
        "Eight models' scores of eighty categories in each picture; mass may differ.",
        ("GloVe", "co-occurrence", "names"),
        partial(_load_task, "coco"),
        "dog, frisbee, person",
        "show=gained",
    ),
    Example(
        "voc",
        "VOC 2007, many labels at once",
        "Eight published detectors' scores of twenty classes.",
        ("GloVe", "co-occurrence", "names"),
        partial(_load_task, "voc"),
        "car, bus, person",
        "show=gained",
    ),
)
