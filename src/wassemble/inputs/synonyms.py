"""Synonyms in text files."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from wassemble._checks import fail
from wassemble.inputs.graphs import Edges, read_pairs

__all__ = ["read_synonyms"]


def read_synonyms(path: str | PathLike[str]) -> Edges:
    r"""The synonyms in a text file: word, synonym, and the votes for it as third column if any.

    Parameters
    ----------
    path : str or path
        ``.csv`` has commas; other files tabs, if the first line has one, else spaces.
        ``.gz`` is unpacked.

    Returns
    -------
    synonyms : Edges
        From each word to its synonyms; weights are votes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "synonyms.csv")
    ...     _ = path.write_text("word,synonym,votes\ncar,auto,12\ncar,motor vehicle,3\n")
    ...     read_synonyms(path)
    Edges(2 edges between 3 nodes, weighted)
    """
    synonyms = read_pairs(Path(path), "a word and a synonym, and its votes if any")
    if synonyms.weights is not None and (synonyms.weights < 0).any():
        wrong = int((synonyms.weights < 0).argmax())
        word, synonym = (synonyms.nodes[ends[wrong]] for ends in (synonyms.starts, synonyms.ends))
        fail(
            f"{path}: votes must not be negative; got {synonyms.weights[wrong]:g} for"
            f" {synonym!r} as a synonym of {word!r}."
        )
    return synonyms
