"""Kernels from labels that occur together."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import detached, is_frame
from wassemble._checks import as_float_array, check_nonnegative, check_nonnegative_number, fail
from wassemble.inputs.formats.named_tables import read_named_table
from wassemble.kernels.base import Kernel
from wassemble.kernels.builders.spaces import note_labels
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_spaces
from wassemble.kernels.sparse import SparseKernel
from wassemble.labels import LabelSpace


def from_cooccurrence(
    labels_matrix: Any, names: Names | None = None, *, smoothing: float = 1.0
) -> LabelledKernel:
    """K_ij = how often label j is there when label i is, with 1 for i = j.

    With n_i the occurrences of label i, n_ij those in samples that have label j too, and
    p_j the share of samples that have label j::

        K_ij = (n_ij + smoothing * p_j) / (n_i + smoothing)

    so that a label seen a few times only is taken to be no more than usual with any other.

    Parameters
    ----------
    labels_matrix : array or scipy.sparse matrix of shape (n_samples, n_labels), or data frame
        0/1, or how often each label occurs in each sample. A data frame is read by name;
        samples are named in its index (pandas) or in a column of text.
    names : LabelSpace or iterable of str
        Names of the columns. May be left out with a data frame, which must have exactly these.
    smoothing : float
        Samples' worth of the overall shares added to each label; 0 adds nothing.

    Returns
    -------
    kernel : LabelledKernel
        Sparse if the matrix is and ``smoothing`` is 0, else dense. Not symmetric: a rare
        label may imply a frequent one.

    Examples
    --------
    >>> seen = [[1, 1], [1, 0], [1, 0], [1, 1]]  # person, dog
    >>> from_cooccurrence(seen, ["person", "dog"], smoothing=0.0).to_dense()
    array([[1. , 0.5],
           [1. , 1. ]])
    """
    smoothing = check_nonnegative_number(smoothing, "smoothing")
    if is_frame(labels_matrix):
        table = read_named_table(labels_matrix, "labels_matrix")
        space = table.columns if names is None else read_spaces(names, None)[0]
        labels_matrix = table.ordered(table.rows, space, titles=("sample", "label"))
    elif names is None:
        fail("`names` must name the columns of the matrix; got no names.")
    else:
        space, _ = read_spaces(names, None)
    counts = _read_counts(labels_matrix, space)
    totals = np.asarray(counts.sum(axis=0))
    present = (counts > 0).astype(np.float64)
    joint = counts.T @ present
    divisor = np.where(totals + smoothing > 0, totals + smoothing, 1)
    kernel: Kernel
    if sp.issparse(joint) and smoothing == 0:
        matrix = sp.csr_array(joint)
        matrix.data /= np.repeat(divisor, np.diff(matrix.indptr))
        kernel = SparseKernel(matrix + sp.diags_array((totals == 0).astype(float)))
    else:
        pairs = joint.toarray() if sp.issparse(joint) else joint
        shares = (pairs + smoothing * np.asarray(present.mean(axis=0))) / divisor[:, None]
        np.fill_diagonal(shares, 1)
        kernel = DenseKernel(shares)
    origin = f"co-occurrence in {counts.shape[0]:,} samples, smoothing {smoothing:g}"
    notes = note_labels(space, totals == 0, "never seen")
    return LabelledKernel(kernel, space, space, origin, notes)


def _read_counts(value: Any, space: LabelSpace) -> Any:
    """The matrix in float64, sparse if it was, without negative entries and nan."""
    if sp.issparse(value):
        counts = sp.csr_array(value)
        counts.data = entries = as_float_array(counts.data, "labels_matrix")
    else:
        counts = entries = detached(as_float_array(value, "labels_matrix"))
    if counts.ndim != 2 or counts.shape[1] != len(space) or not counts.shape[0]:
        fail(
            f"`labels_matrix` must have shape (n_samples, {len(space)}), one column for each"
            f" name; got {tuple(counts.shape)}."
        )

    def place(*index: int) -> str:
        if sp.issparse(counts):
            return f"label {space[counts.indices[index[0]]]!r}"
        return f"sample {index[0]}, label {space[index[1]]!r}"

    check_nonnegative(entries, "labels_matrix", place)
    return counts.astype(np.float64)
