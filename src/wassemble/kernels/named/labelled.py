"""A kernel with the names of its labels, and where it comes from.

Names are matched here and nowhere below: solvers take the bare kernel that `align` gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any, final

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import fail
from wassemble._pictures import Grid, draw, show
from wassemble.inputs.formats.named_tables import read_named_table
from wassemble.kernels.base import Kernel, as_kernel
from wassemble.kernels.named.account import KernelAccount, make_account
from wassemble.kernels.places import named_labels
from wassemble.labels import LabelSpace, enumerate_names

Names = LabelSpace | Iterable[str | int]


@final
class LabelledKernel:
    """Similarity between the labels of two spaces, by name.

    Parameters
    ----------
    kernel : Kernel, array, sparse matrix or data frame
        Of shape (n_source, n_target), NumPy, the same for every sample. A data frame brings
        its names: those of its columns, and those of its rows in the index (pandas) or in a
        column of text.
    source, target : LabelSpace or iterable of str
        Names of its rows and of its columns. A data frame needs none; if it gets them, it must
        have exactly these, and is put in their order.
    origin : str, optional
        How it was made, in one line.
    notes : iterable of str
        What a reader should know, such as labels without a word vector.
    declared : array of bool of shape (n_target,), optional
        Target labels that a model with this kernel can speak of; those that the kernel
        reaches if not given. On the others it keeps only its `leftover` weight: a kernel
        from mistakes reaches everything, but its model has no word for everything.

    Examples
    --------
    >>> similar = [[1.0, 0.1], [0.9, 0.2], [0.1, 1.0]]
    >>> pets = LabelledKernel(similar, ["husky", "beagle", "tabby"], ["dog", "cat"])
    >>> pets.align(["tabby", "husky"], ["cat", "dog"]).to_dense()
    array([[1. , 0.1],
           [0.1, 1. ]])
    """

    def __init__(
        self,
        kernel: Any,
        source: Names | None = None,
        target: Names | None = None,
        origin: str | None = None,
        notes: Iterable[str] = (),
        *,
        declared: Any = None,
    ) -> None:
        is_table = not isinstance(kernel, Kernel)
        if not is_table:
            _check_whole(kernel)
        matrix, self.source, self.target = read_names(kernel, "kernel", source, target)
        if is_table:
            with named_labels(self.source, self.target):
                matrix = as_kernel(matrix)
            _check_whole(matrix)
        self.kernel: Kernel = matrix
        if origin is None:
            origin = "a table of similarities" if is_table else f"a {type(kernel).__name__}"
        if not isinstance(origin, str) or len(origin.splitlines()) != 1:
            fail(f"`origin` must say in one line how the kernel was made; got {origin!r}.")
        self.origin = origin
        self.notes = tuple(notes)
        for note in self.notes:
            if not isinstance(note, str):
                fail(f"a note must be a text; got {note!r}.")
        expected = (len(self.source), len(self.target))
        if self.kernel.shape != expected:
            fail(
                f"the kernel must have shape {expected}, one row for each source label and one"
                f" column for each target label; got {self.kernel.shape}."
            )
        self.declared = None if declared is None else np.asarray(declared)
        if self.declared is not None and (
            self.declared.dtype != bool or self.declared.shape != (len(self.target),)
        ):
            fail(
                f"`declared` must be True or False for each of the {len(self.target):,} target"
                f" labels; got {self.declared.dtype} of shape {self.declared.shape}."
            )

    def with_entries(self, kernel: Kernel, origin: str | None = None) -> LabelledKernel:
        """The same labels with another kernel between them."""
        names = self.source, self.target, self.origin if origin is None else origin
        return LabelledKernel(kernel, *names, self.notes, declared=self.declared)

    def align(self, source: Names, target: Names) -> Kernel:
        """The kernel of exactly these labels, in this order.

        Where nothing changes it is the very same object, so that models which share it
        share its products too. Sparse and low-rank kernels stay so.
        """
        source, target = LabelSpace(source), LabelSpace(target)
        if source == self.source and target == self.target:
            return self.kernel
        pairs = (("source", source, self.source), ("target", target, self.target))
        for side, wanted, known in pairs:
            strange = [name for name in wanted if name not in known]
            if strange:
                fail(
                    f"the kernel must know every {side} label; it lacks"
                    f" {enumerate_names(strange)}.",
                    hint=f"it was made from: {self.origin}",
                )
        return self.kernel.select(self.source.places(source), self.target.places(target))

    def account(self) -> KernelAccount:
        """What the kernel joins, and what looks wrong about it."""
        return make_account(self.kernel, self.source, self.target, self.origin, self.notes)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to ``path``, a ``.npz`` or a ``.parquet`` file; see `kernels.load`.

        The first holds any kernel exactly as it is. The second is a table with the columns
        source, target and similarity, for other programs; it takes no low-rank kernels, nor
        entries so small that only their logarithms can be kept.
        """
        from wassemble.kernels.named.files import save_kernel  # which needs this class

        save_kernel(self, path)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of source labels and of target labels."""
        return self.kernel.shape

    def to_dense(self) -> np.ndarray:
        """All entries, ``(n_source, n_target)``."""
        return np.asarray(self.kernel.to_dense())

    def plot(self, ax: Any = None) -> Any:
        """Draw which labels are joined to which, darker for more similar; the axes."""
        return draw(self.picture(), ax)

    def picture(self) -> Grid:
        """The entries as a grid with names."""
        return self.kernel.picture(self.source, self.target)

    def _repr_html_(self) -> str | None:
        if not self.kernel.can_be_seen:
            return None  # its words are shown in place of it
        words = f"From {self.origin}. {' '.join(self.notes)}"
        return show([self.picture()], words)

    def __repr__(self) -> str:
        n_source, n_target = self.shape
        return (
            f"LabelledKernel({n_source} source x {n_target} target labels,"
            f" {type(self.kernel).__name__}, from {self.origin})"
        )


def _check_whole(kernel: Kernel) -> None:
    """Refuse kernels whose entries are not all here, in NumPy, and the same for every sample."""
    if kernel.is_split:
        fail("a kernel with label names must be whole; got some of its rows.")
    if kernel.n_samples is not None:
        fail(
            "a kernel with label names must be the same for every sample; got one of"
            f" {kernel.n_samples} samples.",
            hint="give a kernel per sample to `fuse` or `solve_barycenter` as it is",
        )
    if kernel.tensor is not None:
        fail(
            "a kernel with label names must hold NumPy entries; got a torch tensor.",
            hint="`kernel.convert(None, numpy_dtype)`; solvers bring it to torch themselves",
        )


def read_names(
    matrix: Any, name: str, source: Names | None, target: Names | None
) -> tuple[Any, LabelSpace, LabelSpace]:
    """The matrix in the order of its names, and these: of its rows and of its columns.

    A data frame has names; those that are given beside it say the order, and must be the
    same. Anything else is as it is, and its names must be given; without ``target``, those of
    the rows are those of the columns too.
    """
    if not is_frame(matrix):
        if source is None:
            fail(
                f"`{name}` must come with the names of its labels; got a {type(matrix).__name__}"
                " and no names.",
                hint="`source` and `target` name rows and columns; a data frame has names",
            )
        return matrix, *read_spaces(source, target)
    table = read_named_table(matrix, name)
    rows = table.rows if source is None else read_spaces(source, None)[0]
    columns = table.columns if target is None else read_spaces(target, None)[0]
    if target is None and set(rows) == set(columns):
        columns = rows
    rows, columns = read_spaces(rows, columns)
    return table.ordered(rows, columns), rows, columns


def read_spaces(source: Names, target: Names | None) -> tuple[LabelSpace, LabelSpace]:
    """Both as label spaces; the same object twice if their names are the same.

    Examples
    --------
    >>> source, target = read_spaces(["cat", "dog"], None)
    >>> source is target
    True
    """
    first = LabelSpace(source)
    if target is None:
        return first, first
    second = LabelSpace(target)
    return first, first if second == first else second
