"""Kernels with names in files: ``.npz`` for any kernel, ``.parquet`` and ``.csv`` as tables.

Nothing is trusted: a file that was cut off or edited is refused, not repaired.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._checks import fail
from wassemble._files import whole_file
from wassemble.errors import InvalidInputError
from wassemble.kernels.base import Kernel
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.diagonal import DiagonalKernel, IdentityKernel
from wassemble.kernels.kernel_tables import read_csv, read_parquet, write_parquet
from wassemble.kernels.labelled import LabelledKernel
from wassemble.kernels.low_rank import LowRankKernel
from wassemble.kernels.named_errors import named_labels
from wassemble.kernels.parts import factors, kept_logs
from wassemble.kernels.sparse import SparseKernel
from wassemble.labels import LabelSpace

__all__ = ["entries_to_arrays", "load_kernel", "save_kernel"]

_FORMAT = "wassemble kernel 1"
_COMMON = ("format", "kind", "source", "target", "origin", "notes", "symmetric")
# What np.load raises on bytes that are not what they say they are.
_BROKEN = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OverflowError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_kernel(path: str | PathLike[str]) -> LabelledKernel:
    """The kernel that `LabelledKernel.save` wrote, or that a table holds.

    Parameters
    ----------
    path : str or path
        A ``.npz`` of `LabelledKernel.save`; a ``.parquet``, with or without what `save`
        wrote beside the table; or a ``.csv``. Tables have the columns source, target and
        similarity, one row per pair. Without the label sets that `save` writes, the labels
        are those that occur, in the order of appearance.

    Examples
    --------
    >>> import tempfile
    >>> kernel = LabelledKernel(IdentityKernel(2), ["cat", "dog"], ["chat", "chien"], "by hand")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kernel.save(f"{folder}/kernel.npz")
    ...     load_kernel(f"{folder}/kernel.npz")
    LabelledKernel(2 source x 2 target labels, IdentityKernel, from by hand)
    """
    path = Path(path)
    readers = {".npz": _read_npz, ".parquet": read_parquet, ".csv": read_csv}
    if path.suffix not in readers:
        fail(f"{path}: a kernel file must be .npz, .parquet or .csv; got {path.suffix!r}.")
    if not path.is_file():
        fail(f"{path}: must be a file; there is none.")
    try:
        return readers[path.suffix](path)
    except InvalidInputError as error:
        words = str(error)
        raise InvalidInputError(
            words if words.startswith(str(path)) else f"{path}: {words}"
        ) from None


def save_kernel(labelled: LabelledKernel, path: str | PathLike[str]) -> None:
    """Write ``labelled`` whole or not at all; the suffix says how."""
    path = Path(path)
    if path.suffix == ".npz":
        arrays = _to_arrays(labelled)
        with whole_file(path) as temporary:
            np.savez(temporary, **arrays)
    elif path.suffix == ".parquet":
        with whole_file(path) as temporary:
            write_parquet(labelled, temporary)
    else:
        fail(f"{path}: a kernel is saved as .npz or .parquet; got {path.suffix!r}.")


def _to_arrays(labelled: LabelledKernel) -> dict[str, Any]:
    kernel = labelled.kernel
    arrays: dict[str, Any] = {
        "format": np.array(_FORMAT),
        "symmetric": np.array(kernel.is_symmetric),
        "origin": np.array(labelled.origin),
        "source": np.array(labelled.source.names),
        "target": np.array(labelled.target.names),
        "notes": np.array(labelled.notes, dtype=np.str_),
    }
    for key, texts in (
        ("source", labelled.source.names),
        ("target", labelled.target.names),
        ("notes", labelled.notes),
    ):
        if tuple(arrays[key].tolist()) != texts:
            fail(f"the texts of `{key}` must not end in a zero character to be saved as .npz.")
    if labelled.declared is not None:
        arrays["declared"] = labelled.declared
    return arrays | entries_to_arrays(kernel)


def entries_to_arrays(kernel: Kernel) -> dict[str, Any]:
    """What makes a kernel, without its names: arrays that are the same for the same kernel."""
    if isinstance(kernel, IdentityKernel):
        return {"kind": np.array("identity")}
    if isinstance(kernel, DiagonalKernel):
        return {"kind": np.array("diagonal"), "diagonal": kernel.diagonal}
    if isinstance(kernel, SparseKernel):
        csr = kernel.to_sparse()
        parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
        return {"kind": np.array("sparse"), **parts}
    if isinstance(kernel, LowRankKernel):
        left, right = factors(kernel)
        error = np.nan if kernel.measured_error is None else kernel.measured_error
        both = {"left": left} if kernel.is_symmetric else {"left": left, "right": right}
        return {"kind": np.array("low rank"), "measured_error": np.array(error), **both}
    logs = kept_logs(kernel)
    if logs is None:
        return {"kind": np.array("dense"), "matrix": kernel.to_dense()}
    dtype = np.array(str(kernel.dtype))
    return {"kind": np.array("dense in logs"), "log_matrix": logs, "dtype": dtype}


def _read_npz(path: Path) -> LabelledKernel:
    try:
        # Opened here: np.load leaves a file open that it cannot read.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except _BROKEN as error:
        fail(f"{path}: must be a .npz file of plain arrays; it cannot be read ({error}).")
    missing = [name for name in _COMMON if name not in arrays]
    if missing or str(arrays["format"]) != _FORMAT:
        fail(
            f"{path}: must be a kernel that `LabelledKernel.save` wrote;"
            + (f" it lacks {', '.join(missing)}." if missing else f" got {arrays['format']}."),
            hint="a table of source, target and similarity is read as .csv or .parquet",
        )
    kinds = {name: array.dtype.kind for name, array in arrays.items()}
    for name in ("kind", "source", "target", "origin", "notes"):
        if kinds[name] != "U":
            fail(f"{path}: `{name}` must hold text; got {arrays[name].dtype}.")
    for name in ("source", "target", "notes"):
        if arrays[name].ndim != 1:
            fail(f"{path}: `{name}` must be a list; got shape {arrays[name].shape}.")
    if kinds["symmetric"] != "b" or arrays["symmetric"].shape != ():
        fail(f"{path}: `symmetric` must be True or False; got {arrays['symmetric']!r}.")
    source, target = LabelSpace(arrays["source"].tolist()), LabelSpace(arrays["target"].tolist())
    with named_labels(source, target):
        kernel = _kernel_of(path, arrays, (len(source), len(target)))
    return LabelledKernel(
        kernel,
        source,
        target,
        str(arrays["origin"]),
        arrays["notes"].tolist(),
        declared=arrays.get("declared"),
    )


def _kernel_of(path: Path, arrays: Mapping[str, np.ndarray], shape: tuple[int, int]) -> Kernel:
    """The kernel itself; its class checks the entries, `LabelledKernel` its shape."""
    kind, symmetric = str(arrays["kind"]), bool(arrays["symmetric"])
    named = {*_COMMON, "declared"}
    parts = {name: array for name, array in arrays.items() if name not in named}
    expected: dict[str, set[str]] = {
        "identity": set(),
        "diagonal": {"diagonal"},
        "sparse": {"data", "indices", "indptr"},
        "low rank": {"left", "measured_error"} | (set() if symmetric else {"right"}),
        "dense": {"matrix"},
        "dense in logs": {"log_matrix", "dtype"},
    }
    if kind not in expected:
        fail(f"{path}: `kind` must be one of {', '.join(expected)}; got {kind!r}.")
    if set(parts) != expected[kind]:
        fail(
            f"{path}: a kernel of kind {kind!r} must have the arrays"
            f" {sorted(expected[kind])}; got {sorted(parts)}."
        )
    if kind == "identity":
        if shape[0] != shape[1]:
            fail(f"{path}: an identity must have as many source as target labels; got {shape}.")
        return IdentityKernel(shape[0])
    if kind == "diagonal":
        return DiagonalKernel(parts["diagonal"])
    if kind == "sparse":
        return SparseKernel(_to_csr(path, parts, shape), symmetric=symmetric)
    if kind == "low rank":
        error = parts["measured_error"]
        if error.dtype.kind != "f" or error.shape != ():
            fail(f"{path}: `measured_error` must be a number; got {error!r}.")
        measured = None if np.isnan(error) else float(error)
        return LowRankKernel(parts["left"], parts.get("right"), measured_error=measured)
    if kind == "dense":
        return DenseKernel(parts["matrix"], symmetric=symmetric)
    dtype = str(parts["dtype"])
    if dtype not in ("float32", "float64"):
        fail(f"{path}: `dtype` must be float32 or float64; got {dtype!r}.")
    return DenseKernel.from_log(parts["log_matrix"], symmetric=symmetric).convert(
        None, np.dtype(dtype)
    )


def _to_csr(path: Path, parts: Mapping[str, np.ndarray], shape: tuple[int, int]) -> sp.csr_array:
    for name, kinds in (("data", "f"), ("indices", "i"), ("indptr", "i")):
        if parts[name].dtype.kind != kinds:
            what = "numbers" if name == "data" else "whole numbers"
            fail(f"{path}: `{name}` must hold {what}; got {parts[name].dtype}.")
    try:
        csr = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
        csr.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        fail(
            f"{path}: data, indices and indptr must be those of {shape[0]:,} source and"
            f" {shape[1]:,} target labels ({error})."
        )
    return csr
