"""Words of four languages and the senses that they share.

English, French, Italian and Portuguese wordnets give words to senses; the interlingual index
numbers senses alike for all. What is made of shared senses is left to others.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from paper.data.files import find_data
from wassemble.labels import LabelSpace

_FILES = {"French": "omw_fra", "Italian": "omw_ita", "Portuguese": "omw_por"}
# MultiWordNet marks senses that Italian has no word for.
_NO_WORD = ("GAP!", "PSEUDOGAP!")


@dataclass(frozen=True, eq=False)
class Wordnet:
    """The words of a language and their senses."""

    words: LabelSpace  # in the order of the alphabet
    senses: sp.csr_array  # (n_words, n_senses): 1 where a word has a sense, else 0
    sense_ids: tuple[str, ...]  # of the interlingual index: the same columns for every language


def load_wordnets() -> dict[str, Wordnet]:
    """English, French, Italian and Portuguese, over the senses of Open English WordNet.

    Examples
    --------
    >>> wordnets = load_wordnets()
    >>> avocat = wordnets["French"].senses[[wordnets["French"].words.position("avocat")]]
    >>> shared = (avocat @ wordnets["English"].senses.T).toarray()[0]
    >>> [wordnets["English"].words[i] for i in shared.nonzero()[0]][:3]
    ['Persea Americana', 'advocate', 'advocator']
    """
    english = {
        sense: members.split("|")
        for _, sense, members, *_ in _rows("words/oewn_synsets.tsv.gz")
        if sense  # newer senses are not in the index
    }
    columns = {sense: column for column, sense in enumerate(english)}
    found = {"English": _wordnet(((w, columns[s]) for s in english for w in english[s]), columns)}
    index = {offset: sense for sense, offset in _rows("multilingual/cili_ili-map-pwn30.tab.gz")}
    for language, file in _FILES.items():
        pairs = []
        for offset, kind, word, *_ in _rows(f"multilingual/{file}.tab.gz"):
            # The index tells satellite adjectives (s) from others (a); these wordnets do not.
            sense = index.get(offset) or index.get(offset.replace("-a", "-s"))
            if kind.endswith("lemma") and word not in _NO_WORD and sense in columns:
                pairs.append((word, columns[sense]))
        found[language] = _wordnet(pairs, columns)
    return found


def _rows(name: str) -> Iterator[list[str]]:
    with gzip.open(find_data(name), "rt", encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("#"):
                yield line.rstrip("\n").split("\t")


def _wordnet(pairs: Iterable[tuple[str, int]], columns: dict[str, int]) -> Wordnet:
    known = sorted(set(pairs))
    words = LabelSpace(dict.fromkeys(word for word, _ in known))
    rows = words.positions(word for word, _ in known)
    places = (rows, np.array([column for _, column in known]))
    shape = (len(words), len(columns))
    senses = sp.csr_array((np.ones(len(known)), places), shape=shape)
    return Wordnet(words, senses, tuple(columns))
