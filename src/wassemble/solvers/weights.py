"""Weights of models: on the simplex, per model, label and sample."""

from collections.abc import Callable
from typing import Any

import numpy as np

from wassemble._arrays import Array, convert_like, detached
from wassemble._checks import as_float_array, check_nonnegative, check_weights_sum, fail, option


def check_weights(
    weights: Any,
    n_models: int,
    n_target: int,
    *,
    like: Array | None = None,
    whole: bool = True,
    n_samples: int | None = None,
    place: Callable[..., str] | None = None,
) -> Array:
    """Weights on the simplex over models, in the library of ``like`` (None: NumPy).

    One per model, per model and target label or, with ``n_samples``, per model and sample
    or per model, sample and target label. Only a ``whole`` set of models has weights that
    sum to 1. ``place`` words the indices of a weight, by default as numbers.
    """
    if weights is None:
        return convert_like(np.full(n_models, 1 / n_models), like)
    weights = as_float_array(weights, "weights", like=like)
    shape = tuple(weights.shape)
    shapes = [(n_models,), (n_models, n_target)]
    if n_samples is not None:
        shapes += [(n_models, n_samples, 1), (n_models, n_samples, n_target)]
    if shape not in shapes:
        per_sample = f"({n_models}, {n_samples}, 1) or ({n_models}, {n_samples}, {n_target})"
        also = "" if n_samples is None else f" (per sample: {per_sample})"
        fail(
            f"{option('weights')} must have shape ({n_models},), one per model, or ({n_models},"
            f" {n_target}), one per model and target label{also}; got {shape}."
        )
    numbers = ("model {}", "model {}, target label {}", "model {}, sample {}, target label {}")
    check_nonnegative(weights, "weights", place or numbers[weights.ndim - 1].format)
    if whole:
        check_weights_sum(detached(weights))
    return weights


def with_three_axes(weights: Array) -> Array:
    """Weights as they broadcast over (n_models, n_samples, n_labels)."""
    if weights.ndim == 3:
        return weights
    return weights[:, None, None] if weights.ndim == 1 else weights[:, None, :]


def take_rows(weights: Array, rows: Any) -> Array:
    """Weights with three axes, of the samples ``rows`` where they differ per sample."""
    return weights if weights.shape[1] == 1 else weights[:, rows]
