"""Models with names: read, put on the same samples, and doubted where they look odd."""

import os
import warnings
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import fail
from wassemble.ensemble.account import FusionAccount, tell_ends
from wassemble.ensemble.label_overlap import check_labels
from wassemble.errors import ConvergenceWarning, InputWarning, option
from wassemble.inputs import Kind, Predictions, predictions_from_frame
from wassemble.inputs.predictions.overlap import check_samples, count_shared, refuse_transposed
from wassemble.inputs.predictions.value import have_numbers
from wassemble.inputs.reading import Reading
from wassemble.labels import LabelSpace, enumerate_names


def read_models(
    models: Any,
    kind: Kind | None = None,
    *,
    by_row: bool = False,
    normalize: bool = False,
    id_column: str | Mapping[str, str] | None = None,
) -> tuple[list[Predictions], Any]:
    """Models with names as Predictions, and the first data frame among them.

    A dict names them; a list holds Predictions, which have names, or data frames, which are
    called "model 1", "model 2" and so on.
    """
    reading = Reading(kind=kind, by_row=by_row, normalize=normalize)
    named = name_models(models)
    if not named:
        fail("there must be at least one model; got none.")
    frame = None
    predictions = []
    columns = read_id_columns(id_column, [name for name, _ in named])
    for name, given in named:
        if isinstance(given, Predictions):
            if name in columns:
                fail(f"`id_column` must go with data frames; {name!r} is Predictions, with ids.")
            told = given if given.model == name else given.replace(model=name)
            predictions.append(told.normalized() if normalize else told)
        else:
            predictions.append(
                predictions_from_frame(given, name, reading, id_column=columns.get(name))
            )
            frame = given if frame is None else frame
    return predictions, frame


def read_id_columns(
    id_column: str | Mapping[str, str] | None, models: Sequence[str]
) -> dict[str, str]:
    """The column of sample ids of each model for which it was named."""
    if id_column is None:
        return {}
    if not isinstance(id_column, Mapping):
        return dict.fromkeys(models, id_column)
    named = {str(model): column for model, column in id_column.items()}
    strange = [model for model in named if model not in models]
    if strange:
        fail(
            f"`id_column` must be of the models {enumerate_names(models)}; got"
            f" {enumerate_names(strange)}."
        )
    return named


def are_named(predictions: Any) -> bool:
    """Whether predictions come with the names of their labels."""
    some = predictions if isinstance(predictions, list | tuple) else [predictions]
    return isinstance(predictions, Mapping) or any(
        isinstance(each, Predictions) or is_frame(each) for each in some
    )


def refuse_larger(models: Any) -> Any:
    """The models, those of a generator in a list; refuse what is read or computed in pieces."""
    if isinstance(models, Iterator):
        models = list(models)
    if isinstance(models, Mapping):
        each = list(models.values())
    else:
        each = list(models) if isinstance(models, list | tuple) else [models]
    if isinstance(models, list | tuple | Mapping) and not each:
        fail("there must be at least one model; got none.", hint="one array or table per model")
    for given in each:
        if isinstance(given, str | os.PathLike):
            _refuse_pieces(f"a path, {os.fspath(given)!r}")
        if type(given).__module__.startswith("dask."):
            _refuse_pieces(f"a Dask {type(given).__name__}")
    return models


def _refuse_pieces(got: str) -> NoReturn:
    fail(
        f"models must be arrays or tables in memory; got {got}.",
        hint="`wassemble.scale.fuse_lazily` takes Dask arrays, Dask data frames and folders of"
        " part files; `read_predictions(path)` reads a file",
    )


def read_spaces(
    models: Any, kind: Kind | None, *, by_row: bool = False, normalize: bool = False
) -> tuple[tuple[tuple[str, LabelSpace], ...], Kind]:
    """Each model's name and labels, and what all models are.

    Of tables and predictions, of open files, or of a dict of label spaces.
    """
    if isinstance(models, Mapping) and all(isinstance(g, LabelSpace) for g in models.values()):
        spaces = tuple((str(name), labels) for name, labels in models.items())
        if kind is None and not normalize:
            fail("`kind` must be given where models are known by their labels alone; got none.")
        return spaces, kind or "multiclass"
    is_open = isinstance(models, list | tuple) and all(
        hasattr(given, "labels") and hasattr(given, "model") for given in models
    )
    each = models
    if not is_open:
        each, _ = read_models(models, kind, by_row=by_row, normalize=normalize)
    if not each:
        return (), kind or "multiclass"
    return tuple((given.model, given.labels) for given in each), common_kind(each, kind)[0]


