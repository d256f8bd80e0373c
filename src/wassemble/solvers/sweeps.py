"""One sweep of Algorithms 1 and 2: what its arithmetics have in common.

All do the same to the samples of a tile:

    u_l = (mu_l / K_l v_l) ** exponent         line u
    p   = power mean of K_l^T u_l, of order    line p
    v_l = (p / K_l^T u_l) ** exponent          line v

`PlainSweep` works on the numbers themselves, in place, in NumPy, and watches that they
stay where floating point is exact; `LogSweep` works on logarithms, in any array
library, and is exact everywhere; `NativeSweep` works on mantissas and exponents, in native
code where that is installed. When to stop is the loop's business.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from wassemble._arrays import Array, namespace
from wassemble.solvers.components import Components


@dataclass
class Rows:
    """What a sweep knows of some rows."""

    barycenter: Array  # (n_rows, n_target)
    log_v: Array | None  # (n_models, n_rows, n_target)
    unreachable: np.ndarray | None  # (n_rows,): some mass cannot arrive; None: nowhere
    hidden: np.ndarray | None = None  # (n_rows,): zeros in it are too small to be seen; None: no
    in_logs: bool = False  # whether they were swept on logarithms
    n_half_sweeps: int = 0  # sweeps whose products were in half precision


class Sweep(Protocol):
    """A tile under way."""

    #: Rows that no sweep will bring to a fixed point, by mask; False: none is known.
    hopeless: Any

    def step(self, n_sweeps: int = 1, *, watch: bool) -> Any:
        """Do some sweeps; with ``watch``, return each row's residual after the last."""

    def relax(self, omega: np.ndarray) -> None:
        """From now on take each row's updates ``omega`` times as far."""

    def untrusted(self) -> np.ndarray:
        """Rows whose numbers have left the range where this arithmetic is exact."""

    def read(self, rows: Any, *, keep_scalings: bool) -> Rows:
        """The state of ``rows``, by mask or slice."""

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone, by mask."""


class NarrowSweep(Sweep, Protocol):
    """A tile under way in an arithmetic of limited range, fast enough to be used again."""

    #: Whether rows with histograms that are negative or not finite come out untrusted.
    checks_numbers: ClassVar[bool]

    def restart(self) -> None:
        """Forget all sweeps: start at v = 1 again, from histograms that may have changed."""

    def consensus_after(self, n_sweeps: int) -> np.ndarray | None:
        """Line p after so many sweeps from v = 1, without a look; None if it is not trusted."""


def residual(before: Array, after: Array, p: Array, components: Components | None) -> Array:
    """How far each row is from the fixed point, relative to its mass.

    ``before`` and ``after`` are the couplings' target marginals, ``(n_models, n_rows,
    n_target)``, with the scalings v before and after this sweep; at the fixed point
    they are equal. Balanced: compared as shares of each component, because mass that
    no kernel entry can move stays where it is for ever.
    """
    xp = namespace(p)
    with np.errstate(all="ignore"):
        if components is not None:
            shares = components.sums(after) / components.sums(before)
            before = before * xp.where(xp.isfinite(shares), shares, 0.0)
        change = xp.max(abs(before - after).sum(axis=-1), axis=0)
        total = p.sum(axis=-1)
        return xp.where((change == 0) & xp.isfinite(total), 0.0, change / total)
