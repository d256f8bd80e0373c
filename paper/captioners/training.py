"""Training captioners: objectives, epochs, checkpoints, and when to stop.

A training that was killed goes on after its last whole epoch, and ends with the same
weights as one that was not: each epoch draws its random numbers from its own seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paper.captioners.captioner import Captioner, read_captioner, write_captioner
from paper.captioners.concepts import N_CONCEPTS
from paper.captioners.network import CaptionerNetwork
from paper.captioners.recipes import Recipe
from paper.captioners.texts import Texts, load_texts
from paper.captioning.scores import CiderD, Frequencies, count_frequencies
from paper.data.captions import CaptionsData, load_caption_words, load_captions
from paper.data.coco import load_coco_words
from paper.record.findings import Progress
from wassemble._checks import fail
from wassemble._files import whole_file
from wassemble.inputs.words.embeddings import Embeddings
from wassemble.text.vocabulary import Vocabulary

_N_IMAGES = 20  # in a batch
_N_TEXTS = 256  # captions in a batch, where there are no pictures
# Images that captions are drawn of, where there are no pictures: in a batch, and in a pass those
# of which there are texts alone, and those whose concepts were truly detected.
_N_IMAGINED, _N_OF_TEXTS, _N_DETECTED = 60, 4500, 1500
_N_SAID = 2000  # words that captions are drawn from: the rest is hardly ever said
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
    texts: Texts | None = None  # captions without pictures, for those that learn from them


def load_training_data(recipe: Recipe) -> TrainingData:
    """The shipped COCO pictures and captions, with what the recipe asks for beyond them."""
    train, validation = (
        load_captions(split, with_concepts=recipe.is_blind) for split in ("train", "val")
    )
    words, embeddings = load_caption_words()
    if not recipe.is_blind:
        return TrainingData(train, validation, words, embeddings)
    return TrainingData(train, validation, load_coco_words(), embeddings, load_texts(train))


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
    for field in fields(recipe):
        then, now = found.get(field.name, field.default), getattr(recipe, field.name)
        if then != now:
            fail(
                f"{path}: must come from the recipe {recipe.name!r} as it is now; got"
                f" {field.name} {then!r} in place of {now!r}.",
                hint="move the file away to train anew",
            )


Pass = tuple[Sequence[Tensor], Callable[[Tensor], Tensor]]


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

    @cached_property
    def _cider(self) -> CiderD:
        return CiderD(self._with_ends(self.data.train.captions), self._frequencies)

    @cached_property
    def _frequencies(self) -> Frequencies:
        """In what is learned from; a fourth of the texts tells as much with less memory."""
        texts, train = self.data.texts, self.data.train
        return count_frequencies(self._with_ends(texts.captions[::4] if texts else train.captions))

    def _with_ends(self, captions: Sequence[Sequence[str]]) -> list[list[list[str]]]:
        """The end counts as a word where captions are drawn: see `self_critical_loss`."""
        return [[[*caption.split(), self.vocabulary.end] for caption in each] for each in captions]

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
        order, find_loss = self._begin_pass(number)
        for place, images in enumerate(order):
            # What learns from texts learns from so many that half the digits are enough.
            with torch.autocast("cpu", torch.bfloat16, enabled=self.recipe.is_blind):
                loss = find_loss(images)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), _MAX_GRADIENT)
            self.optimizer.step()
            if progress is not None:
                done = (number - 1) * len(order) + place + 1
                progress(done, self.recipe.max_epochs * len(order))
            yield loss.item()

    def _begin_pass(self, number: int) -> Pass:
        """Batches of images in the order of a pass, and what gives the loss of one."""
        if self.data.texts is None:
            return torch.split(torch.randperm(len(self.data.train)), _N_IMAGES), self._loss
        rng = np.random.default_rng((self.recipe.seed, number))
        begin = self._imagine_pictures if self.recipe.begin_from else self._draw_captions
        return begin(self.data.texts, rng)

    def _draw_captions(self, texts: Texts, rng: np.random.Generator) -> Pass:
        """To imitate: a caption of each image of which there are texts."""
        captions, concepts = texts.draw(rng)
        features = torch.from_numpy(concepts)[:, None]

        def find_loss(images: Tensor) -> Tensor:
            said = [captions[image].split() for image in images.tolist()]
            return sampled_loss(self.network, self.vocabulary, features[images], said)

        return torch.split(torch.randperm(len(captions)), _N_TEXTS), find_loss

    def _imagine_pictures(self, texts: Texts, rng: np.random.Generator) -> Pass:
        """To be scored: images of which there are texts, and some of ours."""
        train = self.data.train
        imagined = rng.permutation(len(texts))[:_N_OF_TEXTS]
        detected = rng.permutation(len(train))[:_N_DETECTED]
        told = train.features[detected].reshape(len(detected), -1)[:, -self.network.n_concepts :]
        features = torch.from_numpy(np.concatenate([texts.imagine(imagined, rng), told]))[:, None]
        captions = [texts.captions[i] for i in imagined] + [train.captions[i] for i in detected]

        def find_loss(images: Tensor) -> Tensor:
            references = self._with_ends([captions[image] for image in images.tolist()])
            score = CiderD(references, self._frequencies).score
            model = self.network, self.vocabulary
            return self_critical_loss(*model, features[images], score, n_words=_N_SAID)

        return torch.split(torch.randperm(len(captions)), _N_IMAGINED), find_loss

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
        self.network.eval()
        return float(score_likeliest(self.network, self.vocabulary, self.data.validation).mean())

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
        n_concepts = N_CONCEPTS if recipe.is_blind else 0
        network = CaptionerNetwork(*sizes, recipe.dropout, n_concepts)
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
    meanings, targets, _ = _read(network, vocabulary, features, captions)
    unknown = vocabulary.unknown_index
    return torch.nn.functional.cross_entropy(
        network.logits(meanings),
        targets,
        # Words that the captioner does not have are read, and never to be said.
        ignore_index=-100 if unknown is None else unknown,
        label_smoothing=label_smoothing,
    )


N_COMMON = 1000  # words that take part in every step of `sampled_loss`
N_DRAWN = 300  # of the others


def sampled_loss(
    network: CaptionerNetwork,
    vocabulary: Vocabulary,
    features: Tensor,
    captions: Sequence[Sequence[str]],
) -> Tensor:
    """`imitation_loss`, with some of the rare words standing for all of them.

    The first words of the vocabulary and those of the captions take part as they are; words
    drawn from the rest have the weight of as many as they stand for, so that the mean of the
    sum under each softmax is right.
    """
    meanings, targets, _ = _read(network, vocabulary, features, captions)
    words, log_stands_for = _draw_words(targets, len(vocabulary))
    places = torch.empty(len(vocabulary), dtype=torch.long)
    places[words] = torch.arange(len(words))
    if vocabulary.unknown_index is not None:
        places[vocabulary.unknown_index] = -100
    logits = network.logits(meanings, words).float() + log_stands_for
    return torch.nn.functional.cross_entropy(logits, places[targets], ignore_index=-100)


def _draw_words(targets: Tensor, n_words: int) -> tuple[Tensor, Tensor]:
    """Words that take part, and the log of how many words each stands for."""
    is_in = torch.zeros(n_words, dtype=torch.bool)
    is_in[:N_COMMON] = True
    is_in[targets] = True
    kept, rest = is_in.nonzero().squeeze(1), (~is_in).nonzero().squeeze(1)
    drawn = rest[torch.randperm(len(rest))[:N_DRAWN]]
    each = torch.full((len(drawn),), len(rest)) / max(len(drawn), 1)
    return torch.cat([kept, drawn]), torch.cat([torch.zeros(len(kept)), each.log()])


def self_critical_loss(
    network: CaptionerNetwork,
    vocabulary: Vocabulary,
    features: Tensor,
    score: Callable[[int, Sequence[str]], float],
    *,
    n_words: int | None = None,
) -> Tensor:
    """Mean cross-entropy of drawn captions, weighed by how good they are.

    Good is what scores higher than the other captions drawn of the same image. Differs
    from Rennie et al. 2017, who compare with the caption of the likeliest words: the mean
    of the others varies less (Luo 2020). ``score`` is given the row of the features and a
    caption with the vocabulary's end: without one it would stop in the middle of a phrase. Only the
    first ``n_words`` of the vocabulary are drawn, if given.
    """
    rows = torch.arange(len(features)).repeat_interleave(N_SAMPLES)
    captions = generate(network, vocabulary, features[rows], is_random=True, n_words=n_words)
    scores = torch.tensor(
        [
            score(row, caption if len(caption) == MAX_LENGTH else [*caption, vocabulary.end])
            for row, caption in zip(rows.tolist(), captions, strict=True)
        ]
    ).view(-1, N_SAMPLES)
    others = (scores.sum(dim=1, keepdim=True) - scores) / (N_SAMPLES - 1)
    gains = (scores - others).view(-1)
    meanings, targets, places = _read(network, vocabulary, features[rows], captions)
    logits = network.logits(meanings, slice(n_words)).float()
    surprise = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    return (gains[places] * surprise).mean()


@torch.no_grad()
def generate(
    network: CaptionerNetwork,
    vocabulary: Vocabulary,
    features: Tensor,
    *,
    is_random: bool = False,
    n_words: int | None = None,
) -> list[list[str]]:
    """A caption for each row of features: the likeliest word at each step, or one drawn.

    From the first ``n_words`` of the vocabulary, if given.
    """
    state = network.start(features)
    words = torch.full((len(features),), vocabulary.start_index)
    is_open = torch.ones(len(features), dtype=torch.bool)
    steps: list[Tensor] = []
    while len(steps) < MAX_LENGTH and is_open.any():
        meaning, state = network.step(state, words)
        logits = network.logits(meaning, slice(n_words)).float()
        if vocabulary.unknown_index is not None:
            logits[:, vocabulary.unknown_index] = -torch.inf
        words = _draw(logits.softmax(dim=1)) if is_random else logits.argmax(dim=1)
        steps.append(torch.where(is_open, words, vocabulary.end_index))
        is_open &= words != vocabulary.end_index
    numbers = torch.stack(steps, dim=1).numpy()
    return [vocabulary.decode(row[row != vocabulary.end_index]) for row in numbers]


def score_likeliest(
    network: CaptionerNetwork, vocabulary: Vocabulary, data: CaptionsData
) -> np.ndarray:
    """CIDEr of the likeliest words, one after the other, for each image, (n_images,)."""
    captions = generate(network, vocabulary, torch.from_numpy(data.features))
    cider = CiderD([[text.split() for text in each] for each in data.captions])
    return np.array([cider.score(i, words) for i, words in enumerate(captions)])


def _draw(chances: Tensor) -> Tensor:
    """A place in each row, as likely as it says there.

    As `torch.multinomial`, which takes a third of the time of a self-critical step.
    """
    sums = chances.cumsum(dim=1)  # its last need not be 1, for rounding
    drawn = torch.rand(len(sums), 1) * sums[:, -1:]
    return torch.searchsorted(sums, drawn, right=True).squeeze(1).clamp(max=sums.shape[1] - 1)


def _read(
    network: CaptionerNetwork,
    vocabulary: Vocabulary,
    features: Tensor,
    captions: Sequence[Sequence[str]],
) -> tuple[Tensor, Tensor, Tensor]:
    """Meaning and target of every step of every caption, and which caption's step it is."""
    numbers = [
        torch.from_numpy(np.append(vocabulary.encode(words)[:MAX_LENGTH], vocabulary.end_index))
        for words in captions
    ]
    lengths = torch.tensor([len(each) for each in numbers])
    lengths, order = lengths.sort(descending=True)
    targets = torch.nn.utils.rnn.pad_sequence([numbers[place] for place in order.tolist()])
    start = torch.full((1, len(numbers)), vocabulary.start_index)
    words = torch.cat([start, targets[:-1]])
    meanings = network(network.start(features[order]), words, lengths)
    is_step = torch.arange(len(targets))[:, None] < lengths
    return meanings, targets[is_step], order.expand(len(targets), -1)[is_step]
