"""Dense kernels: what building one checks, and what it holds."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws

NOT_NUMBERS = [
    pytest.param("kernel", r"got an array of dtype <U6", id="string"),
    pytest.param([["a", "b"]], r"got an array of dtype <U1", id="strings"),
    pytest.param(None, r"got an object of type NoneType", id="none"),
    pytest.param(object(), r"got an object of type object", id="object"),
    pytest.param([[None, 1.0]], r"got an object of type list", id="none inside"),
    pytest.param({"a": 1.0}, r"got an object of type dict", id="dict"),
    pytest.param([[1j, 1.0]], r"got an array of dtype complex128", id="complex"),
    pytest.param(np.array([["2020"]], "M8[Y]"), r"got an array of dtype datetime64", id="dates"),
    pytest.param(
        torch.ones(1, 2, dtype=torch.cfloat), r"got a tensor of torch.complex64", id="tensor"
    ),
]
BUILDERS = [
    pytest.param(ws.kernels.DenseKernel, "kernel", id="init"),
    pytest.param(ws.kernels.DenseKernel.from_log, "log kernel", id="from_log"),
]


@pytest.mark.parametrize(("build", "name"), BUILDERS)
@pytest.mark.parametrize(("value", "got"), NOT_NUMBERS)
def test_what_holds_no_real_numbers_is_refused(build, name, value, got):
    with pytest.raises(ws.InvalidInputError, match=f"`{name}` must hold real numbers; {got}"):
        build(value)


@pytest.mark.parametrize(("build", "name"), BUILDERS)
def test_ragged_rows_are_refused(build, name):
    words = f"`{name}` must be a rectangular array of numbers; got rows of different lengths"
    with pytest.raises(ws.InvalidInputError, match=words):
        build([[1.0, 0.5], [1.0]])


@pytest.mark.parametrize(("build", "name"), BUILDERS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 2, 2)])
def test_another_number_of_axes_is_refused(build, name, shape):
    for ones in (np.ones(shape), torch.ones(shape)):
        with pytest.raises(ws.InvalidInputError, match=f"`{name}` must have two axes") as caught:
            build(ones)
        assert f"got shape {shape}" in str(caught.value)
        assert "one diagonal per sample is a `DiagonalKernel`" in str(caught.value)


@pytest.mark.parametrize(("build", "name"), BUILDERS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_a_kernel_without_labels_is_refused(build, name, shape):
    words = f"`{name}` must have at least one source label and one target label; got shape"
    for zeros in (np.zeros(shape), torch.zeros(shape)):
        with pytest.raises(ws.InvalidInputError, match=words):
            build(zeros)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "must not be nan; got nan"),
        (np.inf, "must be finite; got inf"),
        (-np.inf, "must be finite; got -inf"),
        (-0.25, "must not be negative; got -0.25"),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, torch.tensor])
def test_a_wrong_entry_is_named_with_its_place(value, words, make):
    matrix = make([[1.0, 0.5, 0.2], [0.5, 1.0, value]])
    with pytest.raises(
        ws.InvalidInputError, match=f"`kernel` {words} at source label 1, target label 2"
    ):
        ws.kernels.DenseKernel(matrix)


@pytest.mark.parametrize("value", [np.nan, np.inf, 710.0])
def test_a_wrong_log_entry_is_named_with_its_place(value):
    words = rf"`log kernel` must be a number below 709.8.*got {value:g} at source label 1, target"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.DenseKernel.from_log([[0.0, 0.0], [value, 0.0]])


def test_the_largest_log_entry_depends_on_the_floating_type():
    logs = np.array([[100.0]])
    assert_allclose(ws.kernels.DenseKernel.from_log(logs).to_dense(), np.exp(logs))
    with pytest.raises(ws.InvalidInputError, match=r"below 88.72, the log of the largest float32"):
        ws.kernels.DenseKernel.from_log(logs.astype(np.float32))


@pytest.mark.parametrize(("build", "name"), BUILDERS)
def test_a_kernel_declared_symmetric_must_be(build, name):
    words = rf"a `{name}` declared symmetric must equal its transpose; got 0.5 at row 0, column 1"
    with pytest.raises(ws.InvalidInputError, match=words + " and 0.25 at row 1, column 0"):
        build([[1.0, 0.5], [0.25, 1.0]], symmetric=True)
    with pytest.raises(ws.InvalidInputError, match=r"must be square; got shape \(2, 3\)"):
        build(np.ones((2, 3)), symmetric=True)


@pytest.mark.parametrize("build", [ws.kernels.DenseKernel, ws.kernels.DenseKernel.from_log])
@pytest.mark.parametrize("flag", ["no", None, 1, 0.0, [True]])
def test_symmetric_is_true_or_false(build, flag):
    with pytest.raises(ws.InvalidInputError, match="`symmetric` must be True or False; got"):
        build([[1.0]], symmetric=flag)


def test_symmetric_up_to_rounding_is_symmetric():
    assert ws.kernels.DenseKernel([[1.0, 0.1 + 0.2], [0.3, 1.0]], symmetric=True).is_symmetric
    logs = np.array([[0.0, -np.inf], [-np.inf, -5.0]])
    assert ws.kernels.DenseKernel.from_log(logs, symmetric=np.True_).is_symmetric
    assert not ws.kernels.DenseKernel(np.eye(2)).is_symmetric  # by declaration, never by looking


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.int64, np.float64),
        (np.uint8, np.float64),
        (np.bool_, np.float64),
        (np.longdouble, np.float64),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.int32, torch.float64),
        (torch.bool, torch.float64),
    ],
)
def test_numbers_of_other_types_are_widened(given, kept):
    is_tensor = isinstance(given, torch.dtype)
    ones = torch.ones((2, 2), dtype=given) if is_tensor else np.ones((2, 2), dtype=given)
    assert ws.kernels.DenseKernel(ones).dtype == kept
    assert ws.kernels.DenseKernel.from_log(ones).dtype == kept


def test_a_sparse_tensor_is_refused():
    words = (
        r"`kernel` must be a dense tensor; got one of layout torch.sparse_coo.\nhint: use `tensor"
    )
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.DenseKernel(torch.eye(3).to_sparse())


def test_a_list_of_tensors_with_gradients_is_refused():
    rows = list(torch.ones((2, 2), requires_grad=True))
    words = r"`kernel` must be one array or tensor; got a list of tensors.\nhint: torch.stack"
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.kernels.DenseKernel(rows)


def test_a_sparse_matrix_is_refused():
    with pytest.raises(ws.InvalidInputError, match="must hold real numbers; got an object of type"):
        ws.kernels.DenseKernel(sp.eye_array(3))


def test_the_entries_cannot_be_written():
    matrix = np.eye(3)
    kernel = ws.kernels.DenseKernel(matrix)
    with pytest.raises(ValueError, match="read-only"):
        kernel.to_dense()[0, 0] = 5
    assert matrix.flags.writeable


def test_entry_range_tells_zeros_from_small_entries():
    with_zero = ws.kernels.DenseKernel([[0.0, 0.5], [2.0, 1.0]]).entries
    assert (with_zero.smallest, with_zero.largest, with_zero.has_zeros) == (0.5, 2.0, True)
    without = ws.kernels.DenseKernel([[0.25, 0.5]]).entries
    assert (without.smallest, without.largest, without.has_zeros) == (0.25, 0.5, False)
    nothing = ws.kernels.DenseKernel([[0.0]]).entries
    assert (nothing.largest, nothing.has_zeros) == (0.0, True)
    underflown = ws.kernels.DenseKernel.from_log([[0.0, -3000.0]]).entries
    assert (underflown.smallest, underflown.has_zeros) == (0.0, False)
    assert ws.kernels.DenseKernel.from_log([[0.0, -np.inf]]).entries.has_zeros


def test_entry_range_fits_a_type_that_holds_every_entry():
    single, double = np.finfo(np.float32), np.finfo(np.float64)
    for entry, fits in ((1.0, True), (1e-60, False), (1e60, False)):
        entries = ws.kernels.DenseKernel([[1.0, entry]]).entries
        assert entries.fit(single) is fits
        assert entries.fit(double) is True


def test_sums_beyond_the_floating_range_have_a_log():
    for dtype in (np.float32, np.float64):
        entry = np.finfo(dtype).max / 2
        kernel = ws.kernels.DenseKernel(np.full((1, 4), entry, dtype=dtype))
        log_kv = kernel.log_apply(np.zeros(4, dtype=dtype))
        assert_allclose(log_kv, [np.log(4) + np.log(float(entry))], rtol=1e-6)


def test_a_tensor_kernel_takes_arrays_of_another_type():
    kernel = ws.kernels.DenseKernel(torch.tensor([[1.0, 2.0]], dtype=torch.float32))
    image = kernel.apply(np.array([0.1, 0.2]))
    assert image.dtype == torch.float64
    assert_allclose(image.numpy(), [0.5])


def test_underflown_entries_count_as_links():
    kernel = ws.kernels.DenseKernel.from_log([[0.0, -3000.0, -np.inf]])
    assert_array_equal(kernel.links().toarray(), [[True, True, False]])
    assert_array_equal(kernel.to_dense(), [[1.0, 0.0, 0.0]])


def test_a_cut_has_each_row_in_one_piece(rng):
    kernel = ws.kernels.DenseKernel(rng.uniform(size=(6, 7)))
    for rows, columns in (([4, 1], [0, 5, 2]), (None, [0, 5]), ([4, 1], None)):
        assert kernel.select(rows, columns).to_dense().flags.c_contiguous


@pytest.mark.parametrize("n_kept", [1, 64, 65, 150])
def test_a_cut_of_a_symmetric_kernel_has_all_its_entries(n_kept, rng):
    matrix = rng.random((200, 200))
    matrix += matrix.T
    places = rng.permutation(200)[:n_kept]
    logs = ws.kernels.DenseKernel.from_log(np.log(matrix), symmetric=True).select(places, places)
    assert_array_equal(
        ws.kernels.DenseKernel(matrix, symmetric=True).select(places, places).to_dense(),
        matrix[np.ix_(places, places)],
    )
    assert_array_equal(logs.to_log_dense(), np.log(matrix[np.ix_(places, places)]))
