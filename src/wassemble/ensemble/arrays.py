"""Arrays in, an array out: what a fusion does where nothing has a name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wassemble._arrays import Array
from wassemble._checks import refuse_names
from wassemble.ensemble.account import fine_ends, no_mass_remedy
from wassemble.errors import ConvergenceWarning
from wassemble.solvers import Fused, Rule, Status

if TYPE_CHECKING:
    from wassemble.ensemble.fusion import Fusion

__all__ = ["fuse_arrays"]

# Share of a row's mass that `n_top` may drop without a word.
_MUCH_DROPPED = 0.05


def fuse_arrays(
    fusion: Fusion,
    predictions: Any,
    *,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    out: np.ndarray | None = None,
) -> Array:
    """Consensus of arrays, of which a fusion's rule, kernel, weights and kind speak."""
    refuse_names(predictions, "predictions")
    rule = fusion.rule
    fused = rule.fuse(
        predictions,
        fusion.kernel,
        weights=fusion.weights,
        holds="scores" if fusion.kind == "multilabel" else "histograms",
        normalize=fusion.normalize,
        n_threads=n_threads,
        progress=progress,
        out=out,
    )
    _warn(rule, fused)
    scores = fused.scores[0] if fused.drops_sample_axis else fused.scores
    return rule.to_histograms(scores, out=out) if fused.are_histograms else scores


def _warn(rule: Rule, fused: Fused) -> None:
    """Say what the result would, since the consensus alone cannot."""
    dropped = None if fused.result is None else fused.result.dropped
    if dropped is not None and (worst := dropped.max(initial=0)) > _MUCH_DROPPED:
        warnings.warn(
            f"`n_top` dropped up to {worst:.0%} of a model's mass in a row.",
            ConvergenceWarning,
            stacklevel=5,
        )
    fine = fine_ends(rule)
    for status in Status:
        count = int((fused.statuses == status).sum())
        if count and status not in fine:
            hint = f"\nhint: {no_mass_remedy()}" if status is Status.NO_MASS else ""
            warnings.warn(
                f"{count} of {len(fused.statuses)} rows: {status.message}.{hint}",
                ConvergenceWarning,
                stacklevel=5,
            )
