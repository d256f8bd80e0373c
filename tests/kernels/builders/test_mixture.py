"""Weighted sums of kernels over the same labels."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

import wassemble as ws
from wassemble.kernels import (
    DenseKernel,
    DiagonalKernel,
    IdentityKernel,
    LabelledKernel,
    LowRankKernel,
    SparseKernel,
    mix as mix_kernels,
)

NAMES = ["a", "b", "c"]
KERNELS = {
    "identity": IdentityKernel(3),
    "diagonal": DiagonalKernel([2.0, 0.0, 4.0]),
    "sparse": SparseKernel(sp.csr_array([[1.0, 0, 3], [0, 2, 0], [0, 0, 0]])),
    "dense": DenseKernel([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]),
    "low-rank": LowRankKernel([[1.0], [2], [3]], [[3.0], [0], [1]]),
    "logs": DenseKernel.from_log(-np.arange(9.0).reshape(3, 3)),
}


def labelled(kernel, origin="by hand", names=NAMES, notes=()):
    return LabelledKernel(kernel, names, names, origin, notes)


@given(
    chosen=st.lists(st.sampled_from(sorted(KERNELS)), min_size=1, max_size=4),
    weights=st.lists(st.floats(0.01, 10), min_size=4, max_size=4),
)
def test_the_mix_is_the_sum_of_the_dense_forms_over_their_largest(chosen, weights):
    parts = [(labelled(KERNELS[name]), w) for name, w in zip(chosen, weights, strict=False)]
    expected = sum(w * k.to_dense() / k.to_dense().max() for k, w in parts)
    assert_allclose(mix_kernels(parts).to_dense(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("chosen", "kind"),
    [
        (["identity", "diagonal"], DiagonalKernel),
        (["identity", "sparse"], SparseKernel),
        (["sparse", "dense"], DenseKernel),
        (["low-rank", "low-rank"], DenseKernel),
    ],
)
def test_sparse_stays_sparse(chosen, kind):
    assert type(mix_kernels([(labelled(KERNELS[name]), 1) for name in chosen]).kernel) is kind


def test_labels_in_another_order_are_aligned():
    first = labelled(KERNELS["dense"])
    other = LabelledKernel(KERNELS["dense"], ["c", "a", "b"], ["b", "c", "a"], "other")
    expected = (first.to_dense() + other.align(NAMES, NAMES).to_dense()) / 9
    mixed = mix_kernels([(first, 1), (other, 1)])
    assert_allclose(mixed.to_dense(), expected)
    assert mixed.source.names == tuple(NAMES)


def test_origin_and_notes_tell_of_every_part():
    mixed = mix_kernels(
        [
            (labelled(KERNELS["identity"], "names", notes=["n"]), 0.25),
            (labelled(KERNELS["dense"], "table", notes=["n", "t"]), 2),
            (labelled(KERNELS["sparse"], "left out", notes=["x"]), 0),
        ]
    )
    assert mixed.origin == "mix of 0.25 x [names] + 2 x [table]"
    assert mixed.notes == ("n", "t")


def test_entries_that_underflow_are_kept_in_logs():
    deep = DenseKernel.from_log([[0.0, -2000.0], [-2000.0, -1.0]], symmetric=True)
    mixed = mix_kernels([(labelled(deep, names=["a", "b"]), 1.0)] * 2)
    assert mixed.kernel.is_symmetric
    log_image = mixed.kernel.log_apply([-np.inf, 0.0])
    assert_allclose(log_image, [np.log(2) - 2000, np.log(2) - 1])


def test_the_scale_of_a_kernel_does_not_matter():
    tiny = DenseKernel(KERNELS["dense"].to_dense() * 1e-300)
    expected = mix_kernels([(labelled(KERNELS["dense"]), 1), (labelled(KERNELS["identity"]), 1)])
    mixed = mix_kernels([(labelled(tiny), 1), (labelled(KERNELS["identity"]), 1)])
    assert_allclose(mixed.to_dense(), expected.to_dense())


def test_float32_stays():
    kernel = DenseKernel(np.ones((3, 3), dtype=np.float32))
    mixed = mix_kernels([(labelled(kernel), 0.5), (labelled(IdentityKernel(3)), 0.5)])
    assert mixed.kernel.dtype == np.float32


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], "some kernel must have a weight above 0; got 0 kernels and none"),
        ([(labelled(KERNELS["dense"]), 0)], "a weight above 0; got 1 kernels and none"),
        ([(labelled(KERNELS["dense"]), -1)], "`weight` must be finite and at least 0; got -1"),
        ([labelled(KERNELS["dense"])], r"mixed as pairs \(kernel, weight\); got LabelledKernel"),
        ([(KERNELS["dense"], 1)], "must have label names; got DenseKernel.\nhint: `LabelledK"),
        ([(labelled(SparseKernel(sp.csr_array((3, 3)))), 1)], "an entry above 0; got one without"),
        (
            [
                (labelled(KERNELS["dense"]), 1),
                (labelled(KERNELS["dense"], "other", names=["a", "b", "z"]), 1),
            ],
            r"same source labels; got 'c', 'z' in one of \[by hand\] and \[other\] only",
        ),
    ],
)
def test_what_cannot_be_mixed_is_refused(parts, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        mix_kernels(parts)


def test_data_frames_are_mixed_by_name():
    names = ["x", "y"]
    frame = pd.DataFrame([[0.5, 1.0], [1.0, 0.25]], index=["y", "x"], columns=["x", "y"])
    plain = ws.LabelledKernel([[1.0, 0.25], [0.5, 1.0]], names)
    identity = ws.LabelledKernel(ws.kernels.IdentityKernel(2), names)
    found = ws.kernels.mix([(identity, 0.5), (frame, 0.5)])
    expected = ws.kernels.mix([(identity, 0.5), (plain, 0.5)])
    np.testing.assert_array_equal(found.to_dense(), expected.to_dense())
