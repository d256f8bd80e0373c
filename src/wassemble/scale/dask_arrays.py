"""Dask arrays in, a Dask array out: blocks of samples are fused each for itself, when asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.errors import ConvergenceWarning

__all__ = ["are_dask_arrays", "fuse_dask_arrays"]

Fuse = Callable[[Sequence[np.ndarray]], Any]


def are_dask_arrays(predictions: Any) -> bool:
    """Whether predictions are a Dask array, or some of a list of them are; imports nothing."""
    if isinstance(predictions, list | tuple):
        return any(_is_dask_array(each) for each in predictions)
    return _is_dask_array(predictions)


def fuse_dask_arrays(predictions: Any, fuse_block: Fuse, *, try_out: Fuse) -> Any:
    """The consensus as a Dask array, with the blocks of samples of the first model.

    Parameters
    ----------
    predictions : Dask array of shape (n_models, n_samples, n_labels), or one per model
    fuse_block : callable
        Fuses the arrays of a block, one per model.
    try_out : callable
        The same in less time: called at once with one sample, so that what does not fit is
        an error now, and not on a worker.
    """
    da = load_extra("dask.array", "scale", purpose="fusing Dask arrays")
    dask = load_extra("dask", "scale", purpose="fusing Dask arrays")
    arrays = [da.asarray(array) for array in predictions]
    for model, array in enumerate(arrays):
        if array.ndim != 2:
            fail(
                "Dask arrays must have shape (n_samples, n_labels), one per model; got"
                f" {array.shape} at model {model}."
            )
    sizes = {len(array) for array in arrays if not np.isnan(array.shape[0])}
    if len(sizes) > 1:
        fail(f"models must have the same samples; got {', '.join(map(str, sorted(sizes)))}.")
    rows = arrays[0].chunks[0]
    arrays = [
        array.rechunk({1: -1} if array.chunks[0] == rows else {0: rows, 1: -1}) for array in arrays
    ]
    first = [np.full((1, a.shape[1]), 1 / a.shape[1], dtype=a.dtype) for a in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tried = try_out(first)
    return da.map_blocks(
        _call,
        *arrays,
        # One node of the graph for all blocks: a worker gets the kernel once.
        fuse_block=dask.delayed(fuse_block, traverse=False),
        dtype=tried.dtype,
        chunks=(rows, (tried.shape[1],)),
        meta=np.empty((0, 0), dtype=tried.dtype),
    )


def _call(*blocks: np.ndarray, fuse_block: Fuse) -> Any:
    return fuse_block(list(blocks))


def _is_dask_array(value: Any) -> bool:
    return type(value).__module__.startswith("dask.array")
