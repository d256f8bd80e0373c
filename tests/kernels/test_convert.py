"""Arrays, sparse matrices and kernels as kernels."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import wassemble as ws
from wassemble.kernels import as_kernel


def test_a_kernel_stays_itself():
    kernel = ws.kernels.IdentityKernel(3)
    assert as_kernel(kernel) is kernel


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (sp.eye_array(3), ws.kernels.SparseKernel),
        (sp.csr_matrix(np.eye(3)), ws.kernels.SparseKernel),
        (np.eye(3), ws.kernels.DenseKernel),
        (torch.eye(3), ws.kernels.DenseKernel),
        ([[1, 0], [0, 1]], ws.kernels.DenseKernel),
    ],
)
def test_a_matrix_becomes_the_kernel_of_its_kind(value, kind):
    assert type(as_kernel(value)) is kind


def test_a_per_sample_matrix_is_refused_with_the_way_out():
    with pytest.raises(
        ws.InvalidInputError, match=r"must have two axes.*\nhint: .*one diagonal per"
    ):
        as_kernel(np.ones((2, 3, 3)))


@pytest.mark.parametrize("wrong", ["kernel", None, object(), ws.kernels.IdentityKernel])
def test_anything_else_is_refused(wrong):
    with pytest.raises(ws.InvalidInputError, match="`kernel` must hold real numbers; got an"):
        as_kernel(wrong)
