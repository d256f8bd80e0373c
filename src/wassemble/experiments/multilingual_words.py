"""Words for hidden senses: what a model of each language says, and a dictionary into English.

A sense is hidden; each language names it by one of its words that means other things too.
From there on nothing depends on the hidden sense: only what the languages' words have in
common can give it away.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from wassemble.inputs.wordnets import Wordnet
from wassemble.kernels import SparseKernel, kernel_from_spelling

__all__ = ["Batch", "Riddles", "batches", "choose_riddles", "strike"]

_BATCH = 40


@dataclass(frozen=True, eq=False)
class Riddles:
    """Hidden senses, and the words of each language that may mean them.

    Attributes
    ----------
    senses : ndarray of shape (n_samples,)
        Columns of the wordnets.
    words : dict of language to ndarray of shape (n_samples,)
        The word that was named: a place among the language's words.
    n_senses : ndarray of shape (n_languages, n_samples)
        How many senses that word has.
    histograms : dict of language to sparse array of shape (n_samples, n_words)
        What the language's model says.
    is_test : ndarray of shape (n_samples,)
    """

    senses: np.ndarray
    words: dict[str, np.ndarray]
    n_senses: np.ndarray
    histograms: dict[str, sp.csr_array]
    is_test: np.ndarray


@dataclass(frozen=True, eq=False)
class Batch:
    """Some riddles over the words that occur in them.

    Attributes
    ----------
    histograms : list of ndarray of shape (n_samples, n_source)
        One per language; rows without a word that the dictionary knows are 0.
    kernels : list of SparseKernel of shape (n_source, n_target)
        One per language, into English words.
    english : ndarray of shape (n_target,)
        Places among the English words.
    is_right : ndarray of shape (n_samples, n_target)
        Whether an English word has the hidden sense.
    """

    rows: np.ndarray
    histograms: list[np.ndarray]
    kernels: list[SparseKernel]
    english: np.ndarray
    is_right: np.ndarray


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


def strike(wordnet: Wordnet, share: float, rng: np.random.Generator) -> sp.csr_array:
    """The senses of a wordnet with this share of its entries missing, as in a smaller one."""
    senses = wordnet.senses.copy()
    senses.data *= rng.random(senses.nnz) >= share
    senses.eliminate_zeros()
    return senses


def batches(
    riddles: Riddles, dictionaries: dict[str, sp.csr_array], english: Wordnet
) -> Iterator[Batch]:
    """The riddles, a few at a time, so that label sets stay small.

    Parameters
    ----------
    dictionaries : dict of language to sparse array of shape (n_words, n_senses)
        K of a word and an English word is the share of the word's senses that both have.
    """
    kernels = {
        name: _row_shares(senses, by=senses) @ english.senses.T
        for name, senses in dictionaries.items()
    }
    order = np.arange(len(riddles.senses))
    for rows in np.array_split(order, max(len(order) // _BATCH, 1)):
        histograms, tables = [], []
        for name, kernel in kernels.items():
            said = riddles.histograms[name][rows]
            known = np.unique(said.indices)
            known = known[np.diff(kernel.indptr)[known] > 0]
            histograms.append(_rows_to_one(said[:, known].toarray()))
            tables.append(kernel[known])
        target = np.unique(np.concatenate([table.indices for table in tables]))
        is_right = english.senses[target][:, riddles.senses[rows]].toarray().T > 0
        parts = [SparseKernel(table[:, target]) for table in tables]
        yield Batch(rows, histograms, parts, target, is_right)


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
    spelt = kernel_from_spelling([names[i] for i in distinct], wordnet.words, cutoff=cutoff)
    alike = spelt.kernel.to_sparse()[of_sample]
    found = own_share * itself
    for near in (related, alike):
        near = sp.csr_array(near - near.multiply(itself))
        near.eliminate_zeros()
        given = _row_shares(near, by=near)
        left = 1 - np.asarray(given.sum(axis=1))
        found = found + (1 - own_share) / 2 * (given + sp.diags_array(left) @ itself)
    return sp.csr_array(found)


def _row_shares(table: sp.csr_array, *, by: sp.csr_array) -> sp.csr_array:
    sums = np.asarray(by.sum(axis=1))
    return sp.csr_array(sp.diags_array(1 / np.where(sums > 0, sums, 1)) @ table)


def _rows_to_one(table: np.ndarray) -> np.ndarray:
    sums = table.sum(axis=1, keepdims=True)
    return np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
