"""Kernels between scales: grades that some cut finer than others, joined by where they lie."""

import numpy as np

from wassemble._checks import fail
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.named.labelled import LabelledKernel, Names
from wassemble.labels import LabelSpace, enumerate_names


def from_scales(source: Names, target: Names | None = None) -> LabelledKernel:
    """How near grades of two scales lie to each other, whatever their names.

    A grade is joined to its neighbours on the other scale, in proportion to nearness: fully at its
    own position, not at all beyond the next grade of the coarser scale. On the way to a coarser
    scale this keeps the mean of each histogram.

    Parameters
    ----------
    source, target : list of str, or LabelSpace
        Grades, at least two each. Scales that have positions lie on one line; one without is in
        order, from the lowest to the highest, equally spaced between the ends of the other.

    Examples
    --------
    >>> from_scales(["fail", "pass"], ["0", "1", "2", "3"]).to_dense().round(2)
    array([[1.  , 0.67, 0.33, 0.  ],
           [0.  , 0.33, 0.67, 1.  ]])
    """
    source, target = LabelSpace(source), LabelSpace(source if target is None else target)
    kernel = join_positions(_locate(source, target), _locate(target, source))
    return LabelledKernel(DenseKernel(kernel), source, target, "scales")


def join_positions(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """How near positions on two lines are, each measured by the gaps of the coarser one there."""
    return np.maximum(_share(source, target), _share(target, source).T)


def _share(own: np.ndarray, among: np.ndarray) -> np.ndarray:
    """What each of ``own`` has of those ``among`` which it lies, in proportion to nearness."""
    order = np.argsort(own)
    return np.stack([np.interp(among, own[order], hat[order]) for hat in np.eye(len(own))])


def _locate(space: LabelSpace, other: LabelSpace) -> np.ndarray:
    """Positions of a scale, its own or between the ends of the other."""
    if len(space) < 2:
        fail(f"a scale must have at least two grades; got {enumerate_names(space)}.")
    if space.positions is not None:
        return np.array(space.positions)
    ends = (0.0, 1.0) if other.positions is None else (min(other.positions), max(other.positions))
    return np.linspace(*ends, len(space))
