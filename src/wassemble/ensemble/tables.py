"""`fuse_tables`: predictions with names, over label sets that may differ."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import fail
from wassemble.ensemble.account import NO_MASS_REMEDY, SILENCE, FusionAccount
from wassemble.ensemble.label_overlap import check_labels
from wassemble.ensemble.plan import NO_ANSWER, FusionPlan, Options
from wassemble.errors import ConvergenceWarning, InputWarning
from wassemble.inputs import Kind, Predictions, frame_from_predictions, predictions_from_frame
from wassemble.inputs.by_row import common_row_ids
from wassemble.inputs.origin import Origin
from wassemble.inputs.overlap import check_samples, refuse_transposed
from wassemble.inputs.predictions import have_numbers
from wassemble.inputs.sources import check_kind
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.solvers import Status

__all__ = [
    "TableFusion",
    "align_samples",
    "check_inputs",
    "common_kind",
    "fuse_tables",
    "name_models",
    "read_models",
    "read_options",
    "warn_of",
    "warn_of_inputs",
]


@dataclass(frozen=True, eq=False)
class TableFusion:
    """A consensus with names, and all that led to it.

    Attributes
    ----------
    consensus : Predictions
        Over the target labels; a row of nan where no model answered.
    statuses : array of shape (n_samples,)
        How each sample ended, codes of `Status`; -1 where no model answered.
    account : FusionAccount
        What was matched, what was missing, which rules filled in.
    members : list of Predictions
        The models on the samples of the consensus, in its order.
    """

    consensus: Predictions
    statuses: np.ndarray
    account: FusionAccount
    plan: FusionPlan
    members: list[Predictions]
    frame: Any = None  # the first data frame that was given

    @property
    def report(self) -> str:
        """The account in words."""
        return "\n".join(self.account.lines())

    def to_frame(self, like: Any = None) -> Any:
        """The consensus as a data frame of the library of ``like``, or of the first one given."""
        like = self.frame if like is None else like
        if like is None:
            fail("there must be a data frame to be like; the models were none.")
        return frame_from_predictions(self.consensus, like)

    def row(self, sample: Any) -> int:
        """Place of a sample, by its id."""
        samples = [str(found) for found in self.consensus.samples.tolist()]
        if str(sample) not in samples:
            shown = enumerate_names(samples[:4])
            fail(f"the sample must be one of those fused, such as {shown}; got {sample!r}.")
        return samples.index(str(sample))

    def __repr__(self) -> str:
        return (
            f"TableFusion({len(self.members)} models, {self.consensus.n_samples:,} samples,"
            f" {len(self.plan.target):,} target labels)"
        )


def fuse_tables(
    models: Mapping[str, Any] | Sequence[Any],
    *,
    kernel: Any = None,
    target: LabelSpace | Iterable[str] | None = None,
    weights: Any = None,
    kind: Kind | None = None,
    aliases: Any = None,
    fold: bool = False,
    other: str | Mapping[str, str] | None = None,
    samples: Literal["all", "common"] = "all",
    allow_disjoint: bool = False,
    by_row: bool = False,
    normalize: bool = False,
    **options: Any,
) -> TableFusion:
    """Fuse models by the names of their samples and labels.

    Parameters
    ----------
    models : dict of name to data frame or Predictions, or list of either
        Data frames (pandas, polars, pyarrow ...) have a column of sample ids and one
        column per label, or are long: ``sample``, ``label``, ``score``. An empty score was
        not reported; it is not 0. Data frames of a list are called "model 1", "model 2" ...
    kernel : optional
        From each model's labels to the target labels: one `LabelledKernel` for all, a dict
        or list with one per model, an array, or a function of ``(source, target)`` label
        spaces. A data frame is read by name, as `LabelledKernel` does. Without a kernel,
        labels go where their names go.
    target : list of str, optional
        The labels of the consensus; the union of the models' labels if not given.
    weights : dict of model name to weight, array, or pandas.Series by model name, optional
        On the simplex; uniform if not given. A data frame has weights per model (row) and
        target label (column), by name.
    kind : {"multiclass", "multilabel"}, optional
        Detected if not given: histograms if every row sums to 1.
    aliases : dict of str to str, data frame or Aliases, optional
        Target labels that names stand for, whatever their spelling; a list or a dict of
        weights where a name stands for several. `Aliases`, or a data frame with the columns
        model, source and target, says it for each model; `read_aliases` reads a file. Several
        labels of a model that stand for one are summed (histograms), or the largest is taken
        (multi-label scores).
    fold : bool
        Match names without regard to case, underscores, hyphens and repeated spaces.
    other : str, or dict of model name to str, optional
        The label by which models say "none of the labels I declare": its mass may go to every
        target label that the model does not declare. Mass on any other label that leads to no
        target label weakens the model's say on that sample by as much.
    samples : {"all", "common"}
        Samples that any model has, or those that all have. A model that did not answer a
        sample has no vote on it.
    allow_disjoint : bool
        Models may have no sample, or few, in common; an error and a warning otherwise.
    by_row : bool
        Rows are matched by their order, for tables without sample ids. Models must have the
        same number of rows, and the same ids in the same order if they have any.
    normalize : bool
        Divide each row by its sum, which makes histograms of counts, of percentages and of
        probabilities that were rounded or cut off.
    mass : Balanced or Unbalanced, optional
        The paper's ``Unbalanced(2, epsilon=0.3)`` if not given, in which no model can rule a
        label out by itself; `Balanced` with ``debias``. A consensus of histograms is a
        histogram: raised to the inverse of the exponent by which Algorithm 2 flattens it, and
        divided by its mass.
    rule : callable
        `solve_barycenter`, or a mean such as `arithmetic_mean`, taken after each model was
        carried to the target labels by its kernel alone.
    leftover : float
        Share of its weight that a model keeps on target labels that it cannot speak of. It can
        speak of those that it has by name or by alias, and of those that an explicit kernel
        reaches; a kernel from mistakes reaches more, and there the leftover counts. Where
        nothing of a model can arrive, it has no say at all. 1 turns label-aware weights off.
    unobserved : {"spread", "renormalize", "drop"}
        What is made of the mass that a histogram does not report: spread over the labels
        not reported, reported scores divided by their sum, or left out.
    hard_confidence : float
        Score of a label that was named without one.
    max_sweeps, tolerance, debias, n_top, n_threads
        As in `solve_barycenter`.

    Returns
    -------
    fusion : TableFusion

    Examples
    --------
    >>> cars = Predictions("cars", ["x"], ["sedan", "bicycle"], [[0.7, 0.3]])
    >>> bikes = Predictions("bikes", ["x"], ["car", "bicycle", "tandem"], [[0.4, 0.5, 0.1]])
    >>> fusion = fuse_tables([cars, bikes], aliases={"sedan": "car"})
    >>> fusion.consensus.labels.names
    ('car', 'bicycle', 'tandem')
    >>> fusion.consensus.scores.round(2)
    array([[0.52, 0.38, 0.1 ]])
    """
    predictions, frame = read_models(models, kind, by_row=by_row, normalize=normalize)
    if by_row:
        ids = common_row_ids(predictions)
        predictions = [given._with(samples=ids) for given in predictions]
    found, detected = common_kind(predictions, kind)
    plan = FusionPlan(
        [(p.model, p.labels) for p in predictions],
        found,
        target=None if target is None else _as_space(target),
        kernel=kernel,
        weights=weights,
        aliases=aliases,
        fold=fold,
        other=other,
        options=read_options(options),
    )
    account = FusionAccount.of(plan, kind_is_detected=detected)
    check_inputs(account, predictions, kernel, allow_disjoint=allow_disjoint)
    members = align_samples(predictions, samples)
    chunk = plan.fuse(members)
    account.add(members, chunk)
    account.note_silent()
    consensus = Predictions("consensus", members[0].samples, plan.target, chunk.scores, kind=found)
    consensus.origin = Origin(id_column=account.id_column)
    warn_of(account)
    return TableFusion(consensus, chunk.statuses, account, plan, members, frame)


def read_models(
    models: Any, kind: Kind | None = None, *, by_row: bool = False, normalize: bool = False
) -> tuple[list[Predictions], Any]:
    """Models with names as Predictions, and the first data frame among them.

    A dict names them; a list holds Predictions, which have names, or data frames, which are
    called "model 1", "model 2" and so on.
    """
    named = name_models(models)
    if not named:
        fail("there must be at least one model; got none.")
    frame = None
    found = []
    for name, given in named:
        if isinstance(given, Predictions):
            check_kind(kind, normalize=normalize)
            told = given if given.model == name else given._with(model=name)
            found.append(told.normalized() if normalize else told)
        else:
            found.append(
                predictions_from_frame(given, name, kind=kind, by_row=by_row, normalize=normalize)
            )
            frame = given if frame is None else frame
    return found, frame


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
            hint='{"my model": table, ...} names them, whatever they are',
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
        each = ", ".join(f"{model} {found}" for model, found in kinds.items())
        fail(
            f"models must be all multi-class or all multi-label; got {each}.",
            hint='kind="multilabel" takes rows of any mass',
        )
    return predictions[0].kind, all(p.kind_is_detected for p in predictions)


def _as_space(target: Iterable[str]) -> LabelSpace:
    return target if isinstance(target, LabelSpace) else LabelSpace(target)


def read_options(options: dict[str, Any]) -> Options:
    """The options of `fuse_tables`, each of a name that there is."""
    known = list(Options.__dataclass_fields__)
    for name in options:
        if name not in known:
            raise TypeError(
                f"fuse_tables() got an unexpected option {name!r}; it knows {', '.join(known)}."
            )
    return Options(**options)


def align_samples(
    predictions: Sequence[Predictions], samples: Literal["all", "common"] = "all"
) -> list[Predictions]:
    """The same samples in the same order for every model; a row of nan where one has none."""
    if samples not in ("all", "common"):
        fail(f'`samples` must be "all" or "common"; got {samples!r}.')
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
        aligned.append(given._with(samples=names, scores=scores))
    return aligned


def check_inputs(
    account: FusionAccount, models: Sequence[Any], kernel: Any, *, allow_disjoint: bool = False
) -> None:
    """Note in the account how models were read, and what looks as if it was not meant.

    Models, predictions or open files, that have no sample in common are an error, and so
    are target labels that no model has, unless a kernel leads to them.
    """
    account.read_from([model.origin for model in models])
    account.warnings += check_samples(models, allow_disjoint=allow_disjoint)
    if kernel is None:
        account.warnings += check_labels(account.plan)


def _comparable(samples: np.ndarray, predictions: Sequence[Predictions]) -> list[Any]:
    """Ids as a list: whole numbers if all models have such, else texts."""
    if have_numbers(predictions):
        return samples.tolist()
    return [str(sample) for sample in samples.tolist()]


def warn_of(account: FusionAccount) -> None:
    """Warn of what looks odd, and of samples that nobody answered or that did not end well."""
    warn_of_inputs(account.warnings, stacklevel=4)
    warn_of_ends(account.ends, account.fine_ends)


def warn_of_ends(ends: Counter[int], fine: Container[int]) -> None:
    """Warn of samples that ended otherwise than ``fine``, codes of `Status`."""
    for code, count in sorted(ends.items()):
        if code in fine:
            continue
        message = SILENCE if code == NO_ANSWER else Status(code).message
        if code == Status.NO_MASS:
            message += f"; {NO_MASS_REMEDY}"
        warnings.warn(
            f"{count:,} of {ends.total():,} samples: {message}.",
            ConvergenceWarning,
            stacklevel=4,
        )


def warn_of_inputs(warnings_: Sequence[str], stacklevel: int = 3) -> None:
    """Warn of tables that look as if they meant something else."""
    for message in warnings_:
        warnings.warn(f"{message}.", InputWarning, stacklevel=stacklevel)
