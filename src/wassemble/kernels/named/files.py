"""Kernels with names in files: ``.npz`` for any kernel, ``.parquet`` and ``.csv`` as tables.

Nothing is trusted: a file that was cut off or edited is refused, not repaired.
"""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._files import read_npz, whole_file
from wassemble.errors import InvalidInputError
from wassemble.kernels.base import Kernel
from wassemble.kernels.named.labelled import LabelledKernel
from wassemble.kernels.named.tables import read_csv, read_parquet, write_parquet
from wassemble.kernels.places import named_labels
from wassemble.labels import LabelSpace

_FORMAT = "wassemble kernel 1"
_NAMED = ("format", "source", "target", "origin", "notes")


def load(path: str | PathLike[str]) -> LabelledKernel:
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
    >>> from wassemble.kernels import IdentityKernel
    >>> kernel = LabelledKernel(IdentityKernel(2), ["cat", "dog"], ["chat", "chien"], "by hand")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kernel.save(f"{folder}/kernel.npz")
    ...     load(f"{folder}/kernel.npz")
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
    return arrays | kernel.to_arrays()


def _read_npz(path: Path) -> LabelledKernel:
    arrays = read_npz(path)
    missing = [name for name in _NAMED if name not in arrays]
    if missing or str(arrays["format"]) != _FORMAT:
        fail(
            f"{path}: must be a kernel that `LabelledKernel.save` wrote;"
            + (f" it lacks {', '.join(missing)}." if missing else f" got {arrays['format']}."),
            hint="a table of source, target and similarity is read as .csv or .parquet",
        )
    kinds = {name: array.dtype.kind for name, array in arrays.items()}
    for name in ("source", "target", "origin", "notes"):
        if kinds[name] != "U":
            fail(f"{path}: `{name}` must hold text; got {arrays[name].dtype}.")
    for name in ("source", "target", "notes"):
        if arrays[name].ndim != 1:
            fail(f"{path}: `{name}` must be a list; got shape {arrays[name].shape}.")
    source, target = LabelSpace(arrays["source"].tolist()), LabelSpace(arrays["target"].tolist())
    expected = len(source), len(target)
    if "shape" in arrays and arrays["shape"].tolist() != list(expected):
        fail(f"{path}: the kernel must have shape {expected}, as its names; got another.")
    stored = {name: arrays[name] for name in arrays if name not in (*_NAMED, "declared")}
    with named_labels(source, target):
        kernel = Kernel.from_arrays(stored)
    return LabelledKernel(
        kernel,
        source,
        target,
        str(arrays["origin"]),
        arrays["notes"].tolist(),
        declared=arrays.get("declared"),
    )
