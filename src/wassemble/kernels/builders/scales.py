"""Kernels between scales: grades that some cut finer than others, joined by where they lie."""

import numpy as np

from wassemble._checks import fail, option_or
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.named.labelled import LabelledKernel, Names
from wassemble.labels import LabelSpace, are_numbers, at_numbers, enumerate_names

# Grades that a note names, at most.
_N_SHOWN = 7


def from_scales(source: Names, target: Names | None = None) -> LabelledKernel:
    """How near grades of two scales lie to each other, whatever their names.

    A grade is joined to its neighbours on the other scale, in proportion to nearness: fully at its
    own position, not at all beyond the next grade of the coarser scale. On the way to a coarser
    scale this keeps the mean of each histogram. Grades beyond the end of the target are joined to
    that end.

    Parameters
    ----------
    source, target : list of str, or LabelSpace
        Grades, at least two each. Scales that have positions lie on one line; one without goes
        from end to end of the other. Its grades lie where numbers lie, if all are numbers, in
        whichever order the source has them; others are in order, from the lowest to the highest,
        equally spaced.

    Examples
    --------
    >>> from_scales(["fail", "pass"], ["0", "1", "2", "3"]).to_dense().round(2)
    array([[1.  , 0.67, 0.33, 0.  ],
           [0.  , 0.33, 0.67, 1.  ]])
    """
    source = LabelSpace(source)
    goal = source if target is None else check_ascent(LabelSpace(target))
    kernel = join_positions(_locate(source, goal), _locate(goal, source))
    return LabelledKernel(DenseKernel(kernel), source, goal, "scales", _tell_order(source))


def check_ascent(target: LabelSpace) -> LabelSpace:
    """The target of scales; refuse numbers in another order, for either may be meant."""
    if target.positions is None and are_numbers(target) and not _ascends(target):
        fail(
            "a target scale of numbers must go from the lowest to the highest; got"
            f" {enumerate_names(target)}.",
            hint=option_or(
                "LabelSpace(names, positions=...) says where each lies",
                target="FILE, a table with the columns label and position, says where each lies",
            ),
        )
    return target


def join_positions(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """How near positions on two lines are, each measured by the gaps of the coarser one there.

    A source beyond the last target is joined to it; of targets beyond the last source, the source
    says nothing.
    """
    is_within = (target >= source.min()) & (target <= source.max())
    return np.maximum(_share(source, target) * is_within, _share(target, source).T)


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
    even = np.linspace(*ends, len(space))
    return _spread(np.array(at_numbers(space).positions), even) if are_numbers(space) else even


def _spread(numbers: np.ndarray, even: np.ndarray) -> np.ndarray:
    """Numbers moved between the ends of places in equal steps: to these, if theirs are equal."""
    placed = np.interp(numbers, [numbers.min(), numbers.max()], even[[0, -1]])
    in_turn = even[np.argsort(np.argsort(numbers))]
    # What lies at one place but for rounding must not be joined to a neighbour.
    is_even = np.abs(placed - in_turn).max() <= 1e-9 * (even[-1] - even[0])
    return in_turn if is_even else placed


def _tell_order(space: LabelSpace) -> list[str]:
    """The order that a scale is taken to have, where neither positions nor numbers tell it."""
    if space.positions is not None or (are_numbers(space) and _ascends(space)):
        return []
    names = sorted(space, key=float) if are_numbers(space) else list(space)
    if len(names) > _N_SHOWN:
        names = [*names[: _N_SHOWN - 2], "...", names[-1]]
    return [" < ".join(names)]


def _ascends(numbers: LabelSpace) -> bool:
    return sorted(numbers, key=float) == list(numbers)
