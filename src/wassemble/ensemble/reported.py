"""Which labels a model reported scores of, counted chunk by chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# A label that is left empty on one sample may well have a score on others.
_FEWEST = 2


@dataclass
class Reported:
    """What one model reported: labels without any score, and how many labels a sample has."""

    never: np.ndarray | None = None  # labels without a score so far, as a mask; None: no answer yet
    n_by_size: Counter[int] = field(default_factory=Counter)  # answers with so many scores
    largest: float = 0.0
    is_wide: bool = False  # read from a table with a column for each label
    is_full: bool = False  # every label has had a score

    def add(self, scores: np.ndarray, missing: np.ndarray, answered: np.ndarray) -> None:
        """Count the rows that are ``answered``; ``missing`` are scores that are nan."""
        if not answered.any():
            return
        missing = missing[answered]
        self._keep_empty(np.asarray(missing.all(axis=0)))
        sizes, counts = np.unique((~missing).sum(axis=1), return_counts=True)
        self.n_by_size.update(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))
        self.largest = max(self.largest, float(np.nanmax(scores[answered])))

    def _keep_empty(self, empty: np.ndarray) -> None:
        self.never = empty if self.never is None else self.never & empty
        self.is_full |= not self.never.any()

    def find_empty(self) -> list[int]:
        """Labels that never have a score, though most answers have one for each of the others.

        In a list of best answers, by contrast, most samples lack labels that others have.
        """
        n_answers = self.n_by_size.total()
        if self.never is None or self.is_full or n_answers < _FEWEST:
            return []
        n_whole = self.n_by_size[int((~self.never).sum())]
        return np.flatnonzero(self.never).tolist() if 2 * n_whole > n_answers else []

    def to_dict(self) -> dict[str, Any]:
        """What was counted, ready for JSON."""
        never = None if self.never is None else np.flatnonzero(self.never).tolist()
        sizes = {str(size): n for size, n in sorted(self.n_by_size.items())}
        return {
            "never": never,
            "n_by_size": sizes,
            "largest": self.largest,
            "is_full": self.is_full,
        }

    def add_dict(self, counts: Mapping[str, Any], n_labels: int) -> None:
        """Add what `to_dict` wrote down of other samples."""
        if counts["never"] is not None:
            empty = np.zeros(n_labels, dtype=bool)
            empty[counts["never"]] = True
            self._keep_empty(empty)
        self.is_full |= counts["is_full"]
        self.n_by_size.update({int(size): n for size, n in counts["n_by_size"].items()})
        self.largest = max(self.largest, counts["largest"])
