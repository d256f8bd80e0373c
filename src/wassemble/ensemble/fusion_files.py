"""Fusions as a folder: JSON for what is said, npz for kernels; no pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import fail
from wassemble._files import write_whole
from wassemble.errors import InvalidInputError
from wassemble.kernels import Kernel, LabelledKernel, load as load_kernel

if TYPE_CHECKING:
    from wassemble.ensemble.fusion import Fusion

__all__ = ["load_fusion", "same_kernels", "save_fusion"]

_FORMAT = "wassemble fusion 1"
_FILE = "fusion.json"


def save_fusion(entries: dict[str, Any], kernel: Any, folder: str | PathLike[str]) -> None:
    """Write what `Fusion.to_dict` says, and the kernels; ``fusion.json`` last."""
    folder = Path(folder)
    named = _each(kernel, _with_names)
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[int, str] = {}
    kept: list[LabelledKernel] = []

    def save(given: LabelledKernel) -> str:
        if id(given) not in files:
            files[id(given)] = f"kernel-{len(files)}.npz"
            kept.append(given)
            given.save(folder / files[id(given)])
        return files[id(given)]

    record = {"format": _FORMAT, **entries, "kernel": _each(named, save)}
    write_whole(folder / _FILE, json.dumps(record, indent=1) + "\n")


def load_fusion(
    folder: str | PathLike[str], make: Callable[[Mapping[str, Any], Any], Fusion]
) -> Fusion:
    """The fusion in a folder; ``make`` makes it from its entries and its kernel."""
    path = Path(folder) / _FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"{path}: must be a file that can be read; {(error.strerror or str(error)).lower()}.")
    except (ValueError, RecursionError) as error:
        fail(f"{path}: must be JSON; it is damaged ({error}).")
    if not isinstance(record, dict) or record.pop("format", None) != _FORMAT:
        fail(f"{path}: must be a fusion that `Fusion.save` wrote, format {_FORMAT!r}.")
    loaded: dict[str, LabelledKernel] = {}

    def load(name: Any) -> LabelledKernel:
        if not isinstance(name, str) or Path(name).name != name:  # of this folder, nowhere else
            fail(f"{path}: a kernel must be a file of the folder; got {name!r}.")
        if name not in loaded:
            loaded[name] = load_kernel(path.parent / name)
        return loaded[name]

    kernel = _each(record.pop("kernel", None), load)
    try:
        return make(record, kernel)
    except InvalidInputError as error:
        told, _, _ = str(error).partition("\nhint: ")
        fail(f"{path}: the fusion is damaged: {told}")
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        fail(f"{path}: the fusion is damaged: something is not of its type ({error}).")


def same_kernels(one: Any, other: Any) -> bool:
    """Whether two fusions have the same kernel, or one per model that is the same."""
    if one is other:
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(same_kernels(one[k], other[k]) for k in one)
    if isinstance(one, LabelledKernel) and isinstance(other, LabelledKernel):
        return (
            (one.source, one.target) == (other.source, other.target)
            and _same_arrays({"": one.declared}, {"": other.declared})
            and same_kernels(one.kernel, other.kernel)
        )
    if isinstance(one, Kernel) and isinstance(other, Kernel):
        return one.n_samples is None and _same_arrays(one.to_arrays(), other.to_arrays())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_kernels, one, other))
    plain = int | float | np.ndarray
    return isinstance(one, plain) and isinstance(other, plain) and np.array_equal(one, other)


def _same_arrays(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return set(one) == set(other) and all(
        np.array_equal(np.asarray(one[k]), np.asarray(other[k]), equal_nan=_is_float(one[k]))
        for k in one
    )


def _is_float(values: Any) -> bool:
    return np.asarray(values).dtype.kind == "f"


def _each(kernel: Any, change: Callable[[Any], Any]) -> Any:
    """A kernel, or each of a dict or list of kernels, changed."""
    if kernel is None:
        return None
    if isinstance(kernel, Mapping):
        return {str(model): _each(given, change) for model, given in kernel.items()}
    if isinstance(kernel, list | tuple):
        return [_each(given, change) for given in kernel]
    return change(kernel)


def _with_names(kernel: Any) -> LabelledKernel:
    if not (isinstance(kernel, LabelledKernel) or is_frame(kernel)):
        fail(
            "a fusion is saved with kernels that have names; got"
            f" {'numbers' if np.isscalar(kernel) else f'a {type(kernel).__name__}'}.",
            hint="LabelledKernel(kernel, source, target) gives it names",
        )
    return kernel if isinstance(kernel, LabelledKernel) else LabelledKernel(kernel)
