"""What is known of samples, by their ids: true labels and weights, in whatever form they come."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wassemble._arrays import is_frame, is_series
from wassemble._checks import as_float_array, fail, option
from wassemble.inputs.formats.layout import say_truth_column
from wassemble.inputs.predictions.frames import predictions_from_frame
from wassemble.inputs.predictions.value import Predictions
from wassemble.inputs.reading import Reading
from wassemble.labels import name_of, read_name

_HINT = (
    "a list or an array, such as `{name}.to_numpy()`, goes along with the samples of the first"
    " model; a dict, or a Series indexed by sample id, goes by ids"
)


def read_known(truth: Any, samples: np.ndarray) -> Any:
    """The truth as Predictions, as a table of 0 and 1, by sample id, or one value per sample.

    Values are label names, lists of them, or None where nobody knows.
    """
    if truth is None:
        fail(
            f"{option('truth')} must hold the true label of each sample, to learn from; got none.",
            hint='a list of names, or a dict of sample id to name, such as {"img1": "cat"}',
        )
    if is_frame(truth):
        truth = predictions_from_frame(truth, "truth", Reading(is_truth=True))
    if isinstance(truth, Predictions):
        check_truth(truth)
        return truth
    if is_series(truth):
        truth = _by_index(truth, samples, "truth")
    if isinstance(truth, Mapping):
        return {_id_text(sample): _read_value(value) for sample, value in truth.items()}
    if isinstance(truth, np.ndarray) and truth.ndim == 2 and truth.dtype.kind in "biuf":
        return np.asarray(as_float_array(truth, "truth"))
    if isinstance(truth, str) or not isinstance(truth, Iterable):
        fail(
            f"{option('truth')} must be a list of label names, or a dict of sample id to name; got"
            f" {truth!r:.60}."
        )
    return [_read_value(value) for value in truth]


def check_truth(truth: Predictions) -> None:
    """Refuse a table with a column for each label that holds something else than 0 and 1.

    So is one that says of every sample that it has the only label: names of one class, more likely.
    """
    if truth.is_hard:
        return
    scores = truth.scores
    wrong = np.argwhere(~np.isnan(scores) & (scores != 0) & (scores != 1))
    if len(wrong):
        row, place = wrong[0].tolist()
        name = truth.labels[place]
        fail(
            "the true labels must be names in one column, or 0 and 1 in a column for each label;"
            f" got {scores[row, place]:g} in the column {name!r} (sample"
            f" {truth.samples.tolist()[row]!r}).",
            hint=say_column(truth, name),
        )
    if len(truth.labels) == 1 and (scores == 1).any() and not (scores == 0).any():
        name = truth.labels[0]
        fail(
            "the true labels must be names in one column, or 0 and 1 in a column for each label;"
            f" got 1 for every sample in {name!r}, the only column.",
            hint=say_column(truth, name),
        )


def say_column(truth: Predictions, name: str) -> str:
    """How a user says that the column ``name`` holds the names of the true labels."""
    if truth.origin.file is None:
        return f"call the column 'label' if it is {name!r} that holds the names of labels"
    return f"{say_truth_column(name)} takes what is in that column as names of labels"


def read_known_weight(weight: Any, samples: np.ndarray) -> Any:
    """Weights of samples as an array; those of a Series are put in order by its index."""
    if not is_series(weight):
        return weight
    by_id = _by_index(weight, samples, "sample_weight")
    known = {_id_text(sample): value for sample, value in by_id.items()}
    ids = [str(sample) for sample in samples.tolist()]
    missing = [sample for sample in ids if sample not in known]
    if missing:
        fail(
            f"`sample_weight` must have a number for each sample; got none for {show_ids(missing)}."
        )
    return np.array([known[sample] for sample in ids])


def read_labels(value: Any) -> list[str]:
    """The names in one value of the truth."""
    return [value] if isinstance(value, str) else value or []


def list_names(known: Any) -> list[str]:
    """Names that occur in the truth, sorted; what `read_known` returned."""
    if isinstance(known, Predictions):
        return list(known.labels)
    if isinstance(known, np.ndarray):
        return []
    values = known.values() if isinstance(known, Mapping) else known
    return sorted({name for value in values for name in read_labels(value)})


def show_ids(ids: Iterable[Any]) -> str:
    """The first few ids, for a message."""
    some = list(ids)
    return ", ".join(map(repr, some[:3])) + (" ..." if len(some) > 3 else "")


def _by_index(series: Any, samples: np.ndarray, name: str) -> dict[Any, Any]:
    """A Series as a dict by its index, which must be the ids of samples."""
    index = series.index.tolist()
    own, there = {_id_text(each) for each in index}, {str(s) for s in samples.tolist()}
    if len(own) < len(index):
        fail(f"the index of {option(name)} must have every sample once; got some more than once.")
    is_counting = type(series.index).__name__ == "RangeIndex"
    # An index that counts says nothing of which sample is which, unless samples are counted too.
    fits = own == there if is_counting else (own <= there or own >= there)
    if not fits or (is_counting and samples.dtype.kind != "i"):
        what = "only counts" if is_counting else "has other ids"
        fail(
            f"the index of {option(name)} must hold the ids of the samples; it {what}:"
            f" {show_ids(index)}, and the samples are {show_ids(samples.tolist())}.",
            hint=_HINT.format(name=name),
        )
    return dict(zip(index, series.tolist(), strict=True))


def _id_text(sample: Any) -> str:
    return name_of(sample) or str(sample)


def _read_value(value: Any) -> str | list[str] | None:
    """A name, a list of names, or None where there is none."""
    if isinstance(value, str):
        return value
    # pandas has objects of its own for what is missing, none of them equal to itself.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, float | np.floating) and np.isnan(value):
        return None
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [read_name(each, f" in {option('truth')}") for each in value]
    return read_name(value, f" in {option('truth')}")
