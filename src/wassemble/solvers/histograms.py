"""Predictions as arrays: one per model, checked in shape at once and in entries tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble._arrays import Array, namespace
from wassemble._checks import as_float_array, check_nonnegative, fail, refuse_names


class Histograms:
    """The predictions of several models on the same samples, each over its own labels.

    Parameters
    ----------
    histograms : array of shape (n_models, n_samples, n_labels), or one array per model
    like : tensor or None
        A torch tensor whose library and device everything goes to; None for NumPy.
    """

    def __init__(self, histograms: Sequence[Any] | Array, like: Array | None) -> None:
        if isinstance(histograms, dict):
            fail(
                "`histograms` must be one array per model; got a dict.",
                hint="list(predictions.values()) drops the names",
            )
        # Models that already lie in one array need no copy to share a product.
        self._stacked: np.ndarray | None = None
        array = histograms if like is None and isinstance(histograms, np.ndarray) else None
        if array is not None and array.ndim in (2, 3) and len(array):
            self._read_stacked(as_float_array(array, "histograms"))
        else:
            self._read_each(histograms, like)

    def _read_stacked(self, histograms: np.ndarray) -> None:
        self.drops_sample_axis = histograms.ndim == 2
        self._stacked = histograms[:, None, :] if self.drops_sample_axis else histograms
        self.n_models, self.n_samples, n_labels = self._stacked.shape
        self.n_labels = [n_labels] * self.n_models
        self.eps = [_eps(histograms.dtype, None)] * self.n_models
        self.dtype = np.result_type(np.float32, histograms.dtype)
        self.arrays: Any = self._stacked

    def _read_each(self, histograms: Sequence[Any] | Array, like: Array | None) -> None:
        refuse_names(histograms, "histograms")
        try:
            arrays = [as_float_array(h, "histograms", like=like) for h in histograms]
        except TypeError:
            fail(f"`histograms` must be one array per model; got {type(histograms).__name__}.")
        if not arrays:
            fail("`histograms` must hold at least one model; got none.")
        axes = {array.ndim for array in arrays}
        if axes not in ({1}, {2}):
            fail(
                "`histograms` must hold one array of shape (n_samples, n_source), or (n_source,)"
                " for one sample, per model; got shapes"
                f" {listed(tuple(array.shape) for array in arrays)}."
            )
        self.drops_sample_axis = axes == {1}
        if self.drops_sample_axis:
            arrays = [array[None, :] for array in arrays]
        sizes = [int(array.shape[0]) for array in arrays]
        if len(set(sizes)) > 1:
            fail(
                "`histograms` must hold the same samples for every model;"
                f" got {listed(sizes)} samples."
            )
        self.n_models, self.n_samples = len(arrays), sizes[0]
        self.n_labels = [int(array.shape[1]) for array in arrays]
        eps = {dtype: _eps(dtype, like) for dtype in {array.dtype for array in arrays}}
        self.eps = [eps[array.dtype] for array in arrays]
        if like is None:
            self.dtype = np.result_type(np.float32, *{array.dtype for array in arrays})
        else:
            xp = namespace(like)
            self.dtype = xp.result_type(xp.float32, *arrays)
            arrays = [xp.astype(array, self.dtype, copy=False) for array in arrays]
        self.arrays = arrays

    def read(self, models: Sequence[int], start: int, stop: int) -> Array:
        """Checked entries of some models with the same labels, ``(n_models, n_rows, n_labels)``."""
        xp = namespace(self.arrays[0])
        if self._stacked is not None and len(models) == self.n_models:
            stack = self._stacked[:, start:stop]
        else:
            stack = xp.stack([self.arrays[model][start:stop] for model in models])

        def place(model: int, sample: int, label: int) -> str:
            return f"model {models[model]}, sample {start + sample}, source label {label}"

        check_nonnegative(stack, "histograms", place)
        return xp.astype(stack, self.dtype, copy=False)


def keep_top(stack: np.ndarray, n_top: int, *, rescale: bool) -> tuple[np.ndarray, np.ndarray]:
    """``stack`` with all but the ``n_top`` largest entries of each row set to 0.

    Also returns the share of each row's mass that was dropped, ``(n_models, n_rows)``;
    ``rescale`` gives what is left the mass of the whole.
    """
    n_labels = stack.shape[-1]
    if n_top >= n_labels:
        return stack, np.zeros(stack.shape[:-1])
    top = np.argpartition(stack, n_labels - n_top, axis=-1)[..., n_labels - n_top :]
    kept = np.zeros_like(stack)
    np.put_along_axis(kept, top, np.take_along_axis(stack, top, axis=-1), axis=-1)
    before, after = stack.sum(axis=-1), kept.sum(axis=-1)
    share = np.divide(after, before, out=np.ones_like(before), where=before > 0)
    if rescale:
        kept /= share[..., None]
    return kept, np.maximum(1 - share, 0)


def _eps(dtype: Any, like: Array | None) -> float:
    return float((np if like is None else namespace(like)).finfo(dtype).eps)


def listed(values: Any) -> str:
    """Values in a row, for a message."""
    return ", ".join(str(value) for value in values)
