"""An epsilon that gives each label about as many neighbours as was asked for.

The effective number of neighbours of a source label is the exponential of the entropy of
its row of the kernel, divided by its sum: 1 for one target label, n for n equal ones. It
grows with epsilon, so that bisection finds the epsilon of a given number.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from wassemble._checks import Constraints, Number, Optional, check_fields, fail, option, option_or

# What a label set of any size gets, itself included: most of the mass stays close by.
_N_EFFECTIVE = 3.0
# Rows that the median is taken over; they lie evenly among the source labels.
_N_ROWS = 256
_N_STEPS = 64


@dataclass(frozen=True)
class AutoEpsilon:
    """Asks for an epsilon by the effective number of neighbours that it gives.

    Parameters
    ----------
    n_effective : float, optional
        Median effective number of target labels of a source label, its own name included.
        3 if nothing is given; if the median label can be joined to fewer than five target
        labels, half of one more than these.
    target_entropy : float, optional
        The same as an entropy in nats, log(n_effective). Not both.

    Examples
    --------
    >>> AutoEpsilon(target_entropy=0.0)
    AutoEpsilon(n_effective=None, target_entropy=0.0)
    """

    constraints: ClassVar[Constraints] = {
        "n_effective": Optional(Number(at_least=1)),
        "target_entropy": Optional(Number(at_least=0)),
    }

    n_effective: float | None = None
    target_entropy: float | None = None

    def __post_init__(self) -> None:
        if self.n_effective is not None and self.target_entropy is not None:
            fail("`n_effective` and `target_entropy` are two words for one thing; got both.")
        check_fields(self)

    def wanted(self, n_joined: float) -> float:
        """The effective number that is asked for among ``n_joined`` target labels."""
        if self.target_entropy is not None:
            return math.exp(self.target_entropy)
        if self.n_effective is not None:
            return float(self.n_effective)
        return min(_N_EFFECTIVE, (n_joined + 1) / 2)


Epsilon = float | Literal["auto"] | AutoEpsilon


def choose_epsilon(
    epsilon: Any, cost_of: Callable[[np.ndarray], np.ndarray], n_source: int
) -> tuple[float, str]:
    """The epsilon and the words that tell of it; a number is taken as it is.

    ``cost_of`` gives costs of the source labels at some places, ``(n_rows, n_target)``; infinite
    where labels are never joined.

    Examples
    --------
    >>> cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> choose_epsilon("auto", cost.__getitem__, 2)
    (0.5516, 'epsilon 0.5516 (auto: median of 1.5 effective neighbours)')
    """
    if isinstance(epsilon, str) and epsilon == "auto":
        epsilon = AutoEpsilon()
    if not isinstance(epsilon, AutoEpsilon):
        if isinstance(epsilon, str):
            fail(f'{option("epsilon")} must be a number above 0 or "auto"; got {epsilon!r}.')
        epsilon = Number(above=0)(epsilon, "epsilon")
        return epsilon, f"epsilon {epsilon:g}"
    rows = np.unique(np.linspace(0, n_source - 1, min(n_source, _N_ROWS)).astype(np.int64))
    gaps = _gaps(np.asarray(cost_of(rows), dtype=np.float64))
    if not len(gaps):
        return 1.0, "epsilon 1 (auto: no label has a choice)"
    # Rounded, so that the number that is told makes the same kernel.
    chosen = float(f"{_bisect(gaps, epsilon):.4g}")
    reached = float(np.median(_count_neighbors(gaps, chosen)))
    return chosen, f"epsilon {chosen:g} (auto: median of {reached:.3g} effective neighbours)"


def _bisect(gaps: np.ndarray, asked: AutoEpsilon) -> float:
    least = float(np.median((gaps == 0).sum(axis=1)))
    most = float(np.median(np.isfinite(gaps).sum(axis=1)))
    wanted = asked.wanted(most)
    if not least < wanted < most:
        fail(
            f"the median label must be able to have {wanted:.4g} effective neighbours; it can"
            f" have more than {least:.4g} and fewer than {most:.4g}.",
            hint=option_or("give `epsilon` as a number, or another `AutoEpsilon`", epsilon=...),
        )
    inside = gaps[(gaps > 0) & np.isfinite(gaps)]
    low, high = math.log(float(inside.min()) / 100), math.log(float(inside.max()) * 1e6)
    for _ in range(_N_STEPS):
        middle = (low + high) / 2
        if np.median(_count_neighbors(gaps, math.exp(middle))) < wanted:
            low = middle
        else:
            high = middle
        if high - low < 1e-5:
            break
    return math.exp((low + high) / 2)


def _gaps(costs: np.ndarray) -> np.ndarray:
    """Costs above the least of their row, of the rows that have a choice."""
    costs = costs[np.isfinite(costs).sum(axis=1) > 1]
    return costs - costs.min(axis=1, keepdims=True)


def _count_neighbors(gaps: np.ndarray, epsilon: float) -> np.ndarray:
    """Effective number of neighbours of each row: exp(log Z + <gap> / epsilon)."""
    scaled = gaps / epsilon
    weights = np.exp(-scaled)
    np.copyto(scaled, 0, where=weights == 0)  # infinity times 0
    totals = weights.sum(axis=1)
    return np.asarray(totals * np.exp((weights * scaled).sum(axis=1) / totals))
