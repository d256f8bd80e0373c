"""A jury: judges who gave verdicts on items, in a long table."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import Number, fail
from wassemble.ensemble.tables import warn_of_inputs
from wassemble.ensemble.without_truth.rank import Ranking, rank_votes
from wassemble.ensemble.without_truth.relatives import mark_answers
from wassemble.ensemble.without_truth.rungs import Known
from wassemble.ensemble.without_truth.votes import Votes
from wassemble.errors import tell_count
from wassemble.inputs import Predictions
from wassemble.labels import LabelSpace, enumerate_names, fold_name
from wassemble.metrics import krippendorff_alpha

_COLUMNS = {
    "judge": ("judge", "worker", "annotator", "rater", "model"),
    "item": ("item", "sample", "sample_id", "id"),
    "verdict": ("verdict", "label", "grade", "score"),
}


@dataclass(frozen=True, eq=False)
class Verdict:
    """What one judge said about one item.

    Attributes
    ----------
    verdict : str, number, bool, None or dict of label to share
        A label, a grade, pass or fail, nothing, or a distribution over labels.
    """

    judge: str
    item: str
    verdict: Any


@dataclass(frozen=True, eq=False)
class Jury:
    """What a jury found.

    Attributes
    ----------
    ranking : Ranking
        Judges, best first, and the consensus on each item.
    alpha : float
        Krippendorff's alpha of the verdicts; with a scale, that of ordered grades.
    """

    ranking: Ranking
    alpha: float

    @property
    def consensus(self) -> Predictions:
        """How likely each label is, for each item."""
        return self.ranking.consensus

    def to_dict(self) -> dict[str, Any]:
        """All but the consensus, ready for JSON."""
        alpha = None if np.isnan(self.alpha) else self.alpha
        return {"alpha": alpha, "disputed": self.ranking.disputed(), **self.ranking.to_dict()}


def hear_jury(
    verdicts: Iterable[Verdict],
    *,
    scale: Sequence[str] | None = None,
    scales: Mapping[str, Sequence[str]] | None = None,
    gold: Mapping[str, str] | None = None,
    caution: float = 0.5,
) -> Jury:
    """The consensus of judges, and how far each can be trusted.

    Parameters
    ----------
    verdicts : iterable of Verdict
        `read_verdicts` reads them from a file.
    scale : list of str, or LabelSpace, optional
        Labels of the consensus, from the lowest to the highest, or where their positions say.
        Without, they are those that occur, in no order.
    scales : dict of judge to list of str, or LabelSpace, optional
        The grades of judges that have others, likewise; needs ``scale``.
    gold : dict of item to label, optional
        What people found.
    caution : float
        As in `learn_ensemble`.

    Examples
    --------
    >>> said = {"a": "good good bad bad", "b": "good good bad good", "c": "good bad bad bad"}
    >>> verdicts = [
    ...     Verdict(judge, str(item), verdict)
    ...     for judge, each in said.items()
    ...     for item, verdict in enumerate(each.split())
    ... ]
    >>> [top.label for top in hear_jury(verdicts).consensus.top()]
    ['good', 'good', 'bad', 'bad']
    """
    if scales and scale is None:
        fail("`scales` must go with `scale`, the labels of the consensus; got none.")
    given = list(verdicts)
    warn_of_inputs([*_doubt_judges(given), *_doubt_names(given)])
    rows = [row for verdict in given for row in _list_votes(verdict)]
    n_judges = len({judge for judge, *_ in rows})
    if n_judges < 3:
        fail(
            "there must be at least three judges, for two cannot outvote each other; got"
            f" {tell_count(n_judges, 'judge')}."
        )
    judges, items, labels, shares = zip(*rows, strict=True)
    target = None if scale is None else LabelSpace(scale).on_line()
    votes = Votes.of_table(judges, items, labels, shares=shares, target=target, scales=scales)
    known = Known(np.ones(votes.n_models), gold=None if gold is None else _read_gold(gold, votes))
    ranking = rank_votes(votes, known, caution=Number(at_least=0)(caution, "caution"))
    return Jury(ranking, _measure_alpha(votes))


def read_verdicts(path: str | Path) -> Iterator[Verdict]:
    """The verdicts in a file: JSON lines, or CSV or TSV with a header; may end in .gz.

    Columns or keys: judge (worker, annotator, rater, model), item (sample, sample_id, id) and
    verdict (label, grade, score). An empty verdict is a judge that was asked and said nothing.
    """
    path = Path(path)
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    readers = {".jsonl": _read_json, ".csv": _read_table, ".tsv": _read_table}
    if suffix not in readers:
        fail(f"{path}: verdicts must be in a file that ends in {', '.join(readers)}.")
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
        names: dict[str, str] | None = None
        for number, entries in enumerate(readers[suffix](text, path, suffix), start=1):
            names = _find_columns(entries, path) if names is None else names
            yield _read_verdict(entries, names, f"{path}, verdict {number}")
        if names is None:
            fail(f"{path}: must hold verdicts, one a line; the file has none.")


def _read_json(text: Any, path: Path, suffix: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        try:
            entries = json.loads(line)
        except ValueError as error:
            fail(f"{path}, line {number}: must be JSON; {error}.")
        if not isinstance(entries, dict):
            fail(f"{path}, line {number}: must be an object with judge, item and verdict.")
        yield entries


def _read_table(text: Any, path: Path, suffix: str) -> Iterator[dict[str, Any]]:
    yield from csv.DictReader(text, delimiter="\t" if suffix == ".tsv" else ",")


def _find_columns(entries: Mapping[str, Any], path: Path) -> dict[str, str]:
    """The column of each of judge, item and verdict."""
    found = {}
    for word, names in _COLUMNS.items():
        own = next((name for name in names if name in entries), None)
        if own is None:
            fail(
                f"{path}: must have a column {' or '.join(names)}; got {enumerate_names(entries)}."
            )
        found[word] = own
    return found


def _read_verdict(entries: Mapping[str, Any], names: Mapping[str, str], place: str) -> Verdict:
    judge, item = entries.get(names["judge"]), entries.get(names["item"])
    if judge in (None, "") or item in (None, ""):
        fail(f"{place}: must name a judge and an item; got {judge!r} and {item!r}.")
    verdict = entries.get(names["verdict"])
    return Verdict(str(judge), str(item), None if verdict == "" else verdict)


def _doubt_judges(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """A sentence if a judge spoke of an item more than once."""
    again = [
        pair for pair, n in Counter((each.judge, each.item) for each in verdicts).items() if n > 1
    ]
    if again:
        judge, item = again[0]
        yield (
            f"several verdicts of one judge on the same item share one vote:"
            f" {tell_count(len(again), 'time')}, such as of {judge!r} on {item!r}"
        )


def _doubt_names(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """A sentence for verdicts that differ only in how they are written."""
    alike: dict[str, set[str]] = {}
    for each in verdicts:
        told = each.verdict if isinstance(each.verdict, Mapping) else [each.verdict]
        for name in told:
            if isinstance(name, str):
                alike.setdefault(fold_name(name), set()).add(name)
    for names in alike.values():
        if len(names) > 1:
            listed = " and ".join(map(repr, sorted(names)))
            yield f"{listed} differ only in how they are written, and count as different verdicts"


def _list_votes(given: Verdict) -> list[tuple[str, str, Any, float]]:
    """A row for each label of a verdict, with its share."""
    verdict = given.verdict
    if isinstance(verdict, bool):
        verdict = "pass" if verdict else "fail"
    if isinstance(verdict, float) and not verdict.is_integer() and not np.isnan(verdict):
        verdict = f"{verdict:g}"  # a grade between two others, as a table has it
    if not isinstance(verdict, Mapping):
        return [(given.judge, given.item, verdict, 1.0)]
    told = [(label, Number(at_least=0)(share, str(label))) for label, share in verdict.items()]
    spoken = [(given.judge, given.item, label, share) for label, share in told if share > 0]
    return spoken or [(given.judge, given.item, None, 1.0)]


def _read_gold(gold: Mapping[str, str], votes: Votes) -> np.ndarray:
    known = {str(item): str(label) for item, label in gold.items()}
    strange = sorted({label for label in known.values() if label not in votes.target})
    if strange:
        fail(
            f"gold must be of the labels {enumerate_names(votes.target)}; got"
            f" {enumerate_names(strange)}."
        )
    labels = [known.get(str(item)) for item in votes.samples.tolist()]
    if not any(label is not None for label in labels):
        fail(
            f"gold must be of items that were judged, such as {votes.samples[0]!r}; got"
            f" {enumerate_names(known)}."
        )
    places = {name: place for place, name in enumerate(votes.target)}
    return np.array([-1 if label is None else places[label] for label in labels])


def _measure_alpha(votes: Votes) -> float:
    marked = mark_answers(votes)
    counts = np.stack([np.asarray(each.sum(axis=1)).ravel() for each in marked], axis=1)
    line = votes.target.positions
    if line is None:
        return krippendorff_alpha(counts)
    return krippendorff_alpha(counts[:, np.argsort(line)], is_ordered=True)
