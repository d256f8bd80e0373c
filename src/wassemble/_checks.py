"""Checks of user input: the only place that words input errors.

Each check returns the value in the form the caller wants or raises
`InvalidInputError`: what must hold, what was got, where, and the way out. Checks of single
values are constraints: called with a value and its name, declared as data for the fields of a
dataclass (`check_fields`).
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from wassemble._arrays import (
    Array,
    convert_like,
    detached,
    has_names,
    is_array,
    is_frame,
    is_series,
    is_torch_array,
    widest_float,
)
from wassemble.errors import fail as fail, option as option, option_or as option_or  # noqa: PLC0414


def as_float_array(value: Any, name: str, *, like: Array | None = None) -> Array:
    """``value`` as a real floating array; integers and booleans become float64.

    Torch tensors stay torch tensors; with ``like`` a torch tensor, everything becomes one,
    on its device. Arrays of other libraries are read as NumPy reads them.
    """
    if is_torch_array(value):
        if value.is_complex():
            fail(f"{option(name)} must hold real numbers; got a tensor of {value.dtype}.")
        if str(value.layout) != "torch.strided":
            fail(
                f"{option(name)} must be a dense tensor; got one of layout {value.layout}.",
                hint="use `tensor.to_dense()`, or a SciPy sparse matrix",
            )
        if not value.is_floating_point():
            value = value.to(widest_float(value))
        return value if like is None else convert_like(value, like)
    refuse_names(value, name)
    if isinstance(value, np.ma.MaskedArray):
        fail(
            f"{option(name)} must hold a number everywhere; got a masked array.",
            hint="`.filled(value)` says what stands for the masked entries",
        )
    array = value if type(value) is np.ndarray else read_array(value, name)
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        fail(
            f"{option(name)} must hold real numbers; got {_describe(value, array)}.",
            hint="`kernels.load` reads a kernel from a file"
            if isinstance(value, str)
            else "tables with label names go into `fuse` in a dict, {name: table}",
        )
    if array.dtype.itemsize > 8:  # long double: nothing below computes in it
        array = array.astype(np.float64)
    return array if like is None else convert_like(array, like)


def read_array(value: Any, name: str) -> np.ndarray:
    """``value`` as an array of NumPy, whatever it holds; a tensor outside of any gradient."""
    try:
        return detached(value)
    except (ValueError, TypeError, RuntimeError) as error:
        if is_array(value):  # in the memory of a device, or traced to be compiled
            fail(
                f"{option(name)} must be an array that NumPy can read, or a torch tensor;"
                f" got an array of {type(value).__module__.partition('.')[0]}.",
                hint="move it to the processor's memory first",
            )
        if isinstance(error, RuntimeError):  # torch, of a tensor in a list, with a gradient
            fail(
                f"{option(name)} must be one array or tensor; got a {type(value).__name__} of"
                " tensors.",
                hint="torch.stack makes one tensor of them",
            )
        fail(
            f"{option(name)} must be a rectangular array of numbers; got rows of different lengths."
        )


def refuse_names(value: Any, name: str) -> None:
    """Refuse data frames, and columns with an index, where there are no names to match theirs.

    A pandas Series whose index only counts its entries has no names.
    """
    if isinstance(value, np.ndarray):
        return
    if isinstance(value, list | tuple):
        if any(has_names(each) for each in {type(e): e for e in value}.values()):
            for each in value:
                refuse_names(each, name)
        return
    got = ""
    if is_frame(value):
        got = f"a data frame ({type(value).__module__.split('.')[0]} {type(value).__name__})"
    elif is_series(value) and list(value.index) != list(range(len(value))):
        got = f"a Series with an index ({', '.join(map(repr, value.index[:3].tolist()))} ...)"
    if got:
        fail(
            f"{option(name)} must be an array here, for there are no names to match its own with;"
            f" got {got}.",
            hint="`.to_numpy()` of it, if it is known to be in the right order",
        )


def _describe(value: Any, array: np.ndarray) -> str:
    if array.dtype.kind == "O":
        return f"an object of type {type(value).__name__}"
    return f"an array of dtype {array.dtype}"


def check_nonnegative(
    array: Array,
    name: str,
    place: Callable[..., str],
    *,
    infinite: bool = False,
    hint: str | None = None,
) -> None:
    """Refuse nan, infinite and negative entries of ``array``, naming the first of them.

    ``place`` words an index, one argument per axis. Entries may be ``infinite`` if that is
    allowed; the ``hint`` is for those that are negative.
    """
    if 0 in array.shape or _has_only_numbers_from_zero(array):
        return
    # nan survives min and max, so two passes find all three faults, where the array lies.
    if array.min() >= 0 and (infinite or array.max() < math.inf):
        return
    values = detached(array)
    for bad, must in (
        (np.isnan(values), "must not be nan"),
        (np.isinf(values) & (not infinite), "must be finite"),
        (values < 0, "must not be negative"),
    ):
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            fail(
                f"{option(name)} {must}; got {values[index]:g} at {place(*index)}.",
                hint=hint if values[index] < 0 else None,
            )


def _has_only_numbers_from_zero(array: Array) -> bool:
    """Whether one look at an array of NumPy tells that nothing is wrong with it.

    Bits of floating numbers from 0 up are in the order of the numbers; those of whatever is
    negative (-0 too), infinite or nan are not below those of infinity.
    """
    if not (isinstance(array, np.ndarray) and array.dtype.char in "fd" and array.dtype.isnative):
        return False
    bits = np.dtype(f"u{array.itemsize}")
    return bool(array.view(bits).max() < np.array(math.inf, array.dtype).view(bits))


def near_one(value: float) -> str:
    """A number that should be 1, in the digits that tell it from 1."""
    value = float(value)
    if value == 1 or not abs(value - 1) < 1e-3:
        return f"{value:.6g}"
    return f"1 {'-' if value < 1 else '+'} {abs(value - 1):.2g}"


def check_weights_sum(weights: np.ndarray) -> None:
    """Refuse weights whose sum over models (the first axis) is not 1."""
    totals = np.atleast_1d(weights.sum(axis=0, dtype=np.float64))
    # Weights are powers: off by what half precision rounds, they would change the mass.
    eps = float(np.finfo(np.result_type(weights.dtype, np.float32)).eps)
    slack = 8 * eps * math.sqrt(len(weights))
    wrong = np.abs(totals - 1) > slack
    if wrong.any():
        place = np.argwhere(wrong)[0]
        words = {0: "", 1: " at target label {}", 2: " at sample {}, target label {}"}
        where = words[weights.ndim - 1].format(*place)
        fail(
            f"{option('weights')} must sum to 1 over the models;"
            f" got {near_one(totals[tuple(place)])}{where}.",
            hint="divide by the sum if only the proportions matter",
        )


class Constraint(Protocol):
    """What an argument must be: called with it and its name, it gives it in the right form."""

    def __call__(self, value: Any, name: str, /) -> Any: ...


Constraints: TypeAlias = Mapping[str, Constraint]
"""What the fields of a dataclass must be, by their names."""


@dataclass(frozen=True)
class Number:
    """A finite number within bounds, as a float.

    Examples
    --------
    >>> Number(above=0, at_most=1)(0.5, "share")
    0.5
    >>> Number(at_least=0, at_most=1)(2, "share")
    Traceback (most recent call last):
        ...
    wassemble.errors.InvalidInputError: `share` must be from 0 to 1; got 2.
    """

    above: float = -math.inf
    at_least: float = -math.inf
    at_most: float = math.inf
    below: float = math.inf

    def __call__(self, value: Any, name: str) -> float:
        try:
            if isinstance(value, bool | np.bool_ | str | bytes | complex | np.complexfloating):
                raise TypeError
            if getattr(value, "requires_grad", False):  # no gradient flows through a float
                raise TypeError
            number = float(value)
        except (TypeError, ValueError):
            of = "" if math.isfinite(self.above) else "of "
            fail(f"{option(name)} must be a number {of}{self._words()}; got {value!r}.")
        except OverflowError:  # a whole number beyond float64
            number = math.inf
        if not (self.above < number < self.below and self.at_least <= number <= self.at_most):
            finite = "finite and " if min(self.at_most, self.below) == math.inf else ""
            fail(f"{option(name)} must be {finite}{self._words()}; got {value!r}.")
        return number

    def _words(self) -> str:
        if math.isfinite(self.at_least) and math.isfinite(self.at_most):
            return f"from {self.at_least:g} to {self.at_most:g}"
        bounds = ((word.replace("_", " "), bound) for word, bound in vars(self).items())
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds if math.isfinite(bound))


@dataclass(frozen=True)
class Count:
    """A whole number of at least ``at_least``."""

    at_least: int = 1

    def __call__(self, value: Any, name: str) -> int:
        try:
            if isinstance(value, bool):
                raise TypeError
            number = operator.index(value)
        except TypeError:
            fail(f"{option(name)} must be a whole number; got {value!r}.")
        if number < self.at_least:
            fail(f"{option(name)} must be at least {self.at_least}; got {number}.")
        return number


@dataclass(frozen=True)
class OneOf:
    """One of a few words.

    Examples
    --------
    >>> OneOf(("cost", "similarity"))("cost", "weights")
    'cost'
    """

    choices: tuple[str, ...]

    def __call__(self, value: Any, name: str) -> Any:
        if not isinstance(value, str) or value not in self.choices:
            fail(f"{option(name)} must be one of {', '.join(self.choices)}; got {value!r}.")
        return value


@dataclass(frozen=True)
class Optional:
    """What ``constraint`` asks for, or None."""

    constraint: Constraint

    def __call__(self, value: Any, name: str) -> Any:
        return None if value is None else self.constraint(value, name)


def check_fields(value: Any) -> None:
    """Bring the fields of a frozen dataclass into the form that its ``constraints`` ask for.

    ``constraints`` is a class attribute, {name of a field: Constraint}; `__post_init__` calls.
    """
    for name, constraint in value.constraints.items():
        object.__setattr__(value, name, constraint(getattr(value, name), name))


check_positive_number = Number(above=0)
check_nonnegative_number = Number(at_least=0)


def check_count(value: Any, name: str, *, at_least: int = 1) -> int:
    """``value`` as a whole number of at least ``at_least``."""
    return Count(at_least)(value, name)


def check_flag(value: Any, name: str) -> bool:
    """``value`` as a bool; nothing else is read as one."""
    if not isinstance(value, bool | np.bool_):
        fail(f"{option(name)} must be True or False; got {value!r}.")
    return bool(value)


def check_text(value: Any, name: str) -> str:
    """``value`` if it is a text."""
    if not isinstance(value, str):
        fail(f"{option(name)} must be a text; got {value!r}.")
    return value


def check_index(value: Any, name: str, n_items: int) -> int:
    """``value`` as a whole number from 0 to ``n_items - 1``."""
    try:
        index = operator.index(value)
    except TypeError:
        fail(
            f"{option(name)} must be a whole number, the place of the {name} counted from 0;"
            f" got {value!r}."
        )
    if not 0 <= index < n_items:
        fail(f"{option(name)} must be from 0 to {n_items - 1}; got {index}.")
    return index


def shorten(text: str, at_most: int = 40) -> str:
    """The beginning of a text, for a message."""
    return text if len(text) <= at_most else f"{text[: at_most - 3]}..."
