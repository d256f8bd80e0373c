"""Every kernel passes every law."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from kernels.factories import (
    BUILDERS,
    N_SAMPLES,
    every_kernel,
    log_image,
    log_of,
    make_case,
    transposed,
    values_of,
)
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws

LEADING = (2, N_SAMPLES)
# The products, and the axis that each sums over.
PRODUCTS = {"apply": 1, "apply_transpose": 0, "log_apply": 1, "log_apply_transpose": 0}
LOGS = st.floats(-2000, 2000, width=32) | st.just(-np.inf)
SCORES = st.floats(0, 8, width=16)


def is_square(case):
    return case.kernel.shape[0] == case.kernel.shape[1]


def draw(data, case, axis, elements):
    shape = (N_SAMPLES, case.kernel.shape[axis])
    return case.array(data.draw(arrays(np.float64, shape, elements=elements)))


def image_of(dense, v):
    return np.einsum("...ij,...j->...i", dense, values_of(v))


# -- products ------------------------------------------------------------------------


@every_kernel()
def test_to_dense_gives_the_entries(case):
    assert_allclose(values_of(case.kernel.to_dense()), case.dense, **case.tolerance)


@every_kernel()
def test_apply_equals_the_dense_product(case, rng):
    for leading in ((), (N_SAMPLES,), LEADING):
        v = case.vectors(rng, 1, *leading)
        assert_allclose(values_of(case.kernel.apply(v)), image_of(case.dense, v), **case.tolerance)


@every_kernel()
def test_apply_transpose_equals_the_transposed_dense_product(case, rng):
    for leading in ((), (N_SAMPLES,), LEADING):
        u = case.vectors(rng, 0, *leading)
        expected = image_of(transposed(case.dense), u)
        assert_allclose(values_of(case.kernel.apply_transpose(u)), expected, **case.tolerance)


@every_kernel(paired=True)
@settings(max_examples=10)
@given(data=st.data())
def test_transpose_is_adjoint(case, data):
    u, v = draw(data, case, 0, SCORES), draw(data, case, 1, SCORES)
    there = (values_of(u) * values_of(case.kernel.apply(v))).sum()
    back = (values_of(case.kernel.apply_transpose(u)) * values_of(v)).sum()
    assert_allclose(there, back, **case.tolerance)


@every_kernel(paired=True)
@settings(max_examples=10)
@given(data=st.data())
def test_plain_form_is_the_exponential_of_the_log_form(case, data):
    v = draw(data, case, 1, SCORES)
    u = draw(data, case, 0, SCORES)
    log_kv = case.kernel.log_apply(case.array(log_of(v)))
    log_ktu = case.kernel.log_apply_transpose(case.array(log_of(u)))
    assert_allclose(np.exp(values_of(log_kv)), values_of(case.kernel.apply(v)), **case.tolerance)
    assert_allclose(
        np.exp(values_of(log_ktu)), values_of(case.kernel.apply_transpose(u)), **case.tolerance
    )


@every_kernel(paired=True)
@settings(max_examples=15)
@given(data=st.data())
def test_log_forms_are_exact_at_any_spread(case, data):
    log_v, log_u = draw(data, case, 1, LOGS), draw(data, case, 0, LOGS)
    log_kv, log_ktu = case.kernel.log_apply(log_v), case.kernel.log_apply_transpose(log_u)
    assert_allclose(values_of(log_kv), log_image(case.log_entries, log_v), **case.log_tolerance)
    expected = log_image(transposed(case.log_entries), log_u)
    assert_allclose(values_of(log_ktu), expected, **case.log_tolerance)


@every_kernel()
def test_log_forms_reach_what_one_far_label_alone_sends(case):
    # The label with nearly all the mass hides the others wherever it is not linked.
    n_target = case.kernel.shape[1]
    log_v = np.full((n_target, 1, n_target), -2000.0)
    log_v[range(n_target), 0, range(n_target)] = 2000
    log_kv = case.kernel.log_apply(case.array(log_v))
    assert_allclose(values_of(log_kv), log_image(case.log_entries, log_v), **case.log_tolerance)


@every_kernel()
def test_log_form_of_nothing_is_nothing(case):
    log_v = case.array(np.full((N_SAMPLES, case.kernel.shape[1]), -np.inf))
    log_u = case.array(np.full((N_SAMPLES, case.kernel.shape[0]), -np.inf))
    assert (values_of(case.kernel.log_apply(log_v)) == -np.inf).all()
    assert (values_of(case.kernel.log_apply_transpose(log_u)) == -np.inf).all()


@every_kernel(where=lambda case: case.kernel.n_samples is None)
def test_a_batch_equals_its_rows_one_by_one(case, rng):
    for method, axis in PRODUCTS.items():
        multiply = getattr(case.kernel, method)
        batch = case.vectors(rng, axis, *LEADING)
        whole = values_of(multiply(batch))
        for i in range(LEADING[0]):
            for j in range(LEADING[1]):
                assert_allclose(values_of(multiply(batch[i, j])), whole[i, j], **case.tolerance)


@every_kernel()
def test_products_keep_library_and_type_and_leave_their_input_alone(case, rng):
    for method, axis in PRODUCTS.items():
        before = case.vectors(rng, axis, *LEADING)
        given_array = case.array(values_of(before))
        image = getattr(case.kernel, method)(given_array)
        assert type(image) is type(given_array)
        assert image.dtype == given_array.dtype
        assert image.shape == (*LEADING, case.kernel.shape[1 - axis])
        assert_array_equal(values_of(given_array), values_of(before))
        assert_allclose(values_of(case.kernel.to_dense()), case.dense, **case.tolerance)


@every_kernel(where=lambda case: not case.in_torch)
def test_a_bound_product_follows_its_arrays(case, rng):
    for kernel, axis in ((case.kernel, 1), (case.kernel.T, 0)):
        v = case.vectors(rng, axis, *LEADING)
        out = np.full((*LEADING, kernel.shape[0]), np.nan, dtype=case.dtype)
        multiply = kernel.bind(v, out)
        for factor in (1, 2):
            v *= factor
            multiply()
            assert_array_equal(out, kernel.apply(v))


# -- what a kernel is ----------------------------------------------------------------


@every_kernel()
def test_transposing_twice_gives_the_same_operator(case, rng):
    transpose = case.kernel.T
    assert transpose.shape == case.kernel.shape[::-1]
    assert transpose.is_symmetric == case.kernel.is_symmetric
    assert transpose.is_diagonal == case.kernel.is_diagonal
    assert transpose.T.shape == case.kernel.shape
    assert_allclose(values_of(transpose.to_dense()), transposed(case.dense), **case.tolerance)
    v = case.vectors(rng, 1, *LEADING)
    assert_array_equal(values_of(transpose.T.apply(v)), values_of(case.kernel.apply(v)))


@every_kernel()
def test_what_a_kernel_declares_is_true(case):
    if case.kernel.is_symmetric:
        assert_allclose(case.dense, transposed(case.dense), rtol=1e-6)
    off_diagonal = case.dense * (1 - np.eye(*case.kernel.shape))
    if case.kernel.is_diagonal:
        assert not off_diagonal.any()
    if case.kernel.is_one_to_one:
        linked = np.isfinite(case.log_entries)
        assert linked.sum(axis=-1).max() <= 1
        assert linked.sum(axis=-2).max() <= 1


@every_kernel()
def test_entry_bounds_hold(case):
    entries, dense, linked = case.kernel.entries, case.dense, np.isfinite(case.log_entries)
    slack = 1 + 1e-6
    assert 0 <= entries.smallest <= dense[linked].min(initial=np.inf) * slack
    assert entries.largest >= dense.max() / slack
    assert entries.has_zeros or linked.all()


@every_kernel()
def test_links_are_the_entries_above_0(case):
    links = case.kernel.links()
    pattern = np.isfinite(case.log_entries)
    if case.kernel.n_samples is not None:
        pattern = pattern.any(axis=0)
    assert_array_equal(links.toarray(), pattern)
    assert links.nnz == pattern.sum() or case.kernel.is_diagonal


@every_kernel(where=is_square)
def test_distance_to_identity_is_the_frobenius_norm(case):
    distance = ws.kernels.distance_to_identity(case.kernel)
    expected = np.linalg.norm(case.dense - np.eye(case.kernel.shape[0]), axis=(-2, -1))
    assert_allclose(distance, expected, rtol=1e-6)
    assert np.shape(distance) == (() if case.kernel.n_samples is None else (N_SAMPLES,))


@every_kernel()
def test_repr_names_class_sizes_and_type(case):
    n_source, n_target = case.kernel.shape
    words = repr(case.kernel)
    assert words.startswith(type(case.kernel).__name__ + "(")
    assert f"{n_source} source x {n_target} target labels" in words
    name = np.dtype(case.dtype).name
    assert name in words or case.kernel.dtype is None
    assert "torch" not in words


@every_kernel()
def test_tensor_is_there_exactly_where_torch_holds_the_entries(case):
    holds_arrays = isinstance(case.kernel, ws.kernels.SparseKernel) or case.kernel.dtype is None
    if case.in_torch and not holds_arrays:
        assert isinstance(case.kernel.tensor, torch.Tensor)
        assert case.kernel.tensor.dtype == case.kernel.dtype
    else:
        assert case.kernel.tensor is None


# -- what a kernel tells of its entries ----------------------------------------------


def whole(case):
    return case.kernel.n_samples is None


@every_kernel()
def test_logs_of_the_entries_are_exact(case):
    logs = values_of(case.kernel.to_log_dense())
    if case.kernel.n_samples is None:
        assert_allclose(logs, case.log_entries, rtol=1e-5, atol=1e-5)
    assert case.kernel.keeps_logs == bool((case.log_entries[np.isfinite(logs)] < -1000).any())


@every_kernel(where=whole)
def test_the_sparse_form_has_the_entries_above_0(case):
    csr = case.kernel.to_sparse()
    assert_allclose(csr.toarray(), case.dense, **case.tolerance)
    assert csr.nnz == (values_of(case.kernel.to_dense()) > 0).sum()


@every_kernel(where=whole)
def test_blocks_of_rows_are_the_entries(case, monkeypatch):
    for size in (1, 2 * case.kernel.shape[1], 10**6):
        monkeypatch.setattr("wassemble.kernels.base._BLOCK", size)
        found = [(start, sp.csr_array(rows).toarray()) for start, rows in case.kernel.blocks()]
        n_rows = [len(rows) for _, rows in found]
        assert [start for start, _ in found] == [sum(n_rows[:k]) for k in range(len(n_rows))]
        assert_allclose(np.vstack([rows for _, rows in found]), case.dense, **case.tolerance)
        assert all(sp.issparse(rows) == case.kernel.is_sparse for _, rows in case.kernel.blocks())


@every_kernel()
def test_arrays_give_back_the_same_kernel(case, rng):
    kernel = case.kernel.convert(None, case.dtype)
    arrays = kernel.to_arrays()
    again = ws.Kernel.from_arrays(arrays)
    assert type(again) is type(kernel)
    assert (again.shape, again.dtype, again.storage) == (kernel.shape, kernel.dtype, kernel.storage)
    assert again.is_symmetric == kernel.is_symmetric
    assert_array_equal(again.to_log_dense(), kernel.to_log_dense())
    for name, array in again.to_arrays().items():
        assert_array_equal(array, arrays[name])


@every_kernel(paired=True)
def test_arrays_that_are_not_those_of_a_kernel_are_refused(case):
    arrays = case.kernel.to_arrays()
    wrong = {
        "must say its storage": {**arrays, "storage": None},
        "`storage` must be one of": {**arrays, "storage": np.array("thick")},
        "`symmetric` must be True or False": {**arrays, "symmetric": np.array(2)},
        "`shape` must be two whole numbers": {**arrays, "shape": np.array([1.5, 2])},
        "must have the arrays": {**arrays, "more": np.ones(2)},
    }
    for words, given_arrays in wrong.items():
        kept = {name: array for name, array in given_arrays.items() if array is not None}
        with pytest.raises(ws.InvalidInputError, match=words):
            ws.Kernel.from_arrays(kept)
    n_source, n_target = case.kernel.shape
    with pytest.raises(ws.InvalidInputError):
        ws.Kernel.from_arrays({**arrays, "shape": np.array([n_source + 1, n_target])})


@every_kernel(where=lambda case: case.kernel.is_one_to_one)
def test_one_to_one_kernels_tell_which_source_label_each_target_label_has(case):
    sources, diagonal = case.kernel.matched_sources()
    n_source, n_target = case.kernel.shape
    dense = np.broadcast_to(case.dense, (case.kernel.n_samples or 1, n_source, n_target))
    sources = np.arange(n_target) if sources is None else sources
    found = np.where(sources >= 0, dense[:, sources, np.arange(n_target)], 0)
    similar = (sources >= 0) if diagonal is None else values_of(diagonal)
    assert_allclose(found, np.broadcast_to(similar, found.shape), **case.tolerance)
    assert_allclose(found.sum(), dense.sum(), rtol=1e-6)


@every_kernel(where=lambda case: not case.kernel.is_one_to_one, paired=True)
def test_other_kernels_have_no_such_labels(case):
    with pytest.raises(ws.InvalidInputError, match="labels must be matched one to one; got"):
        case.kernel.matched_sources()


# -- made from a kernel --------------------------------------------------------------


@every_kernel(where=whole, paired=True)
@settings(max_examples=15)
@given(data=st.data())
def test_select_takes_rows_and_columns(case, data):
    picks = []
    for n_labels in case.kernel.shape:
        places = st.lists(st.integers(0, n_labels - 1), min_size=1, max_size=7)
        mask = st.lists(st.booleans(), min_size=n_labels, max_size=n_labels).filter(any)
        picks.append(data.draw(st.none() | places.map(np.array) | mask.map(np.array)))
    kernel = case.kernel.select(*picks)
    rows, columns = (slice(None) if pick is None else pick for pick in picks)
    assert_allclose(values_of(kernel.to_dense()), case.dense[rows][:, columns], **case.tolerance)
    expected = case.log_entries[rows][:, columns]
    assert_allclose(values_of(kernel.to_log_dense()), expected, rtol=1e-5, atol=1e-5)
    log_v = case.array(np.linspace(-3, 2, kernel.shape[1]))
    assert_allclose(
        values_of(kernel.log_apply(log_v)), log_image(expected, log_v), **case.log_tolerance
    )
    if kernel.is_symmetric:
        assert_allclose(expected, expected.T, rtol=1e-5)
    if not kernel.is_sparse:
        assert (kernel.tensor is None) == (case.kernel.tensor is None)


@every_kernel()
def test_select_of_everything_is_the_kernel_itself(case):
    assert case.kernel.select() is case.kernel


@every_kernel(where=whole)
def test_select_keeps_storage_and_symmetry_where_both_sides_are_alike(case):
    if is_square(case):
        some = np.arange(case.kernel.shape[0])[::-1]
        kernel = case.kernel.select(some, some)
        assert type(kernel) is type(case.kernel)
        assert kernel.is_symmetric == case.kernel.is_symmetric
    assert case.kernel.select([0]).is_sparse == case.kernel.is_sparse
    assert case.kernel.select([0]).is_one_to_one >= case.kernel.is_one_to_one


@every_kernel(where=whole, paired=True)
def test_select_refuses_what_is_no_label(case):
    n_source, n_target = case.kernel.shape
    for wrong, words in (
        ([n_source], f"from 0 to {n_source - 1}; got {n_source}"),
        ([-1], f"from 0 to {n_source - 1}; got -1"),
        ([0.5], "source labels must be picked by one place or more, or by a mask of length"),
        ([], "source labels must be picked"),
        (np.zeros(n_source, dtype=bool), "source labels must be picked"),
        (np.ones(n_source + 1, dtype=bool), "source labels must be picked"),
    ):
        with pytest.raises(ws.InvalidInputError, match=words):
            case.kernel.select(wrong)
    with pytest.raises(ws.InvalidInputError, match=rf"target labels .* got {n_target}"):
        case.kernel.select(None, [n_target])


@every_kernel()
def test_power_raises_each_entry(case):
    tolerance = {"rtol": 1e-4, "atol": 1e-6} if case.dtype == np.float32 else {"rtol": 1e-11}
    for exponent in (0.5, 1, 2):
        kernel, expected = case.kernel.power(exponent), exponent * case.log_entries
        assert_allclose(values_of(kernel.to_dense()), np.exp(expected), **tolerance)
        assert kernel.is_symmetric == case.kernel.is_symmetric
        assert kernel.is_sparse == case.kernel.is_sparse
        assert kernel.dtype == case.kernel.dtype
        if case.kernel.n_samples is None:
            assert_allclose(values_of(kernel.to_log_dense()), expected, rtol=1e-5, atol=1e-5)


@every_kernel(paired=True)
def test_powers_are_above_0(case):
    for exponent in (0, -1, np.inf, "2"):
        with pytest.raises(ws.InvalidInputError, match=r"`exponent` must be .*above 0; got"):
            case.kernel.power(exponent)


def test_a_power_keeps_entries_that_vanish_as_logs():
    kernel = ws.kernels.DenseKernel([[1.0, 1e-200]]).power(2)
    assert kernel.keeps_logs
    assert_allclose(kernel.to_log_dense(), [[0, 2 * np.log(1e-200)]])


@every_kernel(where=lambda case: case.kernel.n_samples is None and not case.in_torch)
def test_embed_puts_the_kernel_between_more_labels(case):
    n_source, n_target = case.kernel.shape
    shape = n_source + 2, n_target + 3
    rows, columns = np.arange(n_source)[::-1] + 1, np.arange(n_target) + 2
    ones = np.array([0, n_source + 1]), np.array([1, 0])
    kernel = case.kernel.embed(shape, rows, columns, ones)
    expected = np.full(shape, -np.inf)
    expected[np.ix_(rows, columns)] = case.log_entries
    expected[ones] = 0
    assert_allclose(values_of(kernel.to_log_dense()), expected, rtol=1e-5, atol=1e-5)
    assert kernel.is_sparse == case.kernel.is_sparse
    assert not kernel.is_symmetric
    if is_square(case):
        last = np.array([n_source])
        places = np.arange(n_source)
        wide = case.kernel.embed((n_source + 1,) * 2, places, places, (last, last))
        assert wide.is_symmetric == case.kernel.is_symmetric


@every_kernel()
def test_converting_keeps_the_operator(case, rng):
    for dtype, in_torch in product((np.float32, np.float64), (False, True)):
        like = torch.zeros(()) if in_torch else None
        name = np.dtype(dtype).name
        kernel = case.kernel.convert(like, getattr(torch, name) if in_torch else dtype)
        assert type(kernel) is type(case.kernel)
        assert kernel.shape == case.kernel.shape
        assert kernel.is_symmetric == case.kernel.is_symmetric
        assert_allclose(values_of(kernel.to_dense()), case.dense, rtol=1e-5, atol=1e-7)
        log_v = rng.uniform(-500, 500, (N_SAMPLES, case.kernel.shape[1])).astype(dtype)
        log_kv = kernel.log_apply(torch.tensor(log_v) if in_torch else log_v)
        assert str(log_kv.dtype).removeprefix("torch.") == name
        assert_allclose(values_of(log_kv), log_image(case.log_entries, log_v), atol=2e-3)


@every_kernel(where=lambda case: not case.in_torch)
def test_converting_to_what_it_is_changes_nothing(case):
    assert case.kernel.convert(None, case.dtype) is case.kernel


@every_kernel(where=lambda case: case.in_torch)
def test_converting_from_torch_gives_numpy(case):
    kernel = case.kernel.convert(None, case.dtype)
    assert kernel.tensor is None
    assert isinstance(kernel.to_dense(), np.ndarray)
    assert_allclose(kernel.to_dense(), case.dense, **case.tolerance)


@every_kernel()
def test_take_keeps_the_kernel_of_the_rows(case):
    for rows in (slice(1, 3), np.array([2, 0]), np.array([True, False, True])):
        taken = case.kernel.take(rows)
        if case.kernel.n_samples is None:
            assert taken is case.kernel
        else:
            expected = case.dense[rows]
            assert taken.n_samples == len(expected)
            assert_allclose(values_of(taken.to_dense()), expected, **case.tolerance)


@every_kernel()
def test_scaled_multiplies_rows_and_columns(case, rng):
    # u overflows and v underflows, or the other way round, but their products do not.
    for offset in (0.0, 600.0, -600.0):
        check_scaled(case, offset, rng)


def check_scaled(case, offset, rng):
    kernel, log_entries = case.kernel, case.log_entries
    if kernel.n_samples is not None:
        kernel, log_entries = kernel.take(slice(1, 2)), log_entries[1]
    log_u = case.array(rng.uniform(-1, 1, kernel.shape[0]) + offset)
    log_v = case.array(rng.uniform(-1, 1, kernel.shape[1]) - offset)
    log_u[0] = -np.inf
    coupling = kernel.scaled(log_u, log_v)
    expected = np.exp(values_of(log_u)[:, None] + log_entries + values_of(log_v))
    rtol = 1e-3 if case.dtype == np.float32 else 1e-11
    assert coupling.shape == kernel.shape
    tiny = float(np.finfo(case.dtype).tiny)
    assert_allclose(values_of(coupling.to_dense()), expected, rtol=rtol, atol=tiny)
    clear = (expected == 0) | (expected >= tiny)
    assert_array_equal(coupling.links().toarray()[clear], expected[clear] > 0)
    cost = case.array(rng.uniform(0, 3, kernel.shape))
    assert_allclose(values_of(coupling.inner(cost)), (values_of(cost) * expected).sum(), rtol=rtol)
    # A coupling whose entries vanished is still a kernel.
    nothing = kernel.scaled(log_u - 3000, log_v)
    log_kv = nothing.log_apply(case.array(np.full(kernel.shape[1], -3000.0)))
    assert not np.isnan(values_of(log_kv)).any()


@every_kernel()
def test_inner_is_the_sum_of_entries_times_costs(case, rng):
    cost = case.array(rng.uniform(0, 3, case.kernel.shape))
    expected = (case.dense * values_of(cost)).sum(axis=(-2, -1))
    assert_allclose(values_of(case.kernel.inner(cost)), expected, **case.tolerance)


# -- wrong input ---------------------------------------------------------------------


@every_kernel(paired=True)
def test_products_refuse_what_is_not_an_array_of_numbers(case):
    for method in PRODUCTS:
        multiply = getattr(case.kernel, method)
        for wrong in ("scores", None, object(), [1j] * 6, [["a", "b"]]):
            with pytest.raises(
                ws.InvalidInputError, match=r"`(log_)?v` must hold real numbers; got an"
            ):
                multiply(wrong)
        with pytest.raises(ws.InvalidInputError, match=r"rectangular .* rows of different lengths"):
            multiply([[1.0, 2.0], [1.0]])


@every_kernel(paired=True)
def test_products_refuse_arrays_of_another_size(case):
    for method, axis in PRODUCTS.items():
        n_in = case.kernel.shape[axis]
        for wrong in (np.ones(n_in + 1), np.ones((2, n_in + 1)), 1.0):
            words = rf"last axis has length {n_in}; got shape \("
            with pytest.raises(ws.InvalidInputError, match=words):
                getattr(case.kernel, method)(case.array(wrong))


@every_kernel()
def test_products_take_lists_and_integers(case):
    for method, axis in PRODUCTS.items():
        multiply, ones = getattr(case.kernel, method), [1] * case.kernel.shape[axis]
        expected = values_of(multiply(case.array(ones)))
        assert_allclose(values_of(multiply(ones)), expected, **case.tolerance)


@every_kernel(paired=True)
def test_scaled_refuses_scalings_of_another_shape(case):
    n_source, n_target = case.kernel.shape
    u, v = case.array(np.zeros(n_source)), case.array(np.zeros(n_target))
    with pytest.raises(ws.InvalidInputError, match=r"`log_u` must have shape .* got shape \(\)"):
        case.kernel.scaled(0.0, v)
    with pytest.raises(ws.InvalidInputError, match=rf"`log_v` .* got shape \(1, {n_target}\)"):
        case.kernel.scaled(u, v[None])
    with pytest.raises(ws.InvalidInputError, match="`log_u` must hold real numbers; got an"):
        case.kernel.scaled("u", v)


@every_kernel(paired=True)
def test_inner_refuses_costs_of_another_shape(case):
    n_source, n_target = case.kernel.shape
    with pytest.raises(ws.InvalidInputError, match=r"`cost` must have the shape of the kernel, \("):
        case.kernel.inner(case.array(np.ones((n_source, n_target + 1))))
    with pytest.raises(ws.InvalidInputError, match=rf"got shape \({n_target},\)"):
        case.kernel.inner(case.array(np.ones(n_target)))
    with pytest.raises(ws.InvalidInputError, match="`cost` must hold real numbers; got an object"):
        case.kernel.inner(None)


@pytest.mark.parametrize(
    "name", [name for name in BUILDERS if name[:4] in ("diag", "dens", "low-")]
)
def test_a_numpy_kernel_refuses_tensors_and_names_the_way_out(name):
    kernel = make_case(name).kernel
    tensor = torch.ones(kernel.shape[1])
    words = r"`v` must be a NumPy array, .* got a torch tensor.\nhint: `kernel.convert\(v, v.dtype"
    with pytest.raises(ws.InvalidInputError, match=words):
        kernel.apply(tensor)


# -- entries that float32 cannot hold ------------------------------------------------

TINY = {
    "dense": lambda: ws.kernels.DenseKernel([[1.0, 1e-60]]),
    "dense-huge": lambda: ws.kernels.DenseKernel([[1e50, 1e-60]]),
    "from-log": lambda: ws.kernels.DenseKernel.from_log(np.log([[1.0, 1e-60]])),
    "sparse": lambda: ws.kernels.SparseKernel(sp.csr_array([[1.0, 1e-60]])),
    "low-rank": lambda: ws.kernels.LowRankKernel([[1.0, 1.0]], [[1.0, 0.0], [0.0, 1e-60]]),
    "low-rank-left": lambda: ws.kernels.LowRankKernel([[1.0, 1e-60]], [[1.0, 0.0], [0.0, 1.0]]),
    "low-rank-both": lambda: ws.kernels.LowRankKernel([[1.0, 1e-30]], [[1.0, 0.0], [0.0, 1e-30]]),
}


@pytest.mark.parametrize("in_torch", [False, True])
@pytest.mark.parametrize("name", TINY)
def test_entries_too_small_for_float32_survive_the_conversion(name, in_torch):
    like = torch.zeros(()) if in_torch else None
    kernel = TINY[name]().convert(like, torch.float32 if in_torch else np.float32)
    log_v = np.array([-np.inf, 1.0], dtype=np.float32)
    log_kv = kernel.log_apply(torch.tensor(log_v) if in_torch else log_v)
    assert str(log_kv.dtype).removeprefix("torch.") == "float32"
    assert_allclose(values_of(log_kv), [np.log(1e-60) + 1], rtol=1e-6)
    v = np.array([0.0, 1e30], dtype=np.float32)
    if name not in ("from-log", "low-rank-both"):  # these hold their entries as float32
        kv = kernel.apply(torch.tensor(v) if in_torch else v)
        assert_allclose(values_of(kv), [1e-30], rtol=1e-6)


@pytest.mark.parametrize("in_torch", [False, True])
def test_diagonal_entries_too_small_for_float32_survive_the_conversion(in_torch):
    like = torch.zeros(()) if in_torch else None
    kernel = ws.kernels.DiagonalKernel([1.0, 1e-60])
    kernel = kernel.convert(like, torch.float32 if in_torch else np.float32)
    log_v = np.array([0.5, 1.0], dtype=np.float32)
    log_kv = kernel.log_apply(torch.tensor(log_v) if in_torch else log_v)
    assert str(log_kv.dtype).removeprefix("torch.") == "float32"
    assert_allclose(values_of(log_kv), [0.5, np.log(1e-60) + 1], rtol=1e-6)


# -- what a kernel is made of ----------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        ws.kernels.DenseKernel,
        ws.kernels.DenseKernel.from_log,
        ws.kernels.DiagonalKernel,
        ws.kernels.LowRankKernel,
        lambda array: ws.kernels.SparseKernel(sp.csr_array(array)),
        lambda array: ws.kernels.LabelledKernel(array, ["cat", "dog"]),
        lambda array: ws.kernels.from_cost(array, epsilon=1.0),
    ],
)
def test_a_kernel_does_not_change_with_the_array_that_it_was_made_of(make):
    array = np.array([[1.0, 0.5], [0.5, 1.0]])
    kernel = make(array)
    before = np.array(kernel.to_dense())
    array[:] = 7
    assert_array_equal(kernel.to_dense(), before)


def test_a_match_does_not_change_with_its_places():
    places = np.array([1, 0])
    kernel = ws.kernels.MatchKernel(places, n_target=2)
    places[:] = -1
    assert_array_equal(kernel.to_dense(), [[0, 1], [1, 0]])


def test_a_kernel_with_very_many_entries_keeps_the_array_itself():
    array = np.ones((2**11 + 1, 2**11))
    assert np.shares_memory(ws.kernels.DenseKernel(array).to_dense(), array)
