"""Features of pictures in a file: what captioners look at."""

from __future__ import annotations

import zipfile
from os import PathLike
from pathlib import Path

import numpy as np

from wassemble._checks import fail

_HINT = (
    "numpy.savez(path, image_ids=..., features=...) writes one; features have shape"
    " (n_images, n_cells, n_features)"
)


def read_grid_features(path: str | PathLike[str]) -> tuple[list[str], np.ndarray]:
    """Ids and grid features of pictures, from an ``.npz`` file.

    Parameters
    ----------
    path : str or path
        With the arrays ``image_ids``, numbers or text, and ``features``, of shape
        (n_images, n_cells, n_features).

    Returns
    -------
    image_ids : list of str
    features : float32 array of shape (n_images, n_cells, n_features)
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            image_ids, features = arrays["image_ids"], arrays["features"]
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        fail(f"{path}: must be an .npz file of image_ids and features; {error}.", hint=_HINT)
    if features.ndim != 3 or features.dtype.kind not in "fiu" or 0 in features.shape:
        fail(
            f"{path}: features must be numbers of shape (n_images, n_cells, n_features);"
            f" got {features.dtype} of shape {features.shape}.",
            hint=_HINT,
        )
    if image_ids.shape != features.shape[:1]:
        fail(
            f"{path}: image_ids must have one id for each of the {len(features)} images;"
            f" got shape {image_ids.shape}."
        )
    if not np.isfinite(features).all():
        wrong = int(np.flatnonzero(~np.isfinite(features).all(axis=(1, 2)))[0])
        fail(f"{path}: features must be finite; those of image {image_ids[wrong]} are not.")
    return [str(name) for name in image_ids.tolist()], features.astype(np.float32)
