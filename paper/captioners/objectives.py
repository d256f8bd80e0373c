"""What a captioner is trained for: to say what the references say, or to be scored well.

Imports torch; nothing else imports this file before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from paper.captioners.network import CaptionerNetwork
from wassemble.text.vocabulary import Vocabulary

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
    of the others varies less (Luo 2020).

    Parameters
    ----------
    score : callable
        Given the row of the features and a caption that ends in the vocabulary's end: a
        caption without an end would stop in the middle of a phrase.
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
    network: CaptionerNetwork,
    vocabulary: Vocabulary,
    features: Tensor,
    *,
    is_random: bool = False,
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
