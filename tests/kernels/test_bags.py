"""Sparse kernels whose products torch makes, beside those that SciPy makes."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from kernels.factories import make_case
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.kernels.bags import BagKernel, with_bags


@pytest.fixture
def sparse(rng):
    matrix = sp.random_array((300, 200), density=0.1, rng=rng, dtype=np.float32)
    return ws.kernels.SparseKernel(matrix)


@pytest.fixture
def bags(sparse):
    return with_bags(sparse)


@pytest.mark.parametrize(
    "name",
    ["sparse", "sparse-symmetric", "sparse-with-empty-labels", "sparse-without-entries"],
)
@pytest.mark.parametrize("leading", [(), (1,), (2, 35)])
def test_products_equal_the_dense_ones(name, leading, rng):
    case = make_case(name, np.float32)
    bags = with_bags(case.kernel)
    assert isinstance(bags, BagKernel)
    assert isinstance(bags.T, BagKernel)
    assert bags.is_symmetric == case.kernel.is_symmetric
    v, u = (case.vectors(rng, axis, *leading) for axis in (1, 0))
    assert_allclose(bags.apply(v), v @ case.dense.T, rtol=1e-5)
    assert_allclose(bags.apply_transpose(u), u @ case.dense, rtol=1e-5)


def test_a_product_does_not_depend_on_what_is_multiplied_with_it(bags, rng):
    v = rng.random((70, 200), dtype=np.float32)
    together = bags.apply(v)
    for start, stop in ((0, 1), (3, 12), (30, 63), (69, 70)):
        assert_array_equal(bags.apply(v[start:stop]), together[start:stop])


def test_doubles_keep_their_precision(bags, sparse, rng):
    v = rng.random((3, 200))
    assert bags.apply(v).dtype == np.float64
    assert_array_equal(bags.apply(v), sparse.apply(v))


def test_entries_that_must_not_be_written_to_are_read(sparse, rng):
    csr = sparse.to_sparse()
    for array in (csr.data, csr.indices, csr.indptr):
        array.flags.writeable = False
    v = rng.random((3, 200), dtype=np.float32)
    assert_allclose(with_bags(sparse).apply(v), sparse.apply(v), rtol=1e-6)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_products_inside_the_modes_of_torch(bags, sparse, rng, mode):
    v = rng.random((3, 200), dtype=np.float32)
    with mode():
        assert_allclose(bags.apply(v), sparse.apply(v), rtol=1e-6)
    assert_allclose(bags.apply(v), sparse.apply(v), rtol=1e-6)


def test_torch_is_not_imported_for_it(sparse, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    assert with_bags(sparse) is sparse


def test_other_kernels_stay_as_they_are(bags):
    identity = ws.kernels.IdentityKernel(3)
    assert with_bags(identity) is identity
    assert with_bags(bags) is bags
