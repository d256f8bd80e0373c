"""How far apart names are in Open English WordNet: steps up to a common meaning and down again."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from paper.data.files import find_data


def wordnet_steps(names: Sequence[str]) -> np.ndarray:
    """Fewest steps from any meaning of a name to any of another, ``(n_names, n_names)``.

    A step goes from a noun's meaning to a more general one, or back. A name that WordNet lacks is
    looked up with a capital, by its last word, or without a final s; one that is not found at all
    is infinitely far from every other. Two names that share a meaning are a step apart: as labels
    they are not the same.

    Examples
    --------
    >>> wordnet_steps(["cat", "dog", "umbrella", "tvmonitor"])[0].tolist()
    [0.0, 3.0, 10.0, inf]
    """
    with gzip.open(find_data("words/oewn_synsets.tsv.gz"), "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]
    nouns = [(number, members, above) for number, _, members, above, _ in rows if number[-1] == "n"]
    place = {number: i for i, (number, _, _) in enumerate(nouns)}
    links = [
        (place[number], place[each])
        for number, _, above in nouns
        for each in above.split("|")
        if each in place
    ]
    ends = np.array(links).T
    graph = sp.csr_array((np.ones(len(links)), tuple(ends)), shape=(len(nouns), len(nouns)))
    senses: dict[str, list[int]] = {}
    for number, members, _ in nouns:
        for word in members.split("|"):
            senses.setdefault(word, []).append(place[number])
    meanings = [_look_up(name, senses) for name in names]
    steps = np.full((len(names), len(names)), np.inf)
    for row, own in enumerate(meanings):
        if own:
            away = dijkstra(graph, directed=False, unweighted=True, indices=own).min(axis=0)
            steps[row] = [away[other].min(initial=np.inf) for other in meanings]
    steps = np.maximum(steps, 1)
    np.fill_diagonal(steps, 0)
    return steps


def _look_up(name: str, senses: Mapping[str, list[int]]) -> list[int]:
    forms = (name, name.capitalize(), name.rsplit(maxsplit=1)[-1], name.removesuffix("s"))
    return next((senses[form] for form in forms if form in senses), [])
