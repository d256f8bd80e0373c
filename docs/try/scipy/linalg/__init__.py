"""As in `scipy.linalg`: LAPACK's Cholesky factors alone."""

import sys

from .. import fill
from . import lapack  # noqa: F401

fill(sys.modules[__name__])
