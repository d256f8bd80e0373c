"""Sparse kernels whose products torch makes."""

import sys
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from wassemble._arrays import Array
from wassemble.kernels.base import Kernel
from wassemble.kernels.sparse import SparseKernel

# Vectors multiplied at a time: two lines of the cache at every entry.
_N_VECTORS = 32


class BagKernel(SparseKernel):
    """Sparse kernel that multiplies NumPy vectors of float32 with torch, on torch's threads.

    With the vectors side by side, each row of a product is a weighted sum of some rows of a
    table. Torch calls that a bag of embeddings, and sums it with all that the processor has,
    faster than SciPy. The sums are the same to rounding, and do not depend on how many vectors
    are multiplied at once.
    """

    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        if not v.dtype == out.dtype == self.dtype == np.float32:
            return super().bind(v, out)
        rows, image = v.reshape(-1, self.shape[1]), out.reshape(-1, self.shape[0])
        return partial(self._sum_bags, rows, image)

    def _sum_bags(self, rows: np.ndarray, image: np.ndarray) -> None:
        import torch

        for start in range(0, len(rows), _N_VECTORS):
            some = slice(start, start + _N_VECTORS)
            sums = torch.nn.functional.embedding_bag(
                weight=torch.from_numpy(np.array(rows[some].T, order="C")),
                mode="sum",
                include_last_offset=True,
                **self._bags,
            )
            image[some] = sums.numpy().T

    @cached_property
    def _bags(self) -> dict[str, Array]:
        import torch

        csr = self._csr
        bags = {"input": csr.indices, "offsets": csr.indptr, "per_sample_weights": csr.data}
        # Tensors share the memory of arrays, if one may write to it.
        return {name: torch.from_numpy(np.require(a, None, "W")) for name, a in bags.items()}


def with_bags(kernel: Kernel) -> Kernel:
    """The kernel, as a `BagKernel` if it is sparse and torch is loaded already."""
    if type(kernel) is not SparseKernel or "torch" not in sys.modules:
        return kernel
    return BagKernel._trusted(kernel.to_sparse(), symmetric=kernel.is_symmetric)