def name_models(models: Any) -> list[tuple[str, Any]]:
    """Each model with its name; see `read_models`."""
    if isinstance(models, Mapping):
        return [(str(name), given) for name, given in models.items()]
    if isinstance(models, Predictions) or is_frame(models) or not isinstance(models, Iterable):
        fail(
            f"models must come in a dict or a list; got one {type(models).__name__}.",
            hint='{"my model": table, ...} names them',
        )
    each = list(models)
    if all(isinstance(given, Predictions) for given in each):
        return [(given.model, given) for given in each]
    if not all(is_frame(given) for given in each):
        kinds = enumerate_names(dict.fromkeys(type(given).__name__ for given in each))
        fail(
            f"models in a list must be all Predictions or all data frames; got {kinds}.",
            hint='{"my model": table, ...} names tables and folders; Predictions(model, samples,'
            " labels, scores) names the labels of an array",
        )
    return [(f"model {place}", given) for place, given in enumerate(each, start=1)]


def common_kind(predictions: Sequence[Any], kind: Kind | None) -> tuple[Kind, bool]:
    """What all models are, and whether that was detected; predictions or open files."""
    if kind is not None:
        return kind, False
    kinds = {p.model: p.kind for p in predictions}
    if len(set(kinds.values())) > 1:
        if all(hasattr(p, "samples") for p in predictions):
            refuse_transposed(predictions)
        _refuse_mixed(predictions)
    return predictions[0].kind, all(p.kind_is_detected for p in predictions)


def _refuse_mixed(models: Sequence[Any]) -> NoReturn:
    """Say why each model is taken for what it is, and what would make them alike."""
    misfits = [model.misfit for model in models]
    each = ", ".join(
        f"{model.model} {model.kind}" + (f" ({misfit})" if misfit else "")
        for model, misfit in zip(models, misfits, strict=True)
    )
    any_mass = f"{option('kind', 'multilabel')} takes rows of any mass"
    shares = (
        f"{option('normalize', True)} divides each row by its sum, if labels exclude each other"
    )
    known = [misfit for misfit in misfits if misfit is not None]
    is_rounding = bool(known) and all(misfit.is_near for misfit in known)
    ways = [shares, any_mass] if is_rounding else [any_mass, shares]
    fail(
        f"models must be all multi-class or all multi-label; got {each}.",
        hint="; ".join(ways),
    )


def align_samples(
    predictions: Sequence[Predictions], samples: Literal["all", "common"] = "all"
) -> list[Predictions]:
    """The same samples in the same order for every model; a row of nan where one has none."""
    first = predictions[0].samples
    if all(np.array_equal(p.samples, first) for p in predictions):
        return list(predictions)
    ids = [_comparable(p.samples, predictions) for p in predictions]
    if samples == "all":
        wanted = list(dict.fromkeys(sample for each in ids for sample in each))
    else:
        common = set(ids[0]).intersection(*ids[1:])
        wanted = [sample for sample in ids[0] if sample in common]
    names = np.empty(len(wanted), dtype=np.int64 if have_numbers(predictions) else object)
    names[:] = wanted
    aligned = []
    for given, each in zip(predictions, ids, strict=True):
        place = {sample: row for row, sample in enumerate(each)}
        rows = np.array([place.get(sample, -1) for sample in wanted], dtype=np.int64)
        scores = np.full((len(wanted), len(given.labels)), np.nan, dtype=given.scores.dtype)
        scores[rows >= 0] = given.scores[rows[rows >= 0]]
        aligned.append(given.replace(samples=names, scores=scores))
    return aligned


def check_inputs(
    account: FusionAccount,
    models: Sequence[Any],
    kernel: Any,
    *,
    samples: str,
    allow_disjoint: bool,
) -> None:
    """Note in the account how models were read, and what looks as if it was not meant.

    Models, predictions or open files, that have no sample in common are an error, and so
    are target labels that no model has, unless a kernel leads to them.
    """
    account.read_from([model.origin for model in models])
    account.warnings += check_samples(models, allow_disjoint=allow_disjoint)
    shared = count_shared(models).counts if samples == "common" else None
    if shared and not shared[(1 << len(models)) - 1]:
        fail(
            f"{option('samples', 'common')} must leave some sample; got none that all models have.",
            hint=f"{option('samples', 'all')} fuses every sample that some model has",
        )
    account.warnings += check_labels(account.plan, models, kernel)


def _comparable(samples: np.ndarray, predictions: Sequence[Predictions]) -> list[Any]:
    """Ids as a list: whole numbers if all models have such, else texts."""
    if have_numbers(predictions):
        return samples.tolist()
    return [str(sample) for sample in samples.tolist()]


def warn_of_ends(ends: Counter[int], fine: Container[int], what: str = "samples") -> None:
    """Warn of samples that nobody answered, or that ended otherwise than ``fine``."""
    for message in tell_ends(ends, fine, what):
        warnings.warn(f"{message}.", ConvergenceWarning, stacklevel=4)


def warn_of_inputs(warnings_: Sequence[str], stacklevel: int = 3) -> None:
    """Warn of tables that look as if they meant something else."""
    for message in warnings_:
        warnings.warn(f"{message}.", InputWarning, stacklevel=stacklevel)
