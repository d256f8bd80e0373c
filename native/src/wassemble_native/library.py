"""The compiled library: one file for each level of processors, the best one loaded."""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

# From the oldest to the newest, with the bit by which the library says that a processor has it.
_LEVELS = {"baseline": 0, "avx2": 1, "avx512": 2}

_ARGUMENTS = {
    "sweep": [ctypes.c_void_p, ctypes.c_int64],
    "approach": [ctypes.c_void_p, ctypes.c_void_p],
    "find_stuck": [ctypes.c_void_p, ctypes.c_void_p],
    "means": [ctypes.c_void_p],
}


def file_name(name: str) -> str:
    """File of the library for a level."""
    return f"sweeps_{name}.so"


@cache
def _load(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(__file__).with_name(file_name(name))))


@cache
def levels() -> tuple[str, ...]:
    """Levels that were built and that this processor has, the best one last."""
    has = _load("baseline").processor_levels()
    return tuple(
        name
        for name, bit in _LEVELS.items()
        if has & bit == bit and Path(__file__).with_name(file_name(name)).exists()
    )


@cache
def level() -> str:
    """The level in use: the best one, or the one that $WASSEMBLE_NATIVE names."""
    wanted = os.environ.get("WASSEMBLE_NATIVE", "")
    return wanted if wanted in levels() else levels()[-1]


@cache
def n_lanes(dtype: np.dtype) -> int:
    """Numbers in a vector."""
    return int(_load(level()).vector_bytes()) // dtype.itemsize


@cache
def function(name: str, dtype: np.dtype) -> Any:
    """A function of the library, for one floating type."""
    found = getattr(_load(level()), f"{name}_{dtype.name}")
    found.argtypes = _ARGUMENTS[name]
    found.restype = ctypes.c_int
    return found
