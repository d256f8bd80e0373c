"""The network of a captioner: an LSTM that looks at the cells of a picture before each word.

Soft attention as in Xu et al. 2015, with the word vectors shared between input and output. Or it
sees no picture and is told its concepts, which it has before it at every word.
Torch is imported here, so that nothing else imports this file before it is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class NetworkState(NamedTuple):
    """What a network remembers: one row for each unfinished sentence."""

    hidden: Tensor  # (n_rows, n_units)
    memory: Tensor  # (n_rows, n_units)
    cells: Tensor  # (n_rows, n_cells, n_units), or empty
    keys: Tensor  # (n_rows, n_cells, n_units // 2), or empty
    told: Tensor  # (n_rows, 2 * n_embedding): what concepts add to words read, and to be said

    def take(self, rows: Tensor | slice) -> NetworkState:
        """The given rows."""
        return NetworkState(*(part[rows] for part in self))


class CaptionerNetwork(nn.Module):
    """Logits of the next word from a picture's cells, or its concepts, and the words so far.

    ``n_units`` is the size of the LSTM's state, ``n_embedding`` that of a word's vector, and
    ``dropout`` the share of the LSTM's inputs and outputs that a training step leaves out.
    If there are ``n_concepts``, they are in the last rows of a picture's features, and the other
    rows are not looked at.
    """

    def __init__(
        self,
        n_words: int,
        n_features: int,
        n_units: int,
        n_embedding: int,
        dropout: float,
        n_concepts: int = 0,
    ) -> None:
        super().__init__()
        self.n_concepts = n_concepts
        n_seen = 0 if n_concepts else n_units
        self.words = nn.Embedding(n_words, n_embedding)
        if not n_concepts:
            self.cells = nn.Linear(n_features, n_units)
        self.first = nn.Linear(n_concepts or n_units, 2 * n_units)
        if not n_concepts:
            self.key = nn.Linear(n_units, n_units // 2)
            self.query = nn.Linear(n_units, n_units // 2, bias=False)
            self.relevance = nn.Linear(n_units // 2, 1, bias=False)
        self.lstm = nn.LSTMCell(n_embedding + n_seen, n_units)
        self.output = nn.Linear(n_units + n_seen, n_embedding)
        if n_concepts:
            self.told = nn.Linear(n_concepts, 2 * n_embedding, bias=False)
        self.word_bias = nn.Parameter(torch.zeros(n_words))
        self.dropout = nn.Dropout(dropout)
        nn.init.uniform_(self.words.weight, -0.1, 0.1)

    def start(self, features: Tensor) -> NetworkState:
        """State before the first word, from features: a row for each cell, then concepts."""
        if self.n_concepts:
            first = features.flatten(1)[:, -self.n_concepts :]
            cells = keys = features.new_zeros(len(features), 0, 0)
            told = self.told(first)
        else:
            cells = self.dropout(torch.relu(self.cells(features)))
            first, keys = cells.mean(dim=1), self.key(cells)
            told = features.new_zeros(len(features), 2 * self.words.embedding_dim)
        hidden, memory = torch.tanh(self.first(first)).chunk(2, dim=1)
        return NetworkState(hidden, memory, cells, keys, told)

    def step(self, state: NetworkState, words: Tensor) -> tuple[Tensor, NetworkState]:
        """Meaning of the next word, one row for each word read, and the state; see `logits`."""
        seen = self._look(state)
        to_read, to_say = state.told.chunk(2, dim=1)
        read = torch.cat([self.dropout(self.words(words)) + to_read, seen], dim=1)
        hidden, memory = self.lstm(read, (state.hidden, state.memory))
        meaning = self.output(self.dropout(torch.cat([hidden, seen], dim=1))) + to_say
        return meaning, state._replace(hidden=hidden, memory=memory)

    def _look(self, state: NetworkState) -> Tensor:
        """What is seen of the picture before the next word, (n_rows, n_units), or empty."""
        if self.n_concepts:
            return state.cells.flatten(1)
        query = self.query(state.hidden)[:, None]
        attention = self.relevance(torch.tanh(state.keys + query)).softmax(dim=1)
        return (attention * state.cells).sum(dim=1)

    def logits(self, meaning: Tensor, words: Tensor | slice = slice(None)) -> Tensor:
        """Logits of the next word, (n_rows, n_words), or of some ``words`` by number."""
        vectors, bias = self.words.weight[words], self.word_bias[words]
        return nn.functional.linear(self.dropout(meaning), vectors, bias)

    def forward(self, state: NetworkState, words: Tensor, lengths: Tensor) -> Tensor:
        """Meanings after each word of given sentences, ``lengths.sum()`` rows, by step.

        ``words``, (n_steps, n_rows), are read; ``lengths`` are the sentences' numbers of steps,
        in falling order, so that those that have ended are the last rows and are left out.
        """
        meanings = []
        for at in range(int(lengths[0])):
            n_rows = int((lengths > at).sum())
            meaning, state = self.step(state.take(slice(n_rows)), words[at, :n_rows])
            meanings.append(meaning)
        return torch.cat(meanings)
