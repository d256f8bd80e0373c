"""Words for hidden senses: what a model of each language says, and a dictionary into English.

A sense is hidden; each language names it by one of its words that means other things too.
From there on nothing depends on the hidden sense: only what the languages' words have in
common can give it away.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from paper.data.wordnets import Wordnet
from wassemble.kernels import SparseKernel, from_spelling


@dataclass(frozen=True, eq=False)
class Riddles:
    """Hidden senses, and the words of each language that may mean them."""

    senses: np.ndarray  # (n_samples,), columns of the wordnets
    words: dict[str, np.ndarray]  # by language: the word that was named, by its place
    n_senses: np.ndarray  # (n_languages, n_samples), of that word
    histograms: dict[str, sp.csr_array]  # (n_samples, n_words): what the language's model says
    is_test: np.ndarray


@dataclass(frozen=True, eq=False)
class Puzzle:
    """All riddles as one large one, in blocks that have nothing to do with each other.

    Labels are pairs of a riddle and a word: no mass can move from one riddle to another, and
    a fixed number of sweeps does to all of them what it would do to each alone.
    """

    histograms: list[np.ndarray]  # one per language, of mass 1 for each riddle
    kernels: list[SparseKernel]  # one per language, into pairs of a riddle and an English word
    riddle: np.ndarray  # of each target label
    english: np.ndarray  # its place among English words
    is_right: np.ndarray  # whether that word has the hidden sense
    n_riddles: int

    def hits(self, scores: np.ndarray, n_answers: int) -> np.ndarray:
        """1 for each riddle with a right word among the best ``n_answers``, else 0."""
        order = np.lexsort((-scores, self.riddle))
        first = np.searchsorted(self.riddle, np.arange(self.n_riddles))
        rank = np.empty(len(scores), dtype=np.int64)
        rank[order] = np.arange(len(scores)) - first[self.riddle]
        found = self.is_right & (scores > 0) & (rank < n_answers)
        return np.bincount(self.riddle[found], minlength=self.n_riddles).clip(max=1).astype(float)


def choose_riddles(
    wordnets: dict[str, Wordnet],
    n_samples: int,
    *,
    own_share: float,
    test_share: float,
    cutoff: float,
    seed: int,
) -> Riddles:
    """Hidden senses that each language has an ambiguous word for, and histograms about them.

    A model puts ``own_share`` on the word that was named. Half of the rest goes to words
    that share a sense with it, by the number of senses, as of a model that took it for
    something else; the other half to words spelt nearly alike, as of a model that misread.
    Where there are no such words, the named word keeps their half.
    """
    rng = np.random.default_rng(seed)
    others = {name: each for name, each in wordnets.items() if name != "English"}
    ambiguous = {name: _ambiguous(each) for name, each in others.items()}
    reached = [np.diff(table.tocsc().indptr) > 0 for table in ambiguous.values()]
    senses = np.sort(rng.permutation(np.flatnonzero(np.all(reached, axis=0)))[:n_samples])
    words, histograms, n_senses = {}, {}, []
    for name, wordnet in others.items():
        of_sense = ambiguous[name].T.tocsr()[senses]
        chosen = np.array([rng.choice(row.indices) for row in of_sense])
        words[name] = chosen
        n_senses.append(np.diff(wordnet.senses.indptr)[chosen])
        histograms[name] = _histograms(wordnet, chosen, own_share, cutoff)
    ids = wordnets["English"].sense_ids
    is_test = np.array([zlib.crc32(ids[i].encode()) / 2**32 < test_share for i in senses])
    return Riddles(senses, words, np.array(n_senses), histograms, is_test)


def strike(senses: sp.csr_array, share: float, rng: np.random.Generator) -> sp.csr_array:
    """A dictionary with about this share of its entries missing, as a smaller one has."""
    left = senses.copy()
    left.data *= rng.random(left.nnz) >= share
    left.eliminate_zeros()
    return left


def lay_out(riddles: Riddles, dictionaries: dict[str, sp.csr_array], english: Wordnet) -> Puzzle:
    """Riddles with kernels from dictionaries.

    Parameters
    ----------
    dictionaries : dict of language to sparse array of shape (n_words, n_senses)
        K of a word and an English word is the share of the word's senses that both have. A
        word without senses has nowhere to go; what is left of a histogram is the whole of it.
    """
    n_english = len(english.words)
    histograms, tables = [], []
    for name, senses in dictionaries.items():
        said = riddles.histograms[name]
        known = sp.diags_array((np.diff(senses.indptr) > 0).astype(float))
        pairs = sp.coo_array(_row_shares(sp.csr_array(said @ known)))
        kernel = (_row_shares(senses) @ english.senses.T).tocsr()[pairs.col].tocoo()
        columns = pairs.row[kernel.row].astype(np.int64) * n_english + kernel.col
        histograms.append(pairs.data)
        tables.append((kernel.data, kernel.row, columns, len(pairs.data)))
    target = np.unique(np.concatenate([columns for _, _, columns, _ in tables]))
    kernels = [
        SparseKernel(
            sp.csr_array(
                (data, (rows, np.searchsorted(target, columns))), shape=(n_source, len(target))
            )
        )
        for data, rows, columns, n_source in tables
    ]
    riddle, word = np.divmod(target, n_english)
    is_right = np.asarray(english.senses[word, riddles.senses[riddle]]).ravel() > 0
    return Puzzle(histograms, kernels, riddle, word, is_right, len(riddles.senses))


def _ambiguous(wordnet: Wordnet) -> sp.csr_array:
    """Words by senses, of words with two senses or more."""
    n_senses = np.diff(wordnet.senses.indptr)
    return sp.csr_array(sp.diags_array((n_senses > 1).astype(float)) @ wordnet.senses)


def _histograms(
    wordnet: Wordnet, chosen: np.ndarray, own_share: float, cutoff: float
) -> sp.csr_array:
    n_samples, names = len(chosen), wordnet.words.names
    itself = sp.csr_array(
        (np.ones(n_samples), (np.arange(n_samples), chosen)), shape=(n_samples, len(names))
    )
    related = itself @ wordnet.senses @ wordnet.senses.T
    distinct, of_sample = np.unique(chosen, return_inverse=True)
    spelt = from_spelling([names[i] for i in distinct], wordnet.words, cutoff=cutoff)
    alike = spelt.kernel.to_sparse()[of_sample]
    found = own_share * itself
    for near in (related, alike):
        others = sp.csr_array(near - near.multiply(itself))
        others.eliminate_zeros()
        given = _row_shares(others)
        left = 1 - np.asarray(given.sum(axis=1))
        found = found + (1 - own_share) / 2 * (given + sp.diags_array(left) @ itself)
    return sp.csr_array(found)


def _row_shares(table: sp.csr_array) -> sp.csr_array:
    """Rows divided by their sums; empty rows stay empty."""
    sums = np.asarray(table.sum(axis=1))
    return sp.csr_array(sp.diags_array(1 / np.where(sums > 0, sums, 1)) @ table)
