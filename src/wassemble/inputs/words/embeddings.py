"""Word vectors: what they are, and reading them from the formats in use."""

import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any, final

import numpy as np

from wassemble._checks import fail, refuse_names
from wassemble.errors import InvalidInputError
from wassemble.inputs.words.text_files import open_bytes, plain_suffix
from wassemble.labels import enumerate_names

Vectors = tuple[list[str], np.ndarray]

# Magic number of fastText's model files, which are not word2vec's `.bin`.
_FASTTEXT_MODEL = (793712314).to_bytes(4, "little")
# A line of text longer than this holds no word vector.
_LONGEST_LINE = 2**20
_LONGEST_WORD = 2**12
# Vectors that grow in memory together.
_CHUNK = 4096


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


def read_vectors(path: Path, wanted: set[str] | None) -> Vectors:
    """Words of a text or word2vec file whose folded form is ``wanted`` (None: all)."""
    read = _read_binary if plain_suffix(path) == ".bin" else _read_text
    words: list[str] = []
    chunks: list[np.ndarray] = [np.zeros((0, 0), dtype=np.float32)]
    rows: list[np.ndarray] = []
    with open_bytes(path) as file:
        for word, row in read(path, file, wanted):
            words.append(word)
            rows.append(row)
            if len(rows) == _CHUNK:
                chunks.append(np.stack(rows))
                rows = []
    if rows:
        chunks.append(np.stack(rows))
    return words, np.concatenate(chunks[1:] or chunks)


def _read_text(
    path: Path, file: IO[bytes], wanted: set[str] | None
) -> Iterator[tuple[str, np.ndarray]]:
    n_dimensions, n_seen = 0, 0
    n_promised: int | None = None
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
        if len(line) == _LONGEST_LINE:
            fail(f"{path}, line {number}: must be a word and its vector; got no end of line.")
        if number == 1:
            header = line.split()
            if len(header) == 2 and all(field.isdigit() for field in header):
                n_promised, n_dimensions = int(header[0]), int(header[1])
                continue
        if not line.strip():
            continue
        n_dimensions = n_dimensions or len(line.split()) - 1
        name, numbers = _cut(line.rstrip(), n_dimensions)
        # With a header, words are known to hold no spaces; else they may (GloVe's ". . .").
        if not numbers or (n_promised is not None and len(name.split()) > 1):
            fail(
                f"{path}, line {number}: must be a word and {max(n_dimensions, 1)} numbers; got"
                f" {len(line.split()) - 1} after the word."
            )
        n_seen += 1
        try:
            word = name.decode()
        except UnicodeDecodeError:
            fail(f"{path}, line {number}: must be UTF-8 text; got other bytes.")
        if wanted is None or word.casefold() in wanted:
            yield word, _read_row(path, number, word, numbers, n_dimensions)
    if n_promised not in (None, n_seen):
        fail(f"{path}: must hold {n_promised:,} words, as its first line says; got {n_seen:,}.")


def _cut(line: bytes, n_dimensions: int) -> tuple[bytes, bytes]:
    """The word and the text of its numbers, nothing if there are too few.

    By ASCII spaces alone: words may hold spaces of every other kind.
    """
    if line.count(b" ") == n_dimensions:  # the common case, without making every field
        name, _, numbers = line.partition(b" ")
        return name, numbers
    fields = line.rsplit(None, n_dimensions)
    if n_dimensions == 0 or len(fields) != n_dimensions + 1:
        return line, b""
    return fields[0], b" ".join(fields[1:])


def _read_row(path: Path, line: int, word: str, numbers: bytes, n_dimensions: int) -> np.ndarray:
    fields = numbers.split()
    try:
        row = np.array(fields).astype(np.float32)
    except ValueError:
        fail(f"{path}, line {line}: {word!r} must be followed by numbers; got other text.")
    if len(row) != n_dimensions or not np.isfinite(row).all():
        fail(f"{path}, line {line}: {word!r} must have {n_dimensions} finite numbers.")
    return row


