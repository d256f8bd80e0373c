"""Types by which `fuse` says what it returns; nothing that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypedDict, TypeVar

import numpy as np

from wassemble.ensemble.completion import Unobserved
from wassemble.inputs import Kind
from wassemble.labels import LabelSpace
from wassemble.solvers import Rule

__all__ = ["Frame", "FrameT", "FuseOptions"]


class Frame(Protocol):
    """A data frame, of whatever library."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""

    @property
    def shape(self) -> Any:
        """How many rows and columns it has."""


FrameT = TypeVar("FrameT", bound=Frame)


class FuseOptions(TypedDict, total=False):
    """Everything that `fuse` takes besides predictions."""

    kernel: Any
    rule: Rule
    weights: Any
    kind: Kind | None
    normalize: bool
    n_threads: int | None
    progress: Callable[[int, int], None] | None
    out: np.ndarray | None
    target: LabelSpace | Iterable[str] | None
    aliases: Any
    fold: bool
    other: str | Mapping[str, str] | None
    samples: Literal["all", "common"]
    allow_disjoint: bool
    by_row: bool
    id_column: str | Mapping[str, str] | None
    leftover: float
    unobserved: Unobserved
    hard_confidence: float
