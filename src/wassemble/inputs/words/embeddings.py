"""Word vectors: what they are, and reading them from the formats in use."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np

from wassemble._checks import fail, refuse_names
from wassemble.inputs.words.embedding_formats import read_npz_vectors, read_vectors
from wassemble.inputs.words.text_files import plain_suffix
from wassemble.labels import enumerate_names


@final
class Embeddings:
    """Words and a vector for each.

    Parameters
    ----------
    words : sequence of str
        Of a word that comes twice, the first is used, as in a file sorted by frequency.
    vectors : array of shape (n_words, n_dimensions)
        Kept in float32.
    origin : str
        Where they come from, for accounts and messages.

    Examples
    --------
    >>> embeddings = Embeddings(["cat", "dog"], [[1.0, 0.0], [0.8, 0.6]])
    >>> embeddings.find("dog"), embeddings.find("Dog"), embeddings.find_folded("Dog")
    (1, None, 1)
    """

    def __init__(self, words: Iterable[str], vectors: Any, *, origin: str = "word vectors") -> None:
        self.words: tuple[str, ...] = tuple(words)
        refuse_names(vectors, "vectors")
        self.vectors = np.asarray(vectors)
        self.origin = origin
        if self.vectors.dtype.kind not in "fiu" or self.vectors.ndim != 2 or not self.vectors.size:
            fail(
                f"{origin}: vectors must be numbers of shape (n_words, n_dimensions); got"
                f" {self.vectors.dtype} of shape {self.vectors.shape}."
            )
        if len(self.words) != len(self.vectors):
            fail(
                f"{origin}: there must be one vector for each word; got {len(self.words):,} words"
                f" and {len(self.vectors):,} vectors."
            )
        for place, word in enumerate(self.words):
            if not isinstance(word, str):
                fail(f"{origin}: a word must be a text; got {word!r} at {place}.")
        with np.errstate(over="ignore"):
            self.vectors = self.vectors.astype(np.float32, copy=False)
        wrong = ~np.isfinite(self.vectors).all(axis=1)
        if wrong.any():
            word = self.words[int(wrong.argmax())]
            fail(f"{origin}: vectors must be finite in float32; got one that is not at {word!r}.")
        self._places: dict[str, int] = {}
        for place, word in enumerate(self.words):
            self._places.setdefault(word, place)
        self._folded: dict[str, int] | None = None

    @property
    def n_dimensions(self) -> int:
        """Length of each vector."""
        return int(self.vectors.shape[1])

    def find(self, word: str) -> int | None:
        """Place of ``word``, None if it has no vector."""
        return self._places.get(word)

    def find_folded(self, word: str) -> int | None:
        """Place of the first word that is ``word`` without regard to case, None if none is."""
        if self._folded is None:
            self._folded = {}
            for place, known in enumerate(self.words):
                self._folded.setdefault(known.casefold(), place)
        return self._folded.get(word.casefold())

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def __repr__(self) -> str:
        return f"Embeddings({len(self):,} words, {self.n_dimensions} dimensions)"


def read_embeddings(path: str | PathLike[str], *, names: Iterable[str] | None = None) -> Embeddings:
    r"""The word vectors in a file.

    Parameters
    ----------
    path : str or path
        By its suffix, before a ``.gz`` if any:

        - ``.npz``: an array ``words``, ``names`` or ``labels`` of text and an array
          ``vectors`` or ``codes`` of numbers, multiplied by the array ``scale`` if there is
          one: one number, one per word or one per dimension.
        - ``.bin``: the binary format of word2vec.
        - anything else: a text file with a word and its numbers per line, such as GloVe's;
          a first line of two whole numbers, as word2vec and fastText write, says how many
          words and dimensions there are.
    names : iterable of str, optional
        Labels or words: only these, the words in them, and both in other letter case are
        kept, so that a large file needs little memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tiny.txt")
    ...     _ = path.write_text("the 0.1 0.2\ncat 1 0\npolar 0 1\nbear 0.5 0.5\n")
    ...     read_embeddings(path, names=["Cat", "polar bear"]).words
    ('cat', 'polar', 'bear')
    """
    path = Path(path)
    wanted = None if names is None else _wanted(names)
    read = read_npz_vectors if plain_suffix(path) == ".npz" else read_vectors
    words, vectors = read(path, wanted)
    if not words:
        few = "" if wanted is None else f" of one of {enumerate_names(sorted(wanted))}"
        fail(f"{path}: must hold the vector{few or ' of a word'}; got none.")
    return Embeddings(words, vectors, origin=path.name)


def word_forms(label: str) -> tuple[str, ...]:
    """How a label may be written as one word: as it is, and with other separators.

    Examples
    --------
    >>> word_forms("polar+bear")
    ('polar+bear', 'polar_bear', 'polar bear', 'polar-bear')
    """
    words = split_words(label)
    return tuple(dict.fromkeys([label, *(mark.join(words) for mark in "_ -")]))


def split_words(label: str) -> tuple[str, ...]:
    """The words of a label, parted by spaces, underscores, hyphens or plus signs.

    Examples
    --------
    >>> split_words("polar_bear")
    ('polar', 'bear')
    """
    for mark in "_-+":
        label = label.replace(mark, " ")
    return tuple(label.split())


def _wanted(names: Iterable[str]) -> set[str]:
    if isinstance(names, str):
        fail(f"`names` must come as a list; got one text, {names!r}.")
    forms = ((*word_forms(name), *split_words(name)) for name in names)
    return {form.casefold() for some in forms for form in some}
