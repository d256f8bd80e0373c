"""Every builder passes every law."""

import json
import subprocess
import sys

import numpy as np
import pytest
from kernels.builders.factories import every_builder
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.kernels import from_spelling, load as load_kernel

CLOSE = {"rtol": 2e-4, "atol": 1e-7}


@every_builder()
def test_the_shape_is_the_number_of_labels_on_either_side(builder):
    kernel = builder()
    assert kernel.kernel.shape == (len(builder.source), len(builder.target))
    assert kernel.source.names == builder.source
    assert kernel.target.names == builder.target


@every_builder()
def test_entries_are_finite_and_not_negative(builder):
    dense = builder().to_dense()
    assert np.isfinite(dense).all()
    assert (dense >= 0).all()
    assert dense.any()


@every_builder()
def test_labels_in_another_order_give_the_entries_in_that_order(builder, rng):
    kernel = builder()
    rows = rng.permutation(len(builder.source))
    square = builder.source == builder.target
    columns = rows if square else rng.permutation(len(builder.target))
    source = [builder.source[i] for i in rows]
    target = [builder.target[j] for j in columns]
    other = builder(source, target)
    assert_allclose(other.to_dense(), kernel.to_dense()[np.ix_(rows, columns)], **CLOSE)
    assert_allclose(kernel.align(source, target).to_dense(), other.to_dense(), **CLOSE)


@every_builder()
def test_other_names_give_the_same_entries(builder):
    other = builder(rename=str.upper)
    assert_allclose(other.to_dense(), builder().to_dense(), **CLOSE)
    assert other.source.names == tuple(name.upper() for name in builder.source)


@every_builder()
def test_building_twice_gives_the_same_kernel(builder):
    first, second = builder(), builder()
    assert_array_equal(first.to_dense(), second.to_dense())
    assert (first.origin, first.notes) == (second.origin, second.notes)


@every_builder()
def test_aligning_to_its_own_labels_gives_the_very_same_object(builder):
    kernel = builder()
    assert kernel.align(builder.source, list(builder.target)) is kernel.kernel


@every_builder()
def test_npz_files_give_back_the_same_kernel(builder, tmp_path):
    kernel = builder()
    kernel.save(tmp_path / "kernel.npz")
    check_same(load_kernel(tmp_path / "kernel.npz"), kernel)


@every_builder()
def test_parquet_files_give_back_the_same_kernel(builder, tmp_path):
    kernel = builder()
    if kernel.kernel.keeps_entries:
        kernel.save(tmp_path / "kernel.parquet")
        check_same(load_kernel(tmp_path / "kernel.parquet"), kernel)


def check_same(loaded, kernel):
    assert_array_equal(loaded.to_dense(), kernel.to_dense())
    assert type(loaded.kernel) is type(kernel.kernel)
    assert loaded.kernel.dtype == kernel.kernel.dtype
    assert loaded.kernel.is_symmetric == kernel.kernel.is_symmetric
    assert (loaded.source, loaded.target) == (kernel.source, kernel.target)
    assert (loaded.origin, loaded.notes) == (kernel.origin, kernel.notes)


@every_builder()
def test_the_account_agrees_with_the_dense_form(builder):
    kernel = builder()
    account = kernel.account()
    linked = ~np.isneginf(kernel.kernel.to_log_dense())
    assert account.n_entries == linked.sum()
    assert account.source_coverage == linked.any(axis=1).mean()
    assert account.target_coverage == linked.any(axis=0).mean()
    assert account.lost_source == tuple(np.array(builder.source)[~linked.any(axis=1)])
    assert account.unreached_target == tuple(np.array(builder.target)[~linked.any(axis=0)])
    shares = [row / row.sum() for row in kernel.to_dense().astype(float) if row.any()]
    numbers = [np.exp(-(share[share > 0] * np.log(share[share > 0])).sum()) for share in shares]
    expected = min(numbers), np.median(numbers), max(numbers)
    assert_allclose(account.n_effective, expected, rtol=1e-6)
    if builder.source == builder.target:
        identity = np.eye(len(builder.source))
        assert_allclose(account.distance_to_identity, np.linalg.norm(kernel.to_dense() - identity))
    else:
        assert account.distance_to_identity is None
    json.dumps(account.to_dict())
    assert kernel.origin in str(account)


@every_builder()
def test_the_strongest_pairs_are_those_of_the_dense_form(builder):
    kernel = builder()
    dense = kernel.to_dense().astype(float)
    tops = dense.max(axis=1, keepdims=True)
    relative = dense / np.where(tops > 0, tops, 1)
    for i, a in enumerate(builder.source):
        for j, b in enumerate(builder.target):
            relative[i, j] *= a != b
    best = np.sort(relative[relative > 0])[::-1]
    account = kernel.account()
    values = [value for _, _, value in account.strongest_pairs]
    assert values == sorted(values, reverse=True)
    if builder.source != builder.target:
        assert_allclose(values, best[:10], rtol=1e-6)
    for a, b, value in account.strongest_pairs:
        assert a != b
        place = builder.source.index(a), builder.target.index(b)
        assert_allclose(relative[place], value, rtol=1e-6, atol=1e-37)


def test_importing_the_builders_imports_nothing_optional():
    script = "import json, sys, wassemble.kernels; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout))
    assert "wassemble.kernels.builders" in loaded
    assert loaded.isdisjoint({"networkx", "rapidfuzz", "pyarrow", "torch", "pandas"})


def test_what_is_not_installed_is_named_with_the_way_to_install_it(monkeypatch, tmp_path):
    for module in ("rapidfuzz.process", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ws.MissingExtraError, match=r"needs rapidfuzz, .*\nhint: pip install 'wass"):
        from_spelling(["a"])
    (tmp_path / "k.parquet").touch()
    with pytest.raises(ws.MissingExtraError, match="reading Parquet files needs pyarrow"):
        load_kernel(tmp_path / "k.parquet")
