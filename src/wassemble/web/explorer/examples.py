"""The shipped examples: what the package carries, and more where the repository is at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wassemble.experiments.tasks import TASKS, Task
from wassemble.inputs import Predictions
from wassemble.inputs.captions_data import load_captions
from wassemble.inputs.datasets import data_folder, find_data
from wassemble.inputs.embeddings import Embeddings, read_embeddings
from wassemble.kernels import from_confusion, from_word_vectors
from wassemble.labels import LabelSpace
from wassemble.text import NGramModel, Vocabulary
from wassemble.web.explorer.cases import Table
from wassemble.web.explorer.similarity import NAMES, Similarity, given_kernel

__all__ = ["Example", "find_example", "list_examples"]


@dataclass(frozen=True)
class Example:
    """One shipped example.

    Attributes
    ----------
    needs : tuple of str
        Files of the repository's data sets, without which it is not offered.
    kernels : tuple of str
        Names of its kernels; the first is used unless another is chosen.
    load : callable
        The table, and a kernel for each name.
    """

    name: str
    title: str
    about: str
    needs: tuple[str, ...]
    kernels: tuple[str, ...]
    load: Callable[[], tuple[Table, dict[str, Similarity]]]


def list_examples() -> list[Example]:
    """Those whose data are here."""
    folder = data_folder()
    return [each for each in _EXAMPLES if all((folder / name).is_file() for name in each.needs)]


def find_example(name: str) -> Example | None:
    """The example of that name, if it is here."""
    return next((each for each in list_examples() if each.name == name), None)


def _load_task(name: str) -> Callable[[], tuple[Table, dict[str, Similarity]]]:
    def load() -> tuple[Table, dict[str, Similarity]]:
        task: Task = TASKS[name]()
        kernels = {kernel: given_kernel(made) for kernel, made in task.kernels.items()}
        table = Table(
            f"example {name}", task.title, task.models, task.kind, task.target, _texts(task)
        )
        return table, {**kernels, "names": NAMES} if name != "animals" else kernels

    return load


def _texts(task: Task) -> dict[str, str]:
    """What is true of each sample."""
    names = task.truth
    if isinstance(names, np.ndarray):
        names = [
            ", ".join(task.target[i] for i in np.flatnonzero(row == 1).tolist()) or "none"
            for row in names
        ]
    samples = task.models[0].samples.tolist()
    return {str(s): f"truth: {name}" for s, name in zip(samples, names, strict=True)}


def _load_languages() -> tuple[Table, dict[str, Similarity]]:
    """Test texts only: the kernels come from the detectors' mistakes on the others."""
    task = TASKS["languages"]()
    known, truth = task.part(False)
    true = {str(s): name for s, name in zip(known[0].samples.tolist(), truth, strict=True)}
    mistakes = {model.model: from_confusion(model, true, target=task.target) for model in known}
    models, names = task.part(True)
    texts = task.texts or {}
    shown = {
        str(sample): f"{texts[str(sample)]} (truth: {name})"
        for sample, name in zip(models[0].samples.tolist(), names, strict=True)
    }
    table = Table("example languages", task.title, models, task.kind, task.target, shown)
    learned = Similarity("each detector's mistakes on other texts", lambda epsilon: mistakes)
    return table, {"mistakes": learned, "names": NAMES}


_WORDS, _CAPTIONS = "words/glove_100d_10k.npz", "coco_captions/captions.jsonl.gz"
# Beginnings of sentences to go on with.
_N_BEGINNINGS = 24


def _load_words() -> tuple[Table, dict[str, Similarity]]:
    """Next words of three n-gram models, over the 10,000 words that have a vector."""
    vectors = read_embeddings(find_data(_WORDS))
    words = LabelSpace(vectors.words)
    vocabulary = Vocabulary(LabelSpace(["<start>", "<end>", "<unk>", *words]))
    captions = [[text.split() for text in some] for some in load_captions("train").captions]
    # Each has read other captions of the same pictures.
    trained = {
        name: NGramModel.fit(
            [text for some in captions for text in some[first : first + 2]],
            order=order,
            vocabulary=vocabulary,
        )
        for name, order, first in (("bigrams", 2, 0), ("trigrams", 3, 1), ("other trigrams", 3, 3))
    }
    begun = _beginnings()
    samples = [" ".join(some) + " …" for some in begun]
    models = []
    for name, model in trained.items():
        scores = np.stack([_next_words(model, some) for some in begun])
        models.append(Predictions(name, samples, words, scores, kind="multiclass"))
    note = "Each histogram is of the next word, given that it is one of the 10,000."
    title = "Next words, 10,000 labels"
    table = Table("example words", title, models, "multiclass", words, note=note)
    return table, {"GloVe": _from_vectors(vectors), "names": NAMES}


def _beginnings() -> list[list[str]]:
    """First words of captions that no model has read, each beginning once."""
    texts = [some[0].split() for some in load_captions("test").captions]
    found: dict[tuple[str, ...], None] = {}
    for number, text in enumerate(texts):
        n_words = 2 + number % 5
        if len(text) > n_words:
            found.setdefault(tuple(text[:n_words]))
    return [list(some) for some in found][:_N_BEGINNINGS]


def _next_words(model: NGramModel, begun: list[str]) -> np.ndarray:
    state = model.start([None])
    numbers = model.vocabulary.encode(begun)
    for number in (model.vocabulary.start_index, *numbers.tolist()):
        logs, state = model.step(state, np.array([number]))
    chances = np.exp(logs[0][3:])  # without the words that start, end and stand for others
    found: np.ndarray = chances / chances.sum()
    return found


def _from_vectors(vectors: Embeddings) -> Similarity:
    return Similarity(
        "GloVe word vectors",
        lambda epsilon: (
            lambda source, target: from_word_vectors(
                source, target, embeddings=vectors, epsilon=epsilon
            )
        ),
        has_cost=True,
    )


_EXAMPLES = (
    Example(
        "animals",
        "Animals from attributes",
        "Two networks see attributes; the consensus is wanted over animals, which neither names.",
        (),
        ("attributes",),
        _load_task("animals"),
    ),
    Example(
        "languages",
        "Nine language detectors",
        "Nine label sets, 306 languages, one answer; kernels learned from each one's mistakes.",
        (),
        ("mistakes", "names"),
        _load_languages,
    ),
    Example(
        "words",
        "Next words: 10,000 labels",
        "Three language models go on with a sentence; words that mean the same share mass.",
        (_WORDS, _CAPTIONS, "coco_captions/grid_pca128_int8.npz"),
        ("GloVe", "names"),
        _load_words,
    ),
    Example(
        "cifar100",
        "CIFAR-100",
        "Three networks' twenty best of a hundred classes; kernels from words and from a tree.",
        ("cifar100/softmax_top20.npz", "cifar100/class_glove_100d.npy", "cifar100/tree.txt"),
        ("GloVe", "tree", "names"),
        _load_task("cifar100"),
    ),
    Example(
        "coco",
        "COCO, many labels at once",
        "Eight models' scores of eighty categories in each picture; mass may differ.",
        ("coco_multilabel/scores_8models_float16.npz", "coco_multilabel/labels.npz"),
        ("GloVe", "co-occurrence", "names"),
        _load_task("coco"),
    ),
    Example(
        "voc",
        "VOC 2007, many labels at once",
        "Eight published detectors' scores of twenty classes.",
        ("voc2007/voc2007_test_scores_10detectors.npz", "voc2007/voc_glove_300d.npy"),
        ("GloVe", "co-occurrence", "names"),
        _load_task("voc"),
    ),
)
