"""Training captioners: objectives, epochs, checkpoints, and when to stop.

A training that was killed goes on after its last whole epoch, and ends with the same
weights as one that was not: each epoch draws its random numbers from its own seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paper.captioners.captioner import Captioner, read_captioner, write_captioner
from paper.captioners.network import CaptionerNetwork
from paper.captioners.recipes import Recipe
from paper.captioning.scores import CiderD
from paper.data.captions import CaptionsData, load_caption_words, load_captions
from paper.record.findings import Progress
from wassemble._checks import fail
from wassemble._files import whole_file
from wassemble.inputs.words.embeddings import Embeddings
from wassemble.text.vocabulary import Vocabulary

_N_IMAGES = 20  # in a batch
_MAX_GRADIENT = 5.0


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training images came to."""

    number: int
    loss: float
    validation_cider: float
    seconds: float


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Pictures to learn from and to stop by, and words in the order of their frequency."""

    train: CaptionsData
    validation: CaptionsData
    words: tuple[str, ...]
    embeddings: Embeddings


def load_training_data() -> TrainingData:
    """The shipped COCO pictures and captions."""
    return TrainingData(load_captions("train"), load_captions("val"), *load_caption_words())


def train_captioner(
    recipe: Recipe,
    data: TrainingData,
    folder: Path,
    *,
    progress: Progress = None,
    tell: Callable[[Epoch], None] | None = None,
) -> Captioner:
    """Train a captioner, or go on where a killed training was; or read it if it is done.

    In ``folder``, ``NAME.npz`` is the captioner of the best epoch; ``NAME.checkpoint.pt`` is
    there while it is being trained. ``progress`` is given the number of batches done and of
    all, ``tell`` each epoch that has ended.
    """
    path = folder / f"{recipe.name}.npz"
    if path.exists():
        captioner = read_captioner(path)
        _check_recipe(captioner.account["recipe"], recipe, path)
        return captioner
    training = _Training(recipe, data, folder)
    while not training.is_done:
        epoch = training.run_epoch(progress)
        if tell is not None:
            tell(epoch)
    write_captioner(training.best_captioner(), path)
    training.checkpoint.unlink()
    return read_captioner(path)  # in float16, as it will be used


def _check_recipe(found: dict[str, Any], recipe: Recipe, path: Path) -> None:
    for name, value in asdict(recipe).items():
        if found.get(name) != value:
            fail(
                f"{path}: must come from the recipe {recipe.name!r} as it is now; got"
                f" {name} {found.get(name)!r} in place of {value!r}.",
                hint="move the file away to train anew",
            )


class _Training:
    """A network, its optimiser, and what they came to so far."""

    def __init__(self, recipe: Recipe, data: TrainingData, folder: Path) -> None:
        self.recipe, self.data = recipe, data
        self.checkpoint = folder / f"{recipe.name}.checkpoint.pt"
        self.vocabulary = recipe.choose_words(data.words)
        self.network = _first_network(recipe, self.vocabulary, data, folder)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=recipe.learning_rate)
        self.best = deepcopy(self.network.state_dict())
        self.epochs: list[Epoch] = []
        if self.checkpoint.exists():
            self._go_on()
        self._features = torch.from_numpy(data.train.features)
        # The end counts as a word where captions are drawn: see `self_critical_loss`.
        self._cider = CiderD(
            [[[*c.split(), self.vocabulary.end] for c in each] for each in data.train.captions]
        )

    @property
    def is_done(self) -> bool:
        since_best = len(self.epochs) - 1 - self._best_place()
        return len(self.epochs) >= self.recipe.max_epochs or since_best >= self.recipe.patience

    def run_epoch(self, progress: Progress) -> Epoch:
        started = time.perf_counter()
        number = len(self.epochs) + 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate * self.recipe.decay ** (number - 1)
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(1000 * self.recipe.seed + number)
            losses = list(self._run_batches(number, progress))
        loss, cider = float(np.mean(losses)), self._validate()
        epoch = Epoch(number, loss, cider, time.perf_counter() - started)
        self.epochs.append(epoch)
        if self._best_place() == len(self.epochs) - 1:
            self.best = deepcopy(self.network.state_dict())
        self._save()
        return epoch

    def best_captioner(self) -> Captioner:
        self.network.load_state_dict(self.best)
        return Captioner(self.network, self.vocabulary, self._account())

    def _best_place(self) -> int:
        return int(np.argmax([epoch.validation_cider for epoch in self.epochs] or [0]))

    def _run_batches(self, number: int, progress: Progress) -> Iterator[float]:
        self.network.train()
        order = torch.split(torch.randperm(len(self.data.train)), _N_IMAGES)
        for place, images in enumerate(order):
            loss = self._loss(images)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), _MAX_GRADIENT)
            self.optimizer.step()
            if progress is not None:
                done = (number - 1) * len(order) + place + 1
                progress(done, self.recipe.max_epochs * len(order))
            yield loss.item()

    def _loss(self, images: Tensor) -> Tensor:
        model, features, numbers = (self.network, self.vocabulary), self._features, images.tolist()
        if self.recipe.begin_from:
            return self_critical_loss(
                *model, features[images], lambda row, said: self._cider.score(numbers[row], said)
            )
        each = [(i, text.split()) for i in numbers for text in self.data.train.captions[i]]
        places, captions = zip(*each, strict=True)
        smoothing = self.recipe.label_smoothing
        return imitation_loss(*model, features[list(places)], captions, label_smoothing=smoothing)

    def _validate(self) -> float:
        """CIDEr of the likeliest words, one after the other, on the validation images."""
        data = self.data.validation
        self.network.eval()
        captions = generate(self.network, self.vocabulary, torch.from_numpy(data.features))
        cider = CiderD([[c.split() for c in each] for each in data.captions])
        return float(np.mean([cider.score(i, words) for i, words in enumerate(captions)]))

    def _save(self) -> None:
        state = {
            "account": self._account(),
            "network": self.network.state_dict(),
            "best": self.best,
            "optimizer": self.optimizer.state_dict(),
        }
        with whole_file(self.checkpoint) as temporary:
            torch.save(state, temporary)

    def _go_on(self) -> None:
        """Load the checkpoint."""
        state = torch.load(self.checkpoint, weights_only=True)
        _check_recipe(state["account"]["recipe"], self.recipe, self.checkpoint)
        self.network.load_state_dict(state["network"])
        self.best = state["best"]
        self.optimizer.load_state_dict(state["optimizer"])
        self.epochs = [Epoch(**epoch) for epoch in state["account"]["epochs"]]

    def _account(self) -> dict[str, Any]:
        return {"recipe": asdict(self.recipe), "epochs": [asdict(each) for each in self.epochs]}


def _first_network(
    recipe: Recipe, vocabulary: Vocabulary, data: TrainingData, folder: Path
) -> CaptionerNetwork:
    """A network before the first epoch: drawn with GloVe vectors, or another captioner's."""
    if recipe.begin_from:
        path = folder / f"{recipe.begin_from}.npz"
        if not path.exists():
            fail(
                f"{path}: must be there; the captioner {recipe.name!r} begins from it.",
                hint=f"train {recipe.begin_from!r} first",
            )
        network = read_captioner(path).network
        network.dropout.p = recipe.dropout
        return network
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(1000 * recipe.seed)
        sizes = len(vocabulary), data.train.features.shape[2], recipe.n_units, recipe.n_embedding
        network = CaptionerNetwork(*sizes, recipe.dropout)
    n_copied = min(recipe.n_embedding, data.embeddings.n_dimensions)
    vectors = network.words.weight.detach()
    for number, word in enumerate(vocabulary.words):
        place = data.embeddings.find(word)
        if place is not None:
            vectors[number, :n_copied] = torch.from_numpy(data.embeddings.vectors[place, :n_copied])
    return network


