"""Dask arrays in, a Dask array out: blocks of samples are fused each for itself, when asked for."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.ensemble import Fusion
from wassemble.errors import ConvergenceWarning
from wassemble.solvers import Barycenter

__all__ = ["are_dask_arrays", "fuse_dask_arrays"]


def are_dask_arrays(predictions: Any) -> bool:
    """Whether predictions are a Dask array, or some of a list of them are; imports nothing."""
    if isinstance(predictions, list | tuple):
        return any(_is_dask_array(each) for each in predictions)
    return _is_dask_array(predictions)


def fuse_dask_arrays(predictions: Any, fusion: Fusion) -> Any:
    """The consensus as a Dask array, with the blocks of samples of the first model.

    Parameters
    ----------
    predictions : Dask array of shape (n_models, n_samples, n_labels), or one per model
    fusion : Fusion
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
        tried = _in_short(fusion).fuse(first)  # what does not fit is an error now
    return da.map_blocks(
        _call,
        *arrays,
        # One node of the graph for all blocks: a worker gets the kernel once.
        fusion=dask.delayed(fusion, traverse=False),
        dtype=tried.dtype,
        chunks=(rows, (tried.shape[1],)),
        meta=np.empty((0, 0), dtype=tried.dtype),
    )


def _call(*blocks: np.ndarray, fusion: Fusion) -> Any:
    return fusion.fuse(list(blocks))


def _in_short(fusion: Fusion) -> Fusion:
    """The same in less time."""
    if not isinstance(fusion.rule, Barycenter):
        return fusion
    return fusion.replace(
        rule=replace(fusion.rule, max_sweeps=1, tolerance=None, mixed_precision=False)
    )


def _is_dask_array(value: Any) -> bool:
    return type(value).__module__.startswith("dask.array")
