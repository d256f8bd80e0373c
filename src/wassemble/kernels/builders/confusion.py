"""Kernels from a model's own mistakes on samples whose truth is known."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import check_flag, check_nonnegative_number, fail
from wassemble.inputs.predictions.truth import read_known
from wassemble.inputs.predictions.value import Predictions
from wassemble.kernels.builders.spaces import note_labels
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_spaces
from wassemble.labels import LabelSpace, Meanings, enumerate_names


def from_confusion(
    predictions: Predictions,
    truth: Any,
    *,
    target: Names,
    prior: float = 0.2,
    floor: float = 1e-4,
    aliases: Meanings | None = None,
    fold: bool = False,
    other: str | None = None,
) -> LabelledKernel:
    """K_ij = how much a model's label i turned out to mean target label j.

    The scores that the model gave its label i on samples whose truth is j are added up;
    ``prior`` is added where i is j by name; each row is divided by its sum; ``floor`` is
    added everywhere. The source labels are the model's, so that a model which calls
    Croatian "Serbian" is understood. Scores that were not reported count as 0, and samples
    on which the model abstained count for nothing.

    Parameters
    ----------
    predictions : Predictions
        What the model said, on samples that are not used for the result.
    truth : mapping of sample id to label name, pandas.Series by id, or sequence of label names
        A sequence goes along with the samples of ``predictions``, None where the truth is
        not known. Samples without truth are left out, and noted.
    target : LabelSpace or iterable of str
    prior : float
        At least 0: the score of a label to itself before anything was seen.
    floor : float
        At least 0: keeps labels reachable that were never met together.
    aliases, fold
        For the names that ``prior`` goes by, as in `kernels.from_names`.
    other : str, optional
        The source label that means "none of the others": ``prior`` goes to every target
        label that no other source label stands for.

    The kernel declares the target labels that the model has by name, not those that it
    reaches through its mistakes alone: see `LabelledKernel`.

    Examples
    --------
    >>> said = Predictions("tiny", [1, 2, 3], ["sr", "hr"], [[1, 0], [1, 0], [0.2, 0.8]])
    >>> kernel = from_confusion(
    ...     said, ["sr", "hr", "hr"], target=["sr", "hr"], prior=0.0, floor=0.0
    ... )
    >>> kernel.to_dense().round(3)
    array([[0.455, 0.545],
           [0.   , 1.   ]])
    """
    if not isinstance(predictions, Predictions):
        fail(f"`predictions` must be Predictions; got {type(predictions).__name__}.")
    prior = check_nonnegative_number(prior, "prior")
    floor = check_nonnegative_number(floor, "floor")
    source, goal = predictions.labels, read_spaces(target, None)[0]
    true_names, n_unused = _read_truth(predictions, truth)
    known = np.array([name is not None for name in true_names], dtype=bool)
    answers = _places(true_names, goal)
    scores = np.nan_to_num(predictions.scores[known].astype(np.float64), nan=0.0)
    sums = np.zeros((len(goal), len(source)))
    np.add.at(sums, answers, scores)
    table = np.ascontiguousarray(sums.T)
    matching = source.match(goal, aliases=aliases, fold=check_flag(fold, "fold"))
    if other is not None:
        matching = matching.with_complement(other)
    own = matching.to_sparse().tocoo()
    table[own.coords] += prior * own.data
    totals = table.sum(axis=1, keepdims=True)
    table = table / np.where(totals > 0, totals, 1) + floor
    silent = totals[:, 0] == 0
    notes = note_labels(source, silent, "never scored and without a target label of that name")
    if not known.all():
        notes.append(f"{(~known).sum():,} of {len(known):,} samples without truth left out")
    if n_unused:
        notes.append(f"truth of {n_unused:,} samples not used: {predictions.model!r} lacks them")
    answered = int((predictions.answered & known).sum())
    origin = (
        f"mistakes of {predictions.model!r} on {answered:,} samples, prior {prior:g},"
        f" floor {floor:g}"
    )
    return LabelledKernel(
        DenseKernel(table), source, goal, origin, notes, declared=matching.declared
    )


def _read_truth(predictions: Predictions, truth: Any) -> tuple[list[str | None], int]:
    """The truth of each sample of the predictions, and how many others there were."""
    if is_frame(truth) or getattr(truth, "ndim", 1) > 1:
        fail(f"`truth` must be a mapping or a list of names; got {type(truth).__name__}.")
    known = read_known(truth, predictions.samples)
    if isinstance(known, Mapping):
        samples = [str(sample) for sample in predictions.samples.tolist()]
        names = [known.get(sample) for sample in samples]
        n_unused = len(known.keys() - set(samples))
    else:
        names, n_unused = known, 0
        if len(names) != predictions.n_samples:
            fail(
                f"`truth` must have one name for each of the {predictions.n_samples:,} samples of"
                f" {predictions.model!r}; got {len(names):,}.",
                hint="a mapping from sample ids may know fewer, or more",
            )
    several = next((name for name in names if isinstance(name, list)), None)
    if several is not None:
        fail(f"`truth` must have one name for each sample; got {enumerate_names(several)} for one.")
    if all(name is None for name in names):
        fail(
            f"`truth` must have the label of some sample of {predictions.model!r}; got none.",
            hint=f"sample ids are such as {enumerate_names(map(str, predictions.samples[:3]))}",
        )
    return names, n_unused


def _places(names: list[str | None], target: LabelSpace) -> np.ndarray:
    known = [name for name in names if name is not None]
    strange = [name for name in dict.fromkeys(known) if name not in target]
    if strange:
        fail(
            f"the truth must be among the {len(target):,} target labels; got"
            f" {enumerate_names(map(str, strange))}."
        )
    return target.places(known)
