"""Kernels with label names: what they check, aligning them, and their accounts."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, strategies as st
from kernels.factories import BUILDERS, make_case
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace

KINDS = [name for name in BUILDERS if name != "diagonal-per-sample"]


def names_for(n_labels, letter):
    return [f"{letter}{k}" for k in range(n_labels)]


def make(kind, dtype=np.float64):
    kernel = make_case(kind, dtype).kernel
    n_source, n_target = kernel.shape
    return LabelledKernel(kernel, names_for(n_source, "s"), names_for(n_target, "t"), kind)


# -- building one --------------------------------------------------------------------


def test_names_may_be_any_iterable():
    kernel = LabelledKernel(
        ws.kernels.IdentityKernel(2), (name for name in "ab"), LabelSpace(["x", "y"]), "o"
    )
    assert kernel.source == LabelSpace(["a", "b"])
    assert kernel.shape == (2, 2)
    assert repr(kernel) == "LabelledKernel(2 source x 2 target labels, IdentityKernel, from o)"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": ["a"]}, r"must have shape \(1, 3\), one row for each source label.*\(2, 3\)"),
        ({"target": ["a"]}, r"must have shape \(2, 1\), one row for each source label.*\(2, 3\)"),
        ({"source": ["a", "a"]}, "label names must differ; got more than once: 'a'"),
        ({"kernel": np.ones((3, 3))}, r"must have shape \(2, 3\).*got \(3, 3\)"),
        ({"kernel": -np.ones((2, 3))}, "negative; got -1 at source label 'a', target label 'x'"),
        ({"kernel": "similar"}, "`kernel` must hold real numbers"),
        ({"origin": ""}, "`origin` must say in one line how the kernel was made; got ''"),
        ({"origin": "two\nlines"}, "`origin` must say in one line"),
        ({"notes": [3]}, "a note must be a text; got 3"),
    ],
)
def test_what_does_not_fit_is_refused(changes, words):
    arguments = {
        "kernel": ws.kernels.DenseKernel(np.ones((2, 3))),
        "source": ["a", "b"],
        "target": ["x", "y", "z"],
        "origin": "by hand",
    }
    with pytest.raises(ws.InvalidInputError, match=words):
        LabelledKernel(**arguments | changes)


def test_kernels_per_sample_and_of_torch_have_no_names():
    per_sample = ws.kernels.DiagonalKernel(np.ones((4, 2)))
    with pytest.raises(ws.InvalidInputError, match="same for every sample; got one of 4 samples"):
        LabelledKernel(per_sample, "ab", ["a", "b"], "o")
    in_torch = ws.kernels.DenseKernel(torch.eye(2))
    with pytest.raises(ws.InvalidInputError, match="must hold NumPy entries; got a torch tensor"):
        LabelledKernel(in_torch, ["a", "b"], ["a", "b"], "o")


def test_a_kernel_whose_rows_are_split_over_ranks_has_no_names():
    kernel = ws.kernels.DenseKernel(np.eye(2))
    kernel.is_split = True
    with pytest.raises(ws.InvalidInputError, match="must be whole; got some of its rows"):
        LabelledKernel(kernel, ["a", "b"], ["a", "b"], "o")


# -- aligning ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_aligning_to_its_own_labels_gives_the_very_same_object(kind):
    kernel = make(kind)
    assert kernel.align(kernel.source, kernel.target) is kernel.kernel
    assert kernel.align(list(kernel.source), list(kernel.target)) is kernel.kernel


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_aligned_entries_are_those_of_the_labels_asked_for(kind, data):
    kernel = make(kind)
    n_source, n_target = kernel.shape
    rows = data.draw(st.lists(st.integers(0, n_source - 1), min_size=1, unique=True))
    columns = data.draw(st.lists(st.integers(0, n_target - 1), min_size=1, unique=True))
    aligned = kernel.align([f"s{i}" for i in rows], [f"t{j}" for j in columns])
    both = np.ix_(rows, columns)
    assert_allclose(aligned.to_dense(), kernel.to_dense()[both], rtol=1e-12)
    assert aligned.keeps_logs == kernel.kernel.keeps_logs
    logs = kernel.kernel.to_log_dense()
    assert_allclose(aligned.to_log_dense(), logs[both], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_permutation_of_both_sides_keeps_kind_type_and_symmetry(kind, dtype, rng):
    kernel = make(kind, dtype)
    n_source, n_target = kernel.shape
    rows = rng.permutation(n_source)
    columns = rows if n_source == n_target else rng.permutation(n_target)
    aligned = kernel.align([f"s{i}" for i in rows], [f"t{j}" for j in columns])
    assert type(aligned) is type(kernel.kernel)
    assert aligned.dtype == kernel.kernel.dtype
    assert aligned.is_symmetric == kernel.kernel.is_symmetric


def test_a_diagonal_kernel_taken_apart_is_sparse():
    kernel = make("diagonal")
    aligned = kernel.align(["s3", "s0", "s4"], ["t0", "t1", "t3", "t4"])
    assert isinstance(aligned, ws.kernels.SparseKernel)
    assert_array_equal(aligned.to_dense(), kernel.to_dense()[np.ix_([3, 0, 4], [0, 1, 3, 4])])


def test_a_large_sparse_kernel_is_aligned_without_its_dense_form(rng):
    n_labels = 30_000  # 7 GB if dense
    places = rng.integers(0, n_labels, (2, 100_000))
    matrix = sp.csr_array((np.ones(100_000), tuple(places)), shape=(n_labels, n_labels))
    names = names_for(n_labels, "w")
    kernel = LabelledKernel(ws.kernels.SparseKernel(matrix), names, names, "random")
    aligned = kernel.align(names[::-1], names[::2])
    assert aligned.shape == (n_labels, n_labels // 2)
    v = rng.random(n_labels // 2)
    full = np.zeros(n_labels)
    full[::2] = v
    assert_allclose(aligned.apply(v), kernel.kernel.apply(full)[::-1])


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (["s0", "x", "y"], ["t0"], "must know every source label; it lacks 'x', 'y'"),
        (["s0"], ["t0", "z"], "must know every target label; it lacks 'z'.\nhint: it was made fr"),
    ],
)
def test_labels_that_it_does_not_know_are_named(source, target, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        make("dense").align(source, target)


# -- accounts ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_kind_has_an_account_that_agrees_with_its_dense_form(kind, dtype):
    kernel = make(kind, dtype)
    account = kernel.account()
    dense, logs = kernel.to_dense(), kernel.kernel.to_log_dense()
    if kernel.kernel.keeps_logs:
        dense = np.exp(logs - logs.max(axis=1, keepdims=True))
    linked = ~np.isneginf(logs)
    assert account.n_entries == linked.sum()
    assert len(account.lost_source) == (~linked.any(axis=1)).sum()
    assert len(account.unreached_target) == (~linked.any(axis=0)).sum()
    shares = [row / row.sum() for row in dense.astype(float) if row.any()]
    numbers = [np.exp(-(row[row > 0] * np.log(row[row > 0])).sum()) for row in shares] or [0]
    expected = min(numbers), np.median(numbers), max(numbers)
    assert_allclose(account.n_effective, expected, rtol=1e-5)
    json.dumps(account.to_dict())


def test_the_account_reads_as_text():
    matrix = [[1.0, 0.5, 0.0], [0.25, 0.5, 0.0], [0.0, 0.0, 0.0]]
    names = ["cat", "dog", "car"]
    kernel = LabelledKernel(ws.kernels.DenseKernel(matrix), names, names, "by hand", ["a note"])
    assert str(kernel.account()).splitlines() == [
        "origin           by hand",
        "kernel           DenseKernel, 3 source x 3 target labels",
        "pairs joined     4",
        "source coverage  66.67 %; 1 go nowhere: 'car'",
        "target coverage  66.67 %; 1 unreached: 'car'",
        "neighbours       median 1.89 (from 1.89 to 1.89), effective",
        "from identity    1.25",
        "hubs             none",
        "note             a note",
        "strongest pairs between different names, 1 for the largest of a row",
        "  0.500  'cat' -> 'dog'",
    ]


def test_the_distance_to_identity_goes_by_names_and_not_by_places():
    names = ["a", "b", "c"]
    kernel = LabelledKernel(ws.kernels.IdentityKernel(3), names, ["b", "c", "a"], "shifted")
    assert kernel.account().distance_to_identity == pytest.approx(np.sqrt(6))
    shifted = ws.kernels.DenseKernel([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])
    assert LabelledKernel(shifted, names, ["b", "c", "a"], "o").account().distance_to_identity == 0
    assert (
        LabelledKernel(shifted, names, ["x", "c", "a"], "o").account().distance_to_identity is None
    )


def test_a_label_that_takes_from_most_others_is_a_hub():
    n_labels = 50
    names = names_for(n_labels, "w")
    matrix = np.eye(n_labels)
    matrix[:, 7] = 1.0
    account = LabelledKernel(ws.kernels.DenseKernel(matrix), names, names, "o").account()
    # Half of 49 labels and all of its own, where the others have half of one.
    assert account.hubs == (("w7", pytest.approx(25.5)),)
    assert "'w7' (25.5)" in str(account)
    assert (
        LabelledKernel(ws.kernels.IdentityKernel(9), names[:9], names[:9], "o").account().hubs == ()
    )


@pytest.mark.parametrize(("n_extra", "is_hub"), [(4, False), (5, True)])
def test_a_hub_takes_more_than_five_times_the_median(n_extra, is_hub):
    target = names_for(10, "t")
    matrix = np.vstack([np.eye(10), np.repeat(np.eye(10)[:1], n_extra, axis=0)])
    kernel = LabelledKernel(
        ws.kernels.DenseKernel(matrix), names_for(len(matrix), "s"), target, "o"
    )
    assert bool(kernel.account().hubs) == is_hub  # the first label has 1 + n_extra, others 1


@pytest.mark.parametrize(("n_source", "is_hub"), [(4, False), (6, True)])
def test_a_hub_takes_three_labels_whole(n_source, is_hub):
    matrix = np.tile([0.6, *[0.05] * 8], (n_source, 1))  # 2.4 of four labels, 3.6 of six
    source, target = names_for(n_source, "s"), names_for(9, "t")
    kernel = LabelledKernel(ws.kernels.DenseKernel(matrix), source, target, "o")
    assert bool(kernel.account().hubs) == is_hub


def test_a_pair_is_told_once_and_ties_go_to_the_first():
    names = names_for(30, "w")
    kernel = LabelledKernel(ws.kernels.DenseKernel(np.ones((30, 30))), names, names, "all alike")
    pairs = kernel.account().strongest_pairs
    assert [pair[:2] for pair in pairs] == [("w0", f"w{k}") for k in range(1, 11)]


def test_blocks_of_rows_give_the_same_account(monkeypatch, rng):
    names = names_for(40, "w")
    dense = ws.kernels.DenseKernel(rng.random((40, 40)))
    logs = ws.kernels.from_cost(1000 * rng.random((40, 40)), epsilon=1.0)
    for kernel in (dense, logs):
        labelled = LabelledKernel(kernel, names, names, "o")
        whole = labelled.account()
        monkeypatch.setattr("wassemble.kernels.base._BLOCK", 90)
        monkeypatch.setattr("wassemble.kernels.named.account._BLOCK", 90)
        parts = labelled.account()
        monkeypatch.undo()
        assert whole.strongest_pairs == parts.strongest_pairs
        assert_allclose(whole.n_effective, parts.n_effective, rtol=1e-12)
        assert (whole.n_entries, whole.hubs) == (parts.n_entries, parts.hubs)


SIMILAR = np.array([[1.0, 0.1], [0.9, 0.2], [0.1, 1.0]])
BREEDS, PETS = ["husky", "beagle", "tabby"], ["dog", "cat"]


@pytest.mark.parametrize(
    "make", [np.array, np.ndarray.tolist, sp.csr_array, ws.kernels.DenseKernel]
)
def test_a_table_and_its_names_are_enough(make):
    kernel = ws.LabelledKernel(make(SIMILAR), BREEDS, PETS)
    assert_array_equal(kernel.to_dense(), SIMILAR)
    assert kernel.source.names == tuple(BREEDS)
    assert isinstance(
        kernel.kernel, ws.kernels.SparseKernel if make is sp.csr_array else ws.kernels.DenseKernel
    )
    assert len(kernel.origin.splitlines()) == 1


def frames():
    """The same similarities, rows and columns in another order, in each library."""
    rows, columns = [2, 0, 1], [1, 0]
    shuffled = SIMILAR[np.ix_(rows, columns)]
    names = [BREEDS[i] for i in rows]
    scores = {PETS[j]: shuffled[:, k].tolist() for k, j in enumerate(columns)}
    return {
        "pandas": pd.DataFrame(scores, index=names),
        "pandas with a column of names": pd.DataFrame({"breed": names} | scores),
        "polars": pl.DataFrame({"breed": names} | scores),
        "pyarrow": pa.table(scores | {"breed": names}),
    }


@pytest.mark.parametrize("library", frames())
def test_a_data_frame_is_read_by_name(library):
    frame = frames()[library]
    own = ws.LabelledKernel(frame)
    assert_array_equal(own.align(BREEDS, PETS).to_dense(), SIMILAR)
    given = ws.LabelledKernel(frame, BREEDS, PETS)
    assert (given.source.names, given.target.names) == (tuple(BREEDS), tuple(PETS))
    assert_array_equal(given.to_dense(), SIMILAR)


def test_a_data_frame_with_other_names_is_refused_with_these():
    frame = frames()["pandas"]
    for source, target, words in (
        ([*BREEDS, "poodle"], PETS, "row for each source label, by name.*none for 'poodle'"),
        (BREEDS[1:], PETS, "no other; got 'husky' besides"),
        (BREEDS, ["dog", "cow"], "column for each target label.*none for 'cow' and 'cat' besides"),
        (PETS, BREEDS, r"(?s)none for 'dog', 'cat' and .*hint: `\.T`"),
    ):
        with pytest.raises(ws.InvalidInputError, match=words):
            ws.LabelledKernel(frame, source, target)
    with pytest.raises(ws.InvalidInputError, match="more than once: 'husky'"):
        ws.LabelledKernel(frame.set_axis(["husky", "husky", "tabby"]))
    with pytest.raises(ws.InvalidInputError, match=r"one column must name the rows.*got none"):
        ws.LabelledKernel(pl.DataFrame({"dog": [1.0], "cat": [0.0]}))
    with pytest.raises(ws.InvalidInputError, match="got 'a', 'b'"):
        ws.LabelledKernel(pl.DataFrame({"a": ["x"], "b": ["y"], "cat": [0.0]}))
    with pytest.raises(ws.InvalidInputError, match="'dog' must hold numbers; got 'near'"):
        ws.LabelledKernel(pd.DataFrame({"dog": ["near"]}, index=["cat"]))
    with pytest.raises(ws.InvalidInputError, match="and no names"):
        ws.LabelledKernel(SIMILAR)
    with pytest.raises(ws.InvalidInputError, match="nan at source label 'tabby'"):
        ws.LabelledKernel(frame.where(frame < 1))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(np.eye(3)),
        pd.DataFrame(np.eye(3), index=[0, 1, 2], columns=["0", "1", "2"]),
        pd.DataFrame(np.eye(3)[[2, 0, 1]], index=[2.0, 0.0, 1.0]),
        pl.DataFrame({"label": [1, 0, 2], "0": [0, 1, 0], "1": [1, 0, 0], "2": [0, 0, 1]}),
    ],
)
def test_names_of_labels_may_be_whole_numbers(frame):
    kernel = ws.LabelledKernel(frame)
    assert_array_equal(kernel.align([0, 1, 2], ["0", "1", "2"]).to_dense(), np.eye(3))
    assert kernel.source is kernel.target
