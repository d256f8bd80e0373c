"""Kernels from tables: of similarities or costs, such as people rate them, or of attributes."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import detached, is_frame
from wassemble._checks import as_float_array, check_flag, check_nonnegative, fail, option
from wassemble.kernels.base import Kernel
from wassemble.kernels.builders.auto_epsilon import Epsilon, choose_epsilon
from wassemble.kernels.builders.cost import PairCosts, from_cost
from wassemble.kernels.builders.spaces import note_labels
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_names
from wassemble.kernels.places import entry_at, named_labels
from wassemble.kernels.sparse import SparseKernel
from wassemble.labels import LabelSpace, enumerate_names


def from_ratings(
    ratings: Any,
    source: Names | None = None,
    target: Names | None = None,
    *,
    symmetric: bool = False,
) -> LabelledKernel:
    """K = the ratings divided by the largest of them; sparse from a mapping, else dense.

    Parameters
    ----------
    ratings : array of shape (n_source, n_target), mapping or data frame
        How similar two labels are, at least 0. A mapping is of (source, target) to number;
        pairs that it does not have are not joined, not even of equal names. A data frame is
        read by name: rows are named in its index (pandas) or in a column of text.
    source : LabelSpace or iterable of str
        May be left out with a data frame, which must have exactly these names.
    target : LabelSpace or iterable of str, optional
        ``source`` if not given; the columns of a data frame.
    symmetric : bool
        Declares that the ratings are the same both ways (checked).

    Examples
    --------
    >>> rated = {("sedan", "car"): 5, ("coupe", "car"): 4, ("coupe", "sports"): 3}
    >>> from_ratings(rated, ["sedan", "coupe"], ["car", "sports"]).to_dense()
    array([[1. , 0. ],
           [0.8, 0.6]])
    """
    symmetric = check_flag(symmetric, "symmetric")
    ratings, source, target = read_names(ratings, "ratings", source, target)
    kernel: Kernel
    if isinstance(ratings, Mapping):
        pairs = _read_pairs(ratings, "ratings", source, target)
        largest = float(pairs.costs.max())
        matrix = sp.csr_array((pairs.costs, (pairs.rows, pairs.columns)), shape=pairs.shape)
    else:
        table = _read_table(ratings, "ratings", source, target)
        largest = float(table.max())
    if largest == 0:
        fail("some pair of labels must have a rating above 0; got none.")
    with named_labels(source, target):
        if isinstance(ratings, Mapping):
            kernel = SparseKernel(matrix / largest, symmetric=symmetric)
        else:
            kernel = DenseKernel(table / largest, symmetric=symmetric)
    return LabelledKernel(kernel, source, target, f"ratings, divided by {largest:g}")


def from_cost_table(
    cost: Any,
    source: Names | None = None,
    target: Names | None = None,
    *,
    epsilon: Epsilon = "auto",
    symmetric: bool = False,
) -> LabelledKernel:
    """K = exp(-cost / epsilon) from a table of costs.

    Parameters
    ----------
    cost : array of shape (n_source, n_target), mapping or data frame
        Dissimilarities, at least 0; infinity for pairs that must never be joined. A mapping
        is of (source, target) to number; pairs that it does not have are never joined. A data
        frame is read by name: rows are named in its index (pandas) or in a column of text.
    epsilon : float, "auto" or AutoEpsilon
        Entropic regularisation. "auto" gives the median label 3 effective neighbours.
    source, target, symmetric
        As in `kernels.from_ratings`, and so is the kernel.

    Examples
    --------
    >>> kernel = from_cost_table([[0, 1], [2, 0]], ["cat", "dog"], epsilon=1.0)
    >>> kernel.to_dense().round(3)
    array([[1.   , 0.368],
           [0.135, 1.   ]])
    >>> kernel.origin
    'table of costs, epsilon 1'
    """
    symmetric = check_flag(symmetric, "symmetric")
    cost, source, target = read_names(cost, "cost", source, target)
    kernel: Kernel
    if isinstance(cost, Mapping):
        pairs = _read_pairs(cost, "cost", source, target, infinite=True)
        made, words = pairs.to_kernel(epsilon, source, target, symmetric=False)
        with named_labels(source, target):  # declared and checked here, not brought about
            kernel = SparseKernel(made.to_sparse(), symmetric=symmetric)
    else:
        table = _read_table(cost, "cost", source, target, infinite=True)
        value, words = choose_epsilon(epsilon, table.__getitem__, len(table))
        with named_labels(source, target):
            kernel = from_cost(table, value, symmetric=symmetric)
    return LabelledKernel(kernel, source, target, f"table of costs, {words}")


def from_attributes(
    table: Any, attributes: Names | None = None, targets: Names | None = None
) -> LabelledKernel:
    """K = the table with each column divided by its sum (paper, section 6.1).

    So the attributes of each target label sum to 1, and a label with many attributes has
    no advantage.

    Parameters
    ----------
    table : array of shape (n_attributes, n_targets), or data frame
        At least 0: presence, or strength, of each attribute in each target label. A data
        frame is read by name: attributes are named in its index (pandas) or in a column of
        text.
    attributes : LabelSpace or iterable of str
        Names of the rows: the models' labels.
    targets : LabelSpace or iterable of str
        Names of the columns. Both may be left out with a data frame, which must have exactly
        these names.

    Examples
    --------
    >>> kernel = from_attributes(
    ...     [[1, 0], [1, 1]], ["stripes", "hooves"], ["zebra", "horse"]
    ... )
    >>> kernel.to_dense()
    array([[0.5, 0. ],
           [0.5, 1. ]])
    """
    if not is_frame(table) and targets is None:
        fail("`targets` must name the columns of the table; got no names.")
    table, source, target = read_names(table, "table", attributes, targets)
    values = _read_table(table, "table", source, target)
    totals = values.sum(axis=0, dtype=np.float64)
    notes = note_labels(target, totals == 0, "without any attribute")
    notes += note_labels(source, (values == 0).all(axis=1), "that no target label has")
    kernel = DenseKernel(values / np.where(totals > 0, totals, 1))
    return LabelledKernel(
        kernel, source, target, "attributes, each column divided by its sum", notes
    )


def _read_table(
    value: Any, name: str, source: LabelSpace, target: LabelSpace, *, infinite: bool = False
) -> np.ndarray:
    """``value`` as an array of shape (n_source, n_target) without negative entries and nan."""
    table = detached(as_float_array(value, name))
    expected = (len(source), len(target))
    if table.shape != expected:
        fail(
            f"{option(name)} must have shape {expected}, one row for each source label and one"
            f" column for each target label; got {table.shape}."
        )
    with named_labels(source, target):
        check_nonnegative(table, name, entry_at, infinite=infinite)
    return table.astype(np.float32) if table.dtype == np.float16 else table


def _read_pairs(
    value: Mapping[Any, Any],
    name: str,
    source: LabelSpace,
    target: LabelSpace,
    *,
    infinite: bool = False,
) -> PairCosts:
    """The numbers of a mapping from pairs of names; infinite ones, if allowed, are left out."""
    if not value:
        fail(f"{option(name)} must have at least one pair of labels; got none.")
    for pair in value:
        if not isinstance(pair, tuple) or len(pair) != 2:
            fail(
                f"the keys of {option(name)} must be pairs (source, target) of names; got {pair!r}."
            )
    for side, space, k in (("source", source, 0), ("target", target, 1)):
        strange = [str(pair[k]) for pair in value if pair[k] not in space]
        if strange:
            fail(
                f"the keys of {option(name)} must be pairs of known labels; got the {side} labels"
                f" {enumerate_names(dict.fromkeys(strange))}."
            )
    numbers = []
    for (first, second), number in value.items():
        is_number = isinstance(number, int | float | np.number) and not isinstance(number, bool)
        if not is_number or not number >= 0 or (math.isinf(number) and not infinite):
            fail(
                f"{option(name)} must be a {'' if infinite else 'finite '}number of at least 0; got"
                f" {number!r} at source label {first!r}, target label {second!r}."
            )
        numbers.append(float(number))
    rows = source.places(first for first, _ in value)
    columns = target.places(second for _, second in value)
    costs = np.array(numbers)
    kept = np.isfinite(costs)
    return PairCosts(rows[kept], columns[kept], costs[kept], (len(source), len(target)))