def _read_binary(
    path: Path, file: IO[bytes], wanted: set[str] | None
) -> Iterator[tuple[str, np.ndarray]]:
    header = file.readline(64)
    if header.startswith(_FASTTEXT_MODEL):
        fail(
            f"{path}: must be word2vec's binary format; got a model of fastText.",
            hint="its vectors are in the .vec file beside it",
        )
    sizes = header.split()
    if len(sizes) != 2 or not all(size.isdigit() for size in sizes):
        fail(f"{path}: must start with the number of words and of dimensions; got other bytes.")
    n_words, n_dimensions = (int(size) for size in sizes)
    if not 0 < n_dimensions <= _LONGEST_LINE:
        fail(f"{path}: must have from 1 to {_LONGEST_LINE:,} dimensions; got {n_dimensions:,}.")
    for place in range(n_words):
        letters = bytearray()
        # One byte at a time: files are buffered, and vectors may hold any byte.
        while (letter := file.read(1)) != b" ":
            if not letter or len(letters) > _LONGEST_WORD:
                fail(f"{path}: must hold {n_words:,} words; got no end of word {place + 1:,}.")
            letters += letter
        raw = file.read(4 * n_dimensions)
        if len(raw) < 4 * n_dimensions:
            fail(f"{path}: must hold {n_words:,} words; it ends inside word {place + 1:,}.")
        # Some writers end each vector with a line feed.
        word = letters.lstrip(b"\n").decode(errors="replace")
        if wanted is None or word.casefold() in wanted:
            row = np.frombuffer(raw, dtype="<f4").astype(np.float32)
            if not np.isfinite(row).all():
                fail(f"{path}: the vector of word {place + 1:,}, {word!r}, must be finite.")
            yield word, row


def read_npz_vectors(path: Path, wanted: set[str] | None) -> Vectors:
    """Words of an ``.npz`` file whose folded form is ``wanted`` (None: all)."""
    if not path.is_file():
        fail(f"{path}: must be a file; there is none.")
    try:
        words, vectors, scale = _load_arrays(path)
    except InvalidInputError:
        raise
    except (OSError, ValueError, EOFError, KeyError, TypeError, AttributeError) as error:
        fail(f"{path}: must be a .npz file of plain arrays; it cannot be read ({error}).")
    except (MemoryError, RuntimeError, SyntaxError, zipfile.BadZipFile, zlib.error) as error:
        fail(f"{path}: must be a .npz file of plain arrays; it cannot be read ({error}).")
    if words.dtype.kind != "U" or words.ndim != 1:
        fail(f"{path}: the words must be a list of texts; got {words.dtype}, {words.shape}.")
    if vectors.dtype.kind not in "fiu" or vectors.ndim != 2 or len(vectors) != len(words):
        fail(
            f"{path}: `vectors` must be numbers of shape ({len(words)}, n_dimensions); got"
            f" {vectors.dtype} of shape {vectors.shape}."
        )
    if scale is not None:
        vectors = vectors.astype(np.float32) * _read_scale(path, scale, vectors.shape)
    names = words.tolist()
    kept = [i for i, word in enumerate(names) if wanted is None or word.casefold() in wanted]
    return [names[i] for i in kept], vectors[kept]


def _load_arrays(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    # Opened here: np.load leaves a file open that it cannot read.
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        words = [key for key in ("words", "names", "labels") if key in file.files]
        vectors = [key for key in ("vectors", "codes") if key in file.files]
        if not words or not vectors:
            fail(
                f"{path}: must have the arrays words (or names, or labels) and vectors (or codes);"
                f" got {', '.join(file.files)}."
            )
        scale = file["scale"] if "scale" in file.files else None
        return file[words[0]], file[vectors[0]], scale


def _read_scale(path: Path, scale: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    n_words, n_dimensions = shape
    # With as many words as dimensions, one number each is taken to be per word.
    places = {(n_words,): (-1, 1), (n_words, 1): (-1, 1)}
    places |= (
        {(n_dimensions,): (1, -1), (1, n_dimensions): (1, -1)} if n_words != n_dimensions else {}
    )
    if math.prod(scale.shape) == 1:
        places[scale.shape] = (1, 1)
    if scale.dtype.kind not in "fiu" or scale.shape not in places:
        fail(
            f"{path}: `scale` must be one number, one per word or one per dimension; got"
            f" {scale.dtype} of shape {scale.shape}."
        )
    return scale.reshape(places[scale.shape]).astype(np.float32)
