"""Fusions, and what is made of several, as a folder: JSON and kernels as npz; no pickle."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import fail
from wassemble._files import read_npz, whole_file, write_whole
from wassemble.errors import InvalidInputError
from wassemble.kernels import Kernel, LabelledKernel, load as load_kernel
from wassemble.solvers import Rule

T = TypeVar("T")
# What entries of odd types and numbers too large raise when they are read.
_DAMAGE = (InvalidInputError, LookupError, TypeError, AttributeError, ValueError, OverflowError)
_NUMBERED = re.compile(r"(kernel|rule)-\d+\.npz")
# Dicts and lists in one another: what is saved has far fewer, and later nobody counts them.
_DEEPEST = 32


@dataclass(frozen=True)
class Kept:
    """What is kept in a folder: a word for it, who wrote it, and a hint if it is damaged."""

    word: str
    title: str
    writer: str
    hint: str | None = None

    @property
    def file(self) -> str:
        """The file that holds all but the kernels."""
        return f"{self.word}.json"

    @property
    def format(self) -> str:
        """What that file says of itself."""
        return f"wassemble {self.word} 1"


FUSION = Kept("fusion", "a fusion", "`Fusion.save`")


def save_folder(
    entries: dict[str, Any],
    kernel: Any,
    rules: Sequence[Rule],
    folder: str | PathLike[str],
    kept: Kept = FUSION,
) -> None:
    """Write entries that JSON can hold, kernels in dicts and lists, and what rules were fitted to.

    The JSON file comes last. Kernels and rules that were saved here before go after it.
    """
    folder = Path(folder)
    named = _each(kernel, _with_names)
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[int, str] = {}  # of each kernel, by its id: `named` holds them all

    def save(given: LabelledKernel) -> str:
        if id(given) not in files:
            files[id(given)] = f"kernel-{len(files)}.npz"
            given.save(folder / files[id(given)])
        return files[id(given)]

    record = {"format": kept.format, **entries, "kernel": _each(named, save)}
    written = {*files.values(), *_save_rules(rules, folder)}
    write_whole(folder / kept.file, json.dumps(record, indent=1) + "\n")
    for old in folder.glob("*.npz"):
        if old.name not in written and _NUMBERED.fullmatch(old.name):
            old.unlink()


def load_folder(
    folder: str | PathLike[str], make: Callable[[dict[str, Any], Any], T], kept: Kept = FUSION
) -> T:
    """What `save_folder` wrote; ``make`` makes it from its entries and its kernels."""
    path = Path(folder) / kept.file
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        fail(f"{folder}: must hold {kept.file}, which {kept.writer} writes; there is none.")
    except OSError as error:
        fail(f"{path}: must be a file that can be read; {(error.strerror or str(error)).lower()}.")
    except (ValueError, RecursionError) as error:
        fail(f"{path}: must be JSON; it is damaged ({error}).", hint=kept.hint)
    if not isinstance(record, dict) or record.pop("format", None) != kept.format:
        fail(f"{path}: must be {kept.title} that {kept.writer} wrote, format {kept.format!r}.")
    inside = [record]
    for _ in range(_DEEPEST):
        lists = [
            v.values() if isinstance(v, dict) else v for v in inside if isinstance(v, dict | list)
        ]
        inside = [value for each in lists for value in each]
    if inside:
        fail(f"{path}: the {kept.word} is damaged: it is nested too deeply.", hint=kept.hint)
    loaded: dict[str, LabelledKernel] = {}

    def load(name: Any) -> LabelledKernel:
        if not isinstance(name, str) or Path(name).name != name:  # of this folder, nowhere else
            fail(f"{path}: a kernel must be a file of the folder; got {name!r}.")
        if name not in loaded:
            loaded[name] = load_kernel(path.parent / name)
        return loaded[name]

    try:
        return make(record, _each(record.pop("kernel", None), load))
    except _DAMAGE as error:
        reason = f"something is not of its type ({error})."
        if isinstance(error, InvalidInputError):
            reason, _, _ = str(error).partition("\nhint: ")
        elif isinstance(error, KeyError):
            reason = f"it lacks {error}."
        fail(f"{path}: the {kept.word} is damaged: {reason}", hint=kept.hint)


def _save_rules(rules: Sequence[Rule], folder: Path) -> list[str]:
    """Write what rules were fitted to, those that were: JSON holds the rest."""
    names = []
    for place, rule in enumerate(rules):
        if rule.arrays:
            names.append(f"rule-{place}.npz")
            with whole_file(folder / names[-1]) as temporary:
                np.savez_compressed(temporary, **rule.arrays)  # type: ignore[arg-type]
    return names


def load_rule(entries: Mapping[str, Any], folder: str | PathLike[str], place: int = 0) -> Rule:
    """The rule at a place of those that `save_folder` wrote, from its entries."""
    is_fitted = isinstance(entries, Mapping) and entries.get("parameters") is not None
    return Rule.from_dict(
        entries, read_npz(Path(folder) / f"rule-{place}.npz") if is_fitted else None
    )


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
    pairs = [(np.asarray(one[k]), np.asarray(other.get(k))) for k in one]
    return set(one) == set(other) and all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs
    )


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
