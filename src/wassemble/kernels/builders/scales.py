"""Kernels between scales: grades that some cut finer than others, joined by where they lie."""

from typing import Any

import numpy as np

from wassemble._checks import as_float_array, fail, option
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_spaces
from wassemble.labels import LabelSpace, enumerate_names


def from_scales(
    source: Names,
    target: Names | None = None,
    *,
    source_points: Any = None,
    target_points: Any = None,
) -> LabelledKernel:
    """How near grades of two scales lie to each other, whatever their names.

    A grade is joined to its neighbours on the other scale, in proportion to nearness: fully at its
    own point, not at all beyond the next grade of the coarser scale. On the way to a coarser scale
    this keeps the mean of each histogram.

    Parameters
    ----------
    source, target : list of str, or LabelSpace
        Grades, from the lowest to the highest, at least two each.
    source_points, target_points : array, optional
        Where grades lie on one line, increasing. Without, each scale is equally spaced, and the
        lowest and the highest grades of both mean the same.

    Examples
    --------
    >>> from_scales(["fail", "pass"], ["0", "1", "2", "3"]).to_dense().round(2)
    array([[1.  , 0.67, 0.33, 0.  ],
           [0.  , 0.33, 0.67, 1.  ]])
    """
    source, target = read_spaces(source, target)
    kernel = DenseKernel(
        join_points(_read_points(source, source_points), _read_points(target, target_points))
    )
    return LabelledKernel(kernel, source, target, "scales")


def join_points(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """How near points of two lines are, each measured by the gaps of the coarser one there."""
    ways = [
        np.stack([np.interp(to, own, hat) for hat in np.eye(len(own))])
        for own, to in ((source, target), (target, source))
    ]
    return np.maximum(ways[0], ways[1].T)


def _read_points(space: LabelSpace, points: Any) -> np.ndarray:
    if len(space) < 2:
        fail(f"a scale must have at least two grades; got {enumerate_names(space)}.")
    if points is None:
        return np.linspace(0, 1, len(space))
    array = np.asarray(as_float_array(points, "points"))
    if array.shape != (len(space),) or not (np.diff(array) > 0).all():
        fail(
            f"{option('points')} must be one for each of the {len(space)} grades, increasing; got"
            f" {array.tolist()}."
        )
    return array