# What a captioner is trained for: to say what the references say, or to be scored well.
MAX_LENGTH = 16  # words of a caption; 97 % of the references have no more
N_SAMPLES = 5  # captions drawn of an image, as many as it has references


def imitation_loss(
    network: CaptionerNetwork,
    vocabulary: Vocabulary,
    features: Tensor,
    captions: Sequence[Sequence[str]],
    *,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Mean cross-entropy of the words of ``captions``, one caption for each row of features."""
    logits, targets, _ = _read(network, vocabulary, features, captions)
    unknown = vocabulary.unknown_index
    return torch.nn.functional.cross_entropy(
        logits,
        targets,
        # Words that the captioner does not have are read, and never to be said.
        ignore_index=-100 if unknown is None else unknown,
        label_smoothing=label_smoothing,
    )


def self_critical_loss(
    network: CaptionerNetwork,
    vocabulary: Vocabulary,
    features: Tensor,
    score: Callable[[int, Sequence[str]], float],
) -> Tensor:
    """Mean cross-entropy of drawn captions, weighed by how good they are.

    Good is what scores higher than the other captions drawn of the same image. Differs
    from Rennie et al. 2017, who compare with the caption of the likeliest words: the mean
    of the others varies less (Luo 2020). ``score`` is given the row of the features and a
    caption with the vocabulary's end: without one it would stop in the middle of a phrase.
    """
    rows = torch.arange(len(features)).repeat_interleave(N_SAMPLES)
    captions = generate(network, vocabulary, features[rows], is_random=True)
    scores = torch.tensor(
        [
            score(row, caption if len(caption) == MAX_LENGTH else [*caption, vocabulary.end])
            for row, caption in zip(rows.tolist(), captions, strict=True)
        ]
    ).view(-1, N_SAMPLES)
    others = (scores.sum(dim=1, keepdim=True) - scores) / (N_SAMPLES - 1)
    gains = (scores - others).view(-1)
    logits, targets, places = _read(network, vocabulary, features[rows], captions)
    surprise = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    return (gains[places] * surprise).mean()


@torch.no_grad()
def generate(
    network: CaptionerNetwork, vocabulary: Vocabulary, features: Tensor, *, is_random: bool = False
) -> list[list[str]]:
    """A caption for each row of features: the likeliest word at each step, or one drawn."""
    state = network.start(features)
    words = torch.full((len(features),), vocabulary.start_index)
    is_open = torch.ones(len(features), dtype=torch.bool)
    steps: list[Tensor] = []
    while len(steps) < MAX_LENGTH and is_open.any():
        summary, state = network.step(state, words)
        logits = network.logits(summary)
        if vocabulary.unknown_index is not None:
            logits[:, vocabulary.unknown_index] = -torch.inf
        if is_random:
            words = logits.softmax(dim=1).multinomial(1).squeeze(1)
        else:
            words = logits.argmax(dim=1)
        steps.append(torch.where(is_open, words, vocabulary.end_index))
        is_open &= words != vocabulary.end_index
    numbers = torch.stack(steps, dim=1).numpy()
    return [vocabulary.decode(row[row != vocabulary.end_index]) for row in numbers]


def _read(
    network: CaptionerNetwork,
    vocabulary: Vocabulary,
    features: Tensor,
    captions: Sequence[Sequence[str]],
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits and target of every step of every caption, and which caption's step it is."""
    numbers = [
        torch.from_numpy(np.append(vocabulary.encode(words)[:MAX_LENGTH], vocabulary.end_index))
        for words in captions
    ]
    lengths = torch.tensor([len(each) for each in numbers])
    lengths, order = lengths.sort(descending=True)
    targets = torch.nn.utils.rnn.pad_sequence([numbers[place] for place in order.tolist()])
    start = torch.full((1, len(numbers)), vocabulary.start_index)
    words = torch.cat([start, targets[:-1]])
    logits = network(network.start(features[order]), words, lengths)
    is_step = torch.arange(len(targets))[:, None] < lengths
    return logits, targets[is_step], order.expand(len(targets), -1)[is_step]
