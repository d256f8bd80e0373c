"""What every kernel is: a non-negative linear operator between two label sets.

Rows are source labels, columns are target labels. Solvers see only this interface;
how the entries are stored is the business of the final classes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from wassemble._arrays import Array, detached, is_torch_array, log_of, new_zeros
from wassemble._checks import as_float_array, check_positive_number, fail
from wassemble._pictures import Grid, draw, show

Shape: TypeAlias = tuple[int, int]
Arrays: TypeAlias = dict[str, np.ndarray]

# Entries of one block of rows: 16 MB of float64.
_BLOCK = 2**21
# Entries up to which a kernel has a copy of its own: 32 MB of float64.
_COPIED = 2**22


def connect(links: Sequence[sp.coo_array]) -> np.ndarray:
    """Components of the target labels under several patterns of links, numbered from 0."""
    n_target = links[0].shape[1]
    # Each label is a node: the target's first, then the source labels of each pattern.
    below = sp.vstack(links, format="csr")
    corners = sp.csr_array((n_target, n_target)), sp.csr_array((below.shape[0],) * 2)
    graph = sp.block_array([[corners[0], None], [below, corners[1]]])
    _, labels = connected_components(graph, directed=False)
    _, numbers = np.unique(labels[:n_target], return_inverse=True)
    return numbers


@dataclass(frozen=True)
class EntryRange:
    """Bounds on the entries of a kernel; solvers choose their arithmetic by them."""

    smallest: float  # at most the smallest entry above 0
    largest: float  # at least the largest entry
    has_zeros: bool  # False promises that every entry is above 0

    def fit(self, info: Any) -> bool:
        """Whether the floating type of ``info`` (a ``finfo``) holds every entry."""
        return self.smallest >= float(info.smallest_normal) and self.largest <= float(info.max) / 2


class Kernel(ABC):
    """Similarity between source labels (rows) and target labels (columns), as an operator.

    Arrays are batched over leading axes: the last axis is the label axis. Log forms
    take and give logarithms, and stay exact where the plain forms would overflow or
    underflow.
    """

    #: What files call the ways in which this class stores entries, with the arrays of each.
    storages: ClassVar[Mapping[str, frozenset[str]]] = {}
    _classes: ClassVar[dict[str, Any]] = {}  # by the names in `storages`

    #: Number of source labels and of target labels.
    shape: Shape
    #: Floating type of the entries, None for a kernel whose entries are 0 and 1, none stored.
    dtype: Any
    #: A torch tensor that holds entries, None where NumPy does.
    tensor: Array | None = None
    #: True only if the kernel was declared symmetric when it was built.
    is_symmetric: bool = False
    #: True if each label is similar to itself alone, and that by 1.
    is_identity: bool = False
    #: True if source label i is similar to target label i alone.
    is_diagonal: bool = False
    #: Of a diagonal kernel, the similarity of each label to itself; None where that is 1.
    diagonal: Array | None = None
    #: True if only entries above 0 are stored, so that `to_sparse` costs little.
    is_sparse: bool = False
    #: True if the similarities are stored as such: not as factors, not as logarithms.
    keeps_entries: bool = True
    #: True if logarithms are stored, because entries would underflow.
    keeps_logs: bool = False
    #: True if other ranks hold further source labels of the kernel.
    is_split: bool = False
    #: Number of ranks that share the kernel.
    n_blocks: int = 1
    #: Number of samples of a kernel that differs per sample, else None.
    n_samples: int | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Kernel._classes.update(dict.fromkeys(vars(cls).get("storages", ()), cls))

    _hold: Callable[..., None]

    @classmethod
    def _trusted(cls, *parts: Any, **options: Any) -> Self:
        """The kernel of what was checked already, as the `_hold` of its class takes it."""
        kernel = cls.__new__(cls)
        kernel._hold(*parts, **options)
        return kernel

    @property
    def is_one_to_one(self) -> bool:
        """Whether no label, source or target, is similar to more than one."""
        return self.is_diagonal

    def matched_sources(self) -> tuple[np.ndarray | None, Array | None]:
        """Of a one-to-one kernel, the source label of each target label, and their similarity.

        Returns
        -------
        sources : int array of shape (n_target,), or None
            -1 for a target label that no source label reaches. None: label i is from label i.
        diagonal : array of shape (n_target,), or None
            0 for a target label that no source label reaches. None: 1 for all others.
        """
        if not self.is_diagonal:
            fail(f"labels must be matched one to one; got {self}.")
        return None, self.diagonal

    @property
    def n_source(self) -> int:
        """Number of source labels; of a kernel that is split, those of all parts."""
        return self.shape[0]

    @property
    @abstractmethod
    def entries(self) -> EntryRange:
        """Bounds on the entries."""

    @property
    @abstractmethod
    def T(self) -> Kernel:
        """The transposed kernel, from target labels to source labels."""

    @abstractmethod
    def apply(self, v: Array) -> Array:
        """K v: ``(..., n_target)`` to ``(..., n_source)``."""

    @abstractmethod
    def log_apply(self, log_v: Array) -> Array:
        """log(K exp(log_v)), exact for any spread of ``log_v``; -inf stands for 0."""

    @abstractmethod
    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        """A call that writes K v into ``out``, as often as the arrays' contents change.

        For loops: NumPy, contiguous, of the right shapes, unchecked.
        """

    def apply_transpose(self, u: Array) -> Array:
        """K^T u: ``(..., n_source)`` to ``(..., n_target)``."""
        return self.T.apply(u)

    def log_apply_transpose(self, log_u: Array) -> Array:
        """log(K^T exp(log_u)), exact for any spread of ``log_u``."""
        return self.T.log_apply(log_u)

    @abstractmethod
    def to_dense(self) -> Array:
        """All entries, ``(n_source, n_target)``, with a leading sample axis if they differ."""

    def to_log_dense(self) -> Array:
        """Logs of all entries, -inf for 0; exact where the entries would underflow."""
        return log_of(self.to_dense())

    def to_sparse(self) -> sp.csr_array:
        """The entries above 0, in NumPy; may share memory with the kernel."""
        return sp.csr_array(detached(self.to_dense()))

    def blocks(self) -> Iterator[tuple[int, sp.csr_array | np.ndarray]]:
        """The entries in NumPy, a few rows at a time: the first row's place, and the rows.

        Rows are sparse where the kernel stores them so, else dense.
        """
        if self.is_sparse:
            yield 0, self.to_sparse()
            return
        step = max(1, _BLOCK // self.shape[1])
        for start in range(0, self.shape[0], step):
            yield start, self._dense_rows(slice(start, start + step))

    def _dense_rows(self, some: slice) -> np.ndarray:
        return detached(self.to_dense()[some])

    def factors(self) -> list[Kernel] | None:
        """One or two kernels, dense or sparse, of which this one is the product.

        None where there are none to be had here: it differs per sample, or other ranks have it.
        """
        return None

    @property
    def is_matrix(self) -> bool:
        """Whether it is one dense matrix, or the logarithms of one."""
        factors = self.factors()
        return factors is not None and len(factors) == 1 and not factors[0].is_sparse

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything that makes the kernel, as named arrays; the same for the same kernel.

        Examples
        --------
        >>> from wassemble.kernels import DiagonalKernel
        >>> arrays = DiagonalKernel([1.0, 0.5]).to_arrays()
        >>> Kernel.from_arrays(arrays).to_dense()
        array([[1. , 0. ],
               [0. , 0.5]])
        """
        storage, arrays = self._stored_arrays()
        return {
            "storage": np.array(storage),
            "shape": np.array(self.shape),
            "symmetric": np.array(self.is_symmetric),
            **arrays,
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Kernel:
        """The kernel that `to_arrays` gave; anything else is refused."""
        arrays = {name: np.asarray(array) for name, array in arrays.items()}
        for name in ("storage", "shape", "symmetric"):
            if name not in arrays:
                fail(f"the arrays of a kernel must say its {name}; got {sorted(arrays)}.")
        storage, shape, symmetric = (arrays.pop(n) for n in ("storage", "shape", "symmetric"))
        cls = _class_of(str(storage))
        if symmetric.dtype.kind != "b" or symmetric.shape != ():
            fail(f"`symmetric` must be True or False; got {symmetric!r}.")
        if shape.dtype.kind not in "iu" or shape.shape != (2,) or (shape < 1).any():
            fail(f"`shape` must be two whole numbers above 0; got {shape!r}.")
        expected = cls.storages[str(storage)]
        if set(arrays) != expected:
            fail(
                f"a kernel that is {storage} must have the arrays {sorted(expected)};"
                f" got {sorted(arrays)}."
            )
        sizes = int(shape[0]), int(shape[1])
        kernel = cls._from_stored(str(storage), arrays, sizes, symmetric=bool(symmetric))
        if kernel.shape != sizes or kernel.is_symmetric != bool(symmetric):
            fail(f"the arrays of a kernel must have its shape, {sizes}; got {kernel.shape}.")
        return kernel

    @property
    def storage(self) -> str:
        """How entries are stored, by the name that files have for it."""
        return self._stored_arrays()[0]

    @staticmethod
    def from_entries(storage: str, entries: sp.csr_array, *, symmetric: bool = False) -> Kernel:
        """The kernel with these entries, stored as ``storage`` says; refused if it cannot be."""
        return _class_of(storage)._from_entries(entries, symmetric=symmetric)

    def _stored_arrays(self) -> tuple[str, Arrays]:
        """One of `storages`, and its arrays."""
        fail(f"a {type(self).__name__} must be made again where it is needed; it is not stored.")

    @classmethod
    def _from_stored(cls, storage: str, arrays: Arrays, shape: Shape, *, symmetric: bool) -> Kernel:
        """The kernel of what `_stored_arrays` gave; shape and symmetry are checked later."""
        raise NotImplementedError

    @classmethod
    def _from_entries(cls, entries: sp.csr_array, *, symmetric: bool) -> Kernel:
        """The kernel with these entries, checked."""
        fail(f"a kernel from a table must have its similarities as such; a {cls.__name__} has not.")

    def select(self, rows: Any = None, columns: Any = None) -> Kernel:
        """The kernel of some source labels and some target labels.

        Parameters
        ----------
        rows, columns : int array, bool array or None
            Places in the order that is wanted, or a mask; None for all. A kernel keeps its
            storage if it can: diagonal ones that are taken apart become sparse.
        """
        if rows is None and columns is None:
            return self
        return self._select(self._read_places(rows, 0), self._read_places(columns, 1))

    def _select(self, rows: np.ndarray, columns: np.ndarray) -> Kernel:
        raise NotImplementedError

    def power(self, exponent: float) -> Kernel:
        """Each entry to the power ``exponent``, above 0: the larger, the fewer are alike."""
        exponent = check_positive_number(exponent, "exponent")
        # 0 and 1 are their own powers.
        return self if exponent == 1 or self.dtype is None else self._power(exponent)

    def _power(self, exponent: float) -> Kernel:
        raise NotImplementedError

    def embed(
        self, shape: Shape, rows: np.ndarray, columns: np.ndarray, ones: tuple[Array, Array]
    ) -> Kernel:
        """A kernel between more labels, of which this one joins some.

        Parameters
        ----------
        shape : (int, int)
            Number of source and of target labels of the new kernel.
        rows, columns : int arrays of shape (n_source,) and (n_target,)
            Where the labels of this one are.
        ones : two int arrays of the same length
            Source and target labels that have similarity 1; all other entries are 0.
        """
        entries = self.to_sparse()
        same = Kernel.from_entries("sparse", entries, symmetric=self.is_symmetric)
        return same.embed(shape, rows, columns, ones)

    def plot(self, ax: Any = None) -> Any:
        """Draw the entries, darker for more similar; the axes, of matplotlib.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> as_kernel([[1.0, 0.2], [0.2, 1.0]]).plot().get_title()
        'DenseKernel, 2 source x 2 target labels'
        """
        return draw(self.picture(range(self.shape[0]), range(self.shape[1])), ax)

    def picture(self, source: Sequence[Any], target: Sequence[Any]) -> Grid:
        """The entries as a grid with names; those of the first sample if samples differ."""
        if not self.can_be_seen:
            fail(
                f"a kernel to be drawn must be whole, with at most {_BLOCK:,} entries; got {self}.",
                hint="`kernel.select(rows, columns)` is the kernel of some of its labels",
            )
        one = self if self.n_samples is None else self.take(slice(0, 1))
        entries = detached(one.to_dense()).reshape(self.shape)
        title = f"{type(self).__name__}, {self.shape[0]} source x {self.shape[1]} target labels"
        return Grid(title, list(map(str, source)), list(map(str, target)), entries)

    @property
    def can_be_seen(self) -> bool:
        """Whether all entries are here, and not too many to look at."""
        return not self.is_split and self.shape[0] * self.shape[1] <= _BLOCK

    def _repr_html_(self) -> str | None:
        if not self.can_be_seen:
            return None  # its words are shown in place of it
        return show([self.picture(range(self.shape[0]), range(self.shape[1]))])

    @abstractmethod
    def convert(self, like: Array | None, dtype: Any) -> Kernel:
        """The same kernel in the array library of ``like`` (None: NumPy), as ``dtype``.

        Entries that ``dtype`` could not hold keep their wider type.
        """

    @abstractmethod
    def scaled(self, log_u: Array, log_v: Array) -> Kernel:
        """diag(exp(log_u)) K diag(exp(log_v)) for one sample: a coupling, as a kernel."""

    @abstractmethod
    def inner(self, cost: Array) -> Array:
        """Sum over all pairs of labels of entry times ``cost`` (<C, K>)."""

    @abstractmethod
    def links(self) -> sp.coo_array:
        """Pattern of the entries above 0 in any sample, as a sparse 0/1 matrix."""

    @cached_property
    def row_sums(self) -> Array:
        """K 1: the whole similarity of each source label, ``(..., n_source)``."""
        return self.apply(new_zeros((self.shape[1],), self.tensor, self.dtype) + 1)

    @cached_property
    def log_row_sums(self) -> Array:
        """log(K 1), also where K 1 is too small for its type."""
        return self.log_apply(new_zeros((self.shape[1],), self.tensor))

    @cached_property
    def leads_somewhere(self) -> np.ndarray:
        """Whether each source label has an entry above 0, ``(..., n_source)``."""
        if self.keeps_logs:
            return detached(self.log_row_sums) > -np.inf
        return detached(self.row_sums) > 0

    @cached_property
    def has_empty_labels(self) -> bool:
        """Whether some source or target label is similar to no other."""
        links = self.links()
        used = [np.unique(labels).size for labels in (links.row, links.col)]
        return used != list(self.shape)

    @cached_property
    def target_components(self) -> np.ndarray:
        """Number of the connected component of each target label, ``(n_target,)``."""
        return connect([self.links()])

    @abstractmethod
    def squared_distance_to_identity(self) -> Array:
        """||K - I||_F squared of a square kernel; one value per sample if they differ."""

    def add_parts(self, sums: Array) -> Array:
        """Sums over the source labels here, with those of a kernel that is split added."""
        return sums

    def take(self, rows: Any) -> Kernel:
        """The kernel of the samples ``rows``: itself unless it differs per sample."""
        return self

    #: Whether products with torch tensors need the entries in torch too (see `convert`).
    _is_of_one_library: bool = True

    def _read_places(self, value: Any, axis: int) -> np.ndarray:
        """``value``, a mask or places along ``axis``, as places; None are all."""
        n_labels = self.shape[axis]
        if value is None:
            return np.arange(n_labels)
        places = np.array(detached(value), order="C")
        if places.dtype == bool and places.shape == (n_labels,):
            places = np.flatnonzero(places)
        side = ("source", "target")[axis]
        if places.dtype.kind not in "iu" or places.ndim != 1 or not places.size:
            fail(
                f"{side} labels must be picked by one place or more, or by a mask of length"
                f" {n_labels}; got {places.dtype} of shape {places.shape}."
            )
        if places.min() < 0 or places.max() >= n_labels:
            wrong = places[(places < 0) | (places >= n_labels)][0]
            fail(f"{side} labels must be picked by places from 0 to {n_labels - 1}; got {wrong}.")
        return places

    def _stays_symmetric(self, rows: np.ndarray, columns: np.ndarray) -> bool:
        return self.is_symmetric and np.array_equal(rows, columns)

    def _read(self, value: Any, name: str) -> Array:
        """``value`` as a floating array in the array library of the kernel."""
        array = as_float_array(value, name, like=self.tensor)
        if self._is_of_one_library and self.tensor is None and is_torch_array(array):
            fail(
                f"`{name}` must be a NumPy array, as the kernel is; got a torch tensor.",
                hint=f"`kernel.convert({name}, {name}.dtype)` is the same kernel in torch",
            )
        return array

    def _read_vectors(self, value: Any, name: str) -> Array:
        array = self._read(value, name)
        self._check_last_axis(array)
        return array

    def _check_last_axis(self, array: Array) -> None:
        if array.ndim == 0 or array.shape[-1] != self.shape[1]:
            fail(
                f"a kernel with {self.shape[1]} target labels applies to arrays whose last axis"
                f" has length {self.shape[1]}; got shape {tuple(array.shape)}.",
                hint="`apply_transpose` goes from source labels to target labels",
            )

    def _read_scalings(self, log_u: Any, log_v: Any) -> tuple[Array, Array]:
        log_u, log_v = self._read(log_u, "log_u"), self._read(log_v, "log_v")
        for array, name, n_labels in zip(
            (log_u, log_v), ("log_u", "log_v"), self.shape, strict=True
        ):
            if tuple(array.shape) != (n_labels,):
                fail(
                    f"`{name}` must have shape {(n_labels,)}, one number per label;"
                    f" got shape {tuple(array.shape)}."
                )
        return log_u, log_v

    def _read_cost(self, value: Any) -> Array:
        cost = self._read(value, "cost")
        if tuple(cost.shape) != self.shape:
            fail(
                f"`cost` must have the shape of the kernel, {self.shape};"
                f" got shape {tuple(cost.shape)}."
            )
        return cost

    def __repr__(self) -> str:
        n_source, n_target = self.shape
        kind = "" if self.dtype is None else f", {str(self.dtype).removeprefix('torch.')}"
        return f"{type(self).__name__}({n_source} source x {n_target} target labels{kind})"


def keep_entries(array: Array) -> Array:
    """``array`` as a kernel keeps it: a copy that nobody else can change, unless it is large.

    Tensors are kept as they are: gradients must find them.
    """
    return array if is_torch_array(array) or array.size > _COPIED else array.copy(order="K")


def as_kernel(value: Any) -> Kernel:
    """``value`` if it is a kernel, else the dense or sparse kernel of that matrix."""
    if isinstance(value, Kernel):
        return value
    if type(value).__name__ == "LabelledKernel":  # which is made of what this gives
        fail(
            "a kernel with label names must go with predictions that have names; got arrays.",
            hint="`labelled.align(source, target)` is the bare kernel of labels in that order",
        )
    kernel: Kernel = _class_of("sparse" if sp.issparse(value) else "dense")(value)
    return kernel


def are_all(places: np.ndarray, n_labels: int) -> bool:
    """Whether ``places`` are all there are, in order."""
    return len(places) == n_labels and np.array_equal(places, np.arange(n_labels))


def distance_to_identity(kernel: Kernel) -> float | np.ndarray:
    """The paper's ||K - I||_F: 0 moves no mass; one value per sample if the kernel differs.

    Examples
    --------
    >>> from wassemble.kernels import DenseKernel
    >>> distance_to_identity(DenseKernel([[1.0, 0.3], [0.4, 1.0]]))
    0.5
    """
    if not isinstance(kernel, Kernel):
        fail(
            f"`kernel` must be a Kernel; got {type(kernel).__name__}.",
            hint="`DenseKernel(matrix)` makes one from an array",
        )
    if kernel.shape[0] != kernel.shape[1]:
        fail(
            "the distance to the identity needs as many source as target labels;"
            f" got {kernel.shape[0]} and {kernel.shape[1]}."
        )
    squared = kernel.squared_distance_to_identity()
    return math.sqrt(squared) if isinstance(squared, float) else np.sqrt(squared)


def _class_of(storage: str) -> Any:
    if storage not in Kernel._classes:
        fail(f"`storage` must be one of {', '.join(Kernel._classes)}; got {storage!r}.")
    return Kernel._classes[storage]
