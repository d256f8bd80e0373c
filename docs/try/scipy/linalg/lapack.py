"""Cholesky's factors, and inverses from them, as LAPACK gives them."""

import sys

import numpy as np

from .. import fill


def dpotrf(matrix: np.ndarray, clean: int = 1) -> tuple[np.ndarray, int]:
    """The upper factor of a positive definite matrix, and 0; another number where it is not."""
    try:
        return np.linalg.cholesky(matrix).T.copy(), 0
    except np.linalg.LinAlgError:
        return matrix, 1


def dpotri(factor: np.ndarray, overwrite_c: int = 0) -> tuple[np.ndarray, int]:
    """The inverse of the matrix whose upper factor this is; its upper half counts."""
    half = np.linalg.inv(np.triu(factor))
    return half @ half.T, 0


fill(sys.modules[__name__])
