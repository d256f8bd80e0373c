"""Which column of a table is what: sample ids, label names, scores.

Knows names and types of columns only, not the library or file that they come from. What
cannot be told is an error; nothing is guessed beyond the rules of `find_layout`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wassemble._checks import fail, option, option_or
from wassemble.inputs.predictions.value import Origin
from wassemble.inputs.reading import Reading
from wassemble.labels import LabelSpace, enumerate_names

# Names by which a column of sample ids is recognised; the first one is written.
ID_NAMES = ("sample", "sample_id", "id")

# What pandas and Dask call the column of an index that has no name, in tables and in CSV.
_NAMELESS_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
_NAMELESS_COLUMN = re.compile(r"(Unnamed: \d+(\.\d+)*)?")

# Names by which the column of scores of a long table is recognised.
_SCORES = ("score", "confidence")

# What people call a column of labels that a model chose. Beside ids it is more likely that than the
# scores of a label of this name.
_CHOSEN = (
    *("answer", "class", "predicted", "predicted_class", "predicted_label"),
    *("pred", "prediction", "predictions", "vote", "y_pred"),
)

ColumnType = Literal["text", "number", "empty", "other"]


@dataclass(frozen=True)
class Index:
    """Row names that a table keeps apart from its columns, as pandas does."""

    name: str | None


@dataclass(frozen=True)
class WideLayout:
    """One row per sample, one column per label; ``id_column`` None stands for the index.

    Without ``has_ids`` there are none.
    """

    id_column: str | None
    labels: LabelSpace
    has_ids: bool = True
    left_out: tuple[str, ...] = ()  # columns that are none of the labels asked for


@dataclass(frozen=True)
class LongLayout:
    """One row per sample and label; without ``score_column``, the labels are hard."""

    id_column: str | None
    label_column: str
    score_column: str | None
    has_ids: bool = True

    @property
    def columns(self) -> list[str]:
        """Those that are read."""
        names = (self.id_column, self.label_column, self.score_column)
        return [name for name in names if name is not None]


def find_layout(
    names: Sequence[Any],
    type_of: Callable[[str], ColumnType],
    reading: Reading,
    *,
    index: Index | None = None,
    stored_index: Sequence[str] = (),
) -> WideLayout | LongLayout:
    """What each column is for.

    The ids are in the column that was chosen; else in the one called "sample", "sample_id"
    or "id"; else in the index; else in the only column of text; else in the only one without
    a name. The table is long if a label or score column was chosen, or if next to the ids
    there is a column "label" and nothing else but, perhaps, "score" or "confidence".

    ``stored_index`` names columns that were the index of a pandas frame before it was
    stored. They hold ids or nothing of use: labels only if they were chosen as such. So it
    is with columns that have no name, which is how pandas writes an index into a CSV file.
    """
    _check_names(names)
    # pandas writes an index first; an empty name elsewhere is a mistake.
    nameless = [n for i, n in enumerate(names) if is_nameless(n) and (n or i == 0)]
    stored_index = [n for n in names if n in stored_index or _NAMELESS_INDEX.fullmatch(n)]
    for argument in ("label_column", "score_column"):
        name = getattr(reading, argument)
        if name is not None and name not in names:
            fail(
                f"the table must have a column {name!r}; got {enumerate_names(names)}.",
                hint=None if reading.is_truth else _leave_out(argument),
            )
    id_column, has_ids = _find_id_column(names, type_of, reading, index, stored_index, nameless)
    chosen = {reading.label_column, reading.score_column, *(reading.labels or ())}
    ignored = {id_column, *({*stored_index, *nameless} - chosen)}
    rest = [name for name in names if name not in ignored]
    if reading.is_truth and (truth_column := _truth_column(rest, type_of, reading)) is not None:
        return LongLayout(id_column, truth_column, None, has_ids)
    if reading.label_column is not None or reading.score_column is not None:
        return _chosen_long(id_column, rest, reading, has_ids)
    may_be_label = reading.labels is None or "label" not in reading.labels
    others = [name for name in rest if name != "label"]
    is_long = "label" in rest and (not others or (len(others) == 1 and others[0] in _SCORES))
    if is_long and may_be_label:
        return LongLayout(id_column, "label", others[0] if others else None, has_ids)
    if reading.labels is None:
        if not rest:
            fail("the table must have a column of scores for each label; got none.")
        _check_chosen(rest)
        return WideLayout(id_column, LabelSpace(rest), has_ids)
    there = set(rest)
    missing = [label for label in reading.labels if label not in there]
    if missing:
        fail(
            f"the table must have a column for each of {option('labels')}; it has none for"
            f" {enumerate_names(missing)}."
        )
    left_out = tuple(name for name in rest if name not in reading.labels)
    return WideLayout(id_column, reading.labels, has_ids, left_out)


def is_nameless(name: Any) -> bool:
    """Whether a column has no name, or one that pandas made up for it."""
    return isinstance(name, str) and _NAMELESS_COLUMN.fullmatch(name) is not None


def describe_ids(
    file: str | None, id_column: str | None, has_ids: bool, doubts: Iterable[str] = ()
) -> Origin:
    """The origin of a table whose ids are in a column; None for those beside the scores."""
    name = None if id_column is None or is_nameless(id_column) else id_column
    return Origin(file, name, _where_ids_are(id_column, has_ids), has_ids, tuple(doubts))


def _where_ids_are(id_column: str | None, has_ids: bool) -> str:
    if not has_ids:
        return "no ids, rows counted from 0"
    if id_column is None:
        return "ids beside the scores"
    if id_column.strip() == "":
        return "ids in the column without a name"
    note = ", as pandas calls a column without a name" if is_nameless(id_column) else ""
    return f"ids in {id_column!r}{note}"


def free_id_name(labels: LabelSpace, wanted: str | None = None) -> str:
    """A name for the column of ids that no label has: ``wanted``, or one that is recognised."""
    if wanted is not None and wanted not in labels:
        return wanted
    free = [name for name in ID_NAMES if name not in labels]
    if not free:
        fail(
            "one of the names 'sample', 'sample_id' and 'id' must be free for the sample ids;"
            " all three are labels.",
            hint="NumPy files and JSON lines keep ids and labels apart",
        )
    return free[0]


def _check_names(names: Sequence[Any]) -> None:
    if not all(isinstance(name, str) for name in names):
        wrong = next(name for name in names if not isinstance(name, str))
        fail(
            f"the names of columns must be text; got {wrong!r}.",
            hint="of a pandas frame, `frame.rename(columns=str)` makes them so",
        )
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = dict.fromkeys(n for n in names if n in seen or seen.add(n))  # type: ignore[func-returns-value]
        fail(f"the names of columns must differ; got more than once: {enumerate_names(twice)}.")


def _find_id_column(
    names: Sequence[str],
    type_of: Callable[[str], ColumnType],
    reading: Reading,
    index: Index | None,
    stored_index: Sequence[str],
    nameless: Sequence[str],
) -> tuple[str | None, bool]:
    """The column of ids, None for the index, and whether there are ids at all."""
    if reading.id_column is not None:
        if reading.id_column in names:
            return reading.id_column, True
        if index is not None and index.name == reading.id_column:
            return None, True
        fail(f"the table must have a column {reading.id_column!r}; got {enumerate_names(names)}.")
    taken = {reading.label_column, reading.score_column, *(reading.labels or ())}
    known = [name for name in ID_NAMES if name in names and name not in taken]
    in_index = index is not None and index.name in ID_NAMES
    if len(known) + in_index > 1:
        both = known + ["the index"] * in_index
        fail(
            f"one column must hold the sample ids; got {' and '.join(map(repr, both))}.",
            hint=f"{option('id_column')} says which one it is",
        )
    if known:
        return known[0], True
    if index is not None:
        return None, True
    if len(stored_index) == 1 and stored_index[0] not in taken:
        return stored_index[0], True
    if reading.is_pairs and names:
        return names[0], True
    # A column "label" holds answers, never samples.
    taken.add("label")
    texts = [name for name in names if name not in taken and type_of(name) == "text"]
    free = [name for name in nameless if name not in taken]
    if not texts and not reading.by_row and len(free) == 1:
        return free[0], True
    # Texts in a table of true labels may be anything: names of labels, too.
    if reading.by_row and (not texts or reading.is_truth):
        return None, False
    if len(texts) != 1:
        if names and all(type_of(name) == "empty" for name in names):
            fail(
                "the table must have rows, which tell the column of sample ids; got none below"
                f" {enumerate_names(names)}.",
                hint=f"{option('id_column')} names it",
            )
        fail(
            "one column must hold the sample ids and be called 'sample', 'sample_id' or 'id';"
            f" got {enumerate_names(names) if names else 'no columns'}.",
            hint=f"{option('id_column')} names it; {option('by_row', True)} matches rows by their"
            " order, if there are no ids"
            + (f"; {option('id_column', '')} is the one without a name" if "" in names else ""),
        )
    return texts[0], True


def _leave_out(argument: str) -> str:
    for_one = {argument: "MODEL=NAME is for one file"}
    return option_or(f"leave out `{argument}` for tables without it", **for_one)


def say_truth_column(name: str) -> str:
    """How a reader says that the column ``name`` of a file holds the true labels."""
    return option_or(f'`read_truth(path, column="{name}")`', truth_column=name)


def _truth_column(
    rest: Sequence[str], type_of: Callable[[str], ColumnType], reading: Reading
) -> str | None:
    """The column of true labels among ``rest``; None where each label has a column, or a score."""
    if reading.label_column is not None:
        return reading.label_column
    if "label" in rest:
        others = [name for name in rest if name != "label"]
        return None if len(others) == 1 and others[0] in _SCORES else "label"
    texts = [name for name in rest if type_of(name) == "text"]
    if texts and len(rest) > 1:
        fail(
            "the true labels must be in a column called 'label', or be 0 and 1 in a column for"
            f" each label; got text in {enumerate_names(texts)}.",
            hint=f"{say_truth_column(texts[0])} takes the names in that column; in a data frame,"
            " call it 'label'",
        )
    return texts[0] if texts else None


def _check_chosen(rest: Sequence[str]) -> None:
    """Columns that look like a chosen label, and perhaps its score, are not taken for labels."""
    chosen = [name for name in rest if name.casefold() in _CHOSEN]
    others = [name for name in rest if name not in chosen]
    if len(chosen) != 1 or len(others) > 1:
        return
    if not others or others[0].casefold() in (*_SCORES, "probability", "prob"):
        scores = f" and {option('score_column', others[0])}" if others else ""
        fail(
            "the table must have a column of scores for each label, or one of labels; a column"
            f" called {chosen[0]!r} may be either.",
            hint=f"{option('label_column', chosen[0])}{scores} if it holds labels (in a data frame,"
            f" call it 'label'); {option('labels', list(rest))} if labels are called so",
        )


def _chosen_long(
    id_column: str | None, rest: Sequence[str], reading: Reading, has_ids: bool
) -> LongLayout:
    label_column = "label" if reading.label_column is None else reading.label_column
    if label_column not in rest:
        fail(
            f"a long table must have a column of label names; got {enumerate_names(rest)}.",
            hint=f"{option('label_column')} names it",
        )
    if reading.score_column is not None:
        return LongLayout(id_column, label_column, reading.score_column, has_ids)
    if "score" in rest and label_column != "score":
        return LongLayout(id_column, label_column, "score", has_ids)
    others = [name for name in rest if name != label_column]
    if others:
        # Labels without scores are hard: not to be concluded from a misnamed column.
        fail(
            "a long table must have a column 'score', or nothing but ids and labels; got"
            f" {enumerate_names(others)}.",
            hint=f"{option('score_column')} names it",
        )
    return LongLayout(id_column, label_column, None, has_ids)
