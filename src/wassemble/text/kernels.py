"""Kernels between vocabularies: which words may stand for each other, and which never may."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._checks import fail
from wassemble.kernels import Kernel, LabelledKernel, SparseKernel, as_kernel, from_names
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.text.vocabulary import Vocabulary

# Byte-level BPE writes bytes that cannot be printed as letters: a space is "Ġ".
_BYTES = {256 + n: byte for n, byte in enumerate([*range(33), *range(127, 161), 173])}
_MARKS = re.compile(r"</w>|<0x[0-9A-F]{2}>")  # of the end of a word, of a byte in SentencePiece


def has_letters(word: str) -> bool:
    """Whether ``word`` has a letter: digits and punctuation have none.

    What tokenizers put into their pieces for spaces and other bytes does not count.

    Examples
    --------
    >>> [has_letters(word) for word in ("cat", "42", "...", "3d")]
    [True, False, False, True]
    >>> [has_letters(piece) for piece in ("Ġcat", "Ġ42", "▁42", "##42")]
    [True, False, False, False]
    """
    word = _MARKS.sub("", word).translate(_BYTES)
    with suppress(UnicodeError):  # a word that is no UTF-8, such as café, stays as it is
        word = word.encode("latin-1").decode()
    return any(character.isalpha() for character in word)


def matched_words(source: Vocabulary, target: Vocabulary) -> np.ndarray:
    """Number in ``target`` of each word of ``source``, -1 where there is none.

    Words match by name; the words that start, end and stand for others match by their
    part, whatever they are called.
    """
    places = source.words.match(target.words).places
    for part in ("unknown", "start", "end"):  # where start is end, it is the end
        own, other = getattr(source, part), getattr(target, part)
        if own in source:
            place = target.words.place(other) if other in target else -1
            places[source.words.place(own)] = place
    return places


def keep_apart(
    kernel: LabelledKernel,
    source: Vocabulary,
    target: Vocabulary,
    *,
    may_move: Callable[[str], bool] = has_letters,
) -> Kernel:
    """The kernel of two vocabularies, with words that must not move kept to themselves.

    Special words, and words that ``may_move`` refuses, are similar to the same word of the
    other vocabulary alone (1, and 0 elsewhere), so that no sentence ends because a similar
    word was likely, and no 2 becomes a 3. Words that the kernel does not know keep to
    themselves too.

    Parameters
    ----------
    kernel : LabelledKernel
    source, target : Vocabulary
        Of the model, and of the consensus.
    may_move : callable
        Whether a word may stand for others; by default, if it has a letter.

    Returns
    -------
    kernel : Kernel of shape (n_source, n_target)
        Stored as ``kernel`` is; symmetric if it was.

    Examples
    --------
    >>> words = Vocabulary(["cat", "dog", "2", "<end>"])
    >>> every = LabelledKernel(np.ones((4, 4)), words.words, words.words, "ones")
    >>> keep_apart(every, words, words).to_dense()
    array([[1., 1., 0., 0.],
           [1., 1., 0., 0.],
           [0., 0., 1., 0.],
           [0., 0., 0., 1.]])
    """
    if kernel.kernel.is_diagonal and kernel.source == source.words and source == target:
        return kernel.kernel
    moves = [
        np.array([w in known and w not in v.special and may_move(w) for w in v.words], dtype=bool)
        for v, known in ((source, kernel.source), (target, kernel.target))
    ]
    places = matched_words(source, target)
    stays = np.flatnonzero(~moves[0] & (places >= 0))
    # A word that moves on one side only must still arrive.
    stays = np.union1d(stays, np.flatnonzero((places >= 0) & ~moves[1][places]))
    shape, alone = (len(source), len(target)), (stays, places[stays])
    rows, columns = (np.flatnonzero(side) for side in moves)
    if not (len(rows) and len(columns)):
        return SparseKernel(sp.csr_array((np.ones(len(stays)), alone), shape=shape))
    inner = kernel.align(LabelSpace(source.decode(rows)), LabelSpace(target.decode(columns)))
    return inner.embed(shape, rows, columns, alone)


def word_kernel(kernel: Any, source: Vocabulary, target: Vocabulary) -> Kernel:
    """``kernel`` between two vocabularies, with words that must not move kept apart.

    With names, it is matched by them; without, it has a row for each word of ``source`` and a
    column for each word of ``target``. None joins equal words alone.
    """
    if kernel is None:
        kernel = from_names(source.words, target.words)
    if not isinstance(kernel, LabelledKernel):
        bare = as_kernel(kernel)
        if bare.shape != (len(source), len(target)):
            fail(
                f"a kernel without names must have shape ({len(source)}, {len(target)}), the"
                f" words of the model and of the consensus; got {bare.shape}.",
                hint="a LabelledKernel is matched by its names",
            )
        kernel = LabelledKernel(bare, source.words, target.words, "given without names")
    return keep_apart(kernel, source, target)


def nearest_words(kernel: Kernel, first: np.ndarray | None = None) -> np.ndarray:
    """The target label most similar to each source label, -1 for a row of zeros.

    Where a source label is similar to its label in ``first`` at all, it is that one; -1 there
    is none.
    """
    nearest = np.empty(kernel.shape[0], dtype=np.int64)
    for start, rows in kernel.blocks():
        best = np.asarray(rows.argmax(axis=1)).ravel()
        own = slice(start, start + len(best))
        nearest[own] = np.where(_entries(rows, best) > 0, best, -1)
        if first is not None:
            is_similar = (first[own] >= 0) & (_entries(rows, first[own]) > 0)
            nearest[own] = np.where(is_similar, first[own], nearest[own])
    return nearest


def _entries(rows: Any, columns: np.ndarray) -> np.ndarray:
    """One entry of each row."""
    entries = rows[np.arange(len(columns)), columns]
    return np.asarray(entries.todense() if sp.issparse(entries) else entries).ravel()


def lone_words(kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """Which target labels keep to themselves, and the only target of each source label."""
    # Every source label that reaches this target label reaches no other.
    is_alone = np.ones(kernel.shape[1], dtype=bool)
    only = np.full(kernel.shape[0], -1)  # where several are reached, or none
    for start, rows in kernel.blocks():
        n_reached = np.asarray((rows > 0).sum(axis=1)).ravel()
        is_alone &= np.asarray((rows[n_reached > 1] > 0).sum(axis=0)).ravel() == 0
        single = np.flatnonzero(n_reached == 1)
        only[start + single] = np.asarray(rows[single].argmax(axis=1)).ravel()
    return is_alone, only


def words_to_read(kernel: Kernel, source: Vocabulary, target: Vocabulary) -> np.ndarray:
    """Number of the model's word for each word of the consensus.

    The word itself; else the model's most similar word; else its unknown word.
    """
    reads = matched_words(target, source)
    missing = reads < 0
    if missing.any():
        reads[missing] = nearest_words(kernel.T)[missing]
        if source.unknown_index is not None:
            reads[reads < 0] = source.unknown_index
    # The first word alone is read without being generated. Where the consensus starts with
    # its end, that is read at the start alone.
    reads[target.start_index] = source.start_index
    if (reads < 0).any():
        strange = target.decode(np.flatnonzero(reads < 0))
        fail(
            "every word of the consensus must be a word that each model can read; one has none"
            f" for {enumerate_names(strange)}.",
            hint="give it an unknown word, or a kernel that joins these words to its own",
        )
    return reads
