"""Kernels with names in files: what comes back, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kernels.factories import BUILDERS, make_case
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.kernels import LabelledKernel, SparseKernel, load as load_kernel

KINDS = [name for name in BUILDERS if name != "diagonal-per-sample"]
IN_TABLES = [kind for kind in KINDS if "low-rank" not in kind and "log" not in kind]


def make(kind="sparse", dtype=np.float64):
    kernel = make_case(kind, dtype).kernel
    source = [f"näme, {k} " for k in range(kernel.shape[0])]
    target = [f"t\n{k}" for k in range(kernel.shape[1])]
    return LabelledKernel(kernel, source, target, f"{kind} by hand", ["one", "two: 'x'"])


def check_same(loaded, kernel):
    assert type(loaded.kernel) is type(kernel.kernel)
    assert_array_equal(loaded.to_dense(), kernel.to_dense())
    assert loaded.kernel.dtype == kernel.kernel.dtype
    assert loaded.kernel.is_symmetric == kernel.kernel.is_symmetric
    assert (loaded.source, loaded.target) == (kernel.source, kernel.target)
    assert (loaded.origin, loaded.notes) == (kernel.origin, kernel.notes)
    assert loaded.kernel.storage == kernel.kernel.storage
    assert_array_equal(loaded.kernel.to_log_dense(), kernel.kernel.to_log_dense())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npz_files_hold_every_kind(kind, dtype, tmp_path):
    kernel = make(kind, dtype)
    kernel.save(tmp_path / "new" / "kernel.npz")
    check_same(load_kernel(str(tmp_path / "new" / "kernel.npz")), kernel)


@pytest.mark.parametrize("kind", IN_TABLES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parquet_files_hold_kinds_with_entries(kind, dtype, tmp_path):
    kernel = make(kind, dtype)
    kernel.save(tmp_path / "kernel.parquet")
    check_same(load_kernel(tmp_path / "kernel.parquet"), kernel)


def test_the_measured_error_of_a_low_rank_kernel_is_kept(tmp_path):
    low_rank = ws.kernels.LowRankKernel([[1.0], [2.0]], measured_error=0.125)
    LabelledKernel(low_rank, ["a", "b"], ["a", "b"], "o").save(tmp_path / "k.npz")
    assert load_kernel(tmp_path / "k.npz").kernel.measured_error == 0.125


@pytest.mark.parametrize(
    ("kind", "words"),
    [("low-rank", "this one is low rank"), ("dense-from-log", "this one is dense in logs")],
)
def test_parquet_refuses_what_has_no_similarities_as_such(kind, words, tmp_path):
    with pytest.raises(ws.InvalidInputError, match=f"{words}.\nhint: save it as .npz"):
        make(kind).save(tmp_path / "k.parquet")
    assert list(tmp_path.iterdir()) == []


def test_other_programs_can_read_the_table(tmp_path):
    kernel = make("dense-rectangular")
    kernel.save(tmp_path / "k.parquet")
    table = pq.read_table(tmp_path / "k.parquet").to_pylist()
    assert len(table) == 18
    assert table[1] == {
        "source": "näme, 0 ",
        "target": "t\n1",
        "similarity": kernel.to_dense()[0, 1],
    }


def test_a_table_of_another_program_has_the_labels_that_occur(tmp_path):
    columns = {"target": ["x", "y", "x"], "source": ["b", "a", "a"], "similarity": [1, 2, 3]}
    pq.write_table(pa.table(columns), tmp_path / "k.parquet")
    kernel = load_kernel(tmp_path / "k.parquet")
    assert kernel.source.names == ("b", "a")
    assert kernel.target.names == ("x", "y")
    assert_array_equal(kernel.to_dense(), [[1, 0], [3, 2]])
    assert kernel.origin == "k.parquet"


def test_csv_files_have_the_labels_that_occur(tmp_path):
    path = tmp_path / "k.csv"
    path.write_text('source,target,similarity\nb,"x, y",0.5\n\na,z,1e-3\nb,z,0\n')
    kernel = load_kernel(path)
    assert kernel.source.names == ("b", "a")
    assert kernel.target.names == ("x, y", "z")
    assert_array_equal(kernel.to_dense(), [[0.5, 0], [0, 0.001]])
    assert isinstance(kernel.kernel, SparseKernel)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ": the first line must be source,target,similarity; got"),
        ("a,b,c\n", r": the first line must be source,target,similarity; got a,b,c"),
        ("source,target,similarity\n", ": must have at least one row below its header; got none"),
        ("source,target,similarity\na,b,x\n", ", line 2: `similarity` must be a number; got 'x'"),
        ("source,target,similarity\na,b\n", ", line 2: must have 3 fields; got 2"),
        ("source,target,similarity\na,,1\n", ", line 2: `target` must be a label name; got noth"),
        ("source,target,similarity\na,b,1\na,b,2\n", "must be in one row; got more for source 'a'"),
        ("source,target,similarity\na,b,-1\n", "must not be negative; got -1 at source label 'a'"),
        ("source,target,similarity\na,b,nan\n", "must not be nan; got nan at source label 'a', t"),
        ('source,target,similarity\n"a,b,1\n', ", line 2: must be a line of CSV"),
    ],
)
def test_a_wrong_csv_file_is_refused_with_its_line(text, words, tmp_path):
    path = tmp_path / "k.csv"
    path.write_text(text)
    refuse(path, words)


def refuse(path, words):
    with pytest.raises(ws.InvalidInputError, match=words) as caught:
        load_kernel(path)
    assert str(caught.value).startswith(str(path))


def test_a_csv_file_is_utf8(tmp_path):
    path = tmp_path / "k.csv"
    path.write_bytes(b"source,target,similarity\na,b,1\n\xff\xfe,b,2\n")
    refuse(path, r", line \d: must be UTF-8 text; got other bytes")


def test_other_suffixes_and_missing_files_are_refused(tmp_path):
    refuse(tmp_path / "k.txt", "must be .npz, .parquet or .csv; got '.txt'")
    refuse(tmp_path / "k.npz", "must be a file; there is none")
    for suffix in (".txt", ".csv", ""):
        with pytest.raises(ws.InvalidInputError, match=r"is saved as .npz or .parquet; got"):
            make().save(tmp_path / f"k{suffix}")


def test_names_that_a_format_cannot_hold_are_refused(tmp_path):
    kernel = LabelledKernel(ws.kernels.IdentityKernel(1), ["a\0"], ["b"], "o")
    with pytest.raises(ws.InvalidInputError, match="`source` must not end in a zero character"):
        kernel.save(tmp_path / "k.npz")
    with pytest.raises(ws.InvalidInputError, match="a label name must be readable text"):
        LabelledKernel(ws.kernels.IdentityKernel(1), ["\ud800"], ["b"], "o")
    assert list(tmp_path.iterdir()) == []


# -- files that lie ------------------------------------------------------------------


def change(path, **changes):
    with np.load(path) as file:
        arrays = dict(file)
    for name, value in changes.items():
        arrays.pop(name, None)
        if value is not None:
            arrays[name] = np.array(value)
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "wassemble kernel 99"}, "must be a kernel .* got wassemble kernel 99"),
        ({"origin": None, "notes": None}, "must be a kernel .* it lacks origin, notes"),
        ({"storage": None}, "the arrays of a kernel must say its storage; got"),
        ({"storage": "thick"}, "`storage` must be one of dense, .*; got 'thick'"),
        ({"shape": [4.0, 6.0, 1.0]}, r"must have shape \(4, 6\), as its names; got another"),
        ({"storage": "dense"}, r"that is dense must have the arrays \['matrix'\]; got \['data'"),
        ({"data": None}, r"must have the arrays \['data', 'indices', 'indptr'\]; got"),
        ({"more": 1}, r"must have the arrays \['data', 'indices', 'indptr'\]; got"),
        ({"source": ["a"]}, r"must have shape \(1, 6\), as its names; got another"),
        ({"target": ["a", "b"]}, r"must have shape \(4, 2\), as its names; got another"),
        ({"source": ["a"] * 4}, "label names must differ; got more than once: 'a'"),
        ({"source": [1, 2, 3, 4]}, "`source` must hold text; got int64"),
        ({"target": [["a"] * 6]}, r"`target` must be a list; got shape \(1, 6\)"),
        ({"symmetric": 1}, "`symmetric` must be True or False; got"),
        ({"symmetric": True}, "a symmetric `kernel` must be square"),
        ({"indptr": [0, 9, 8, 7, 24]}, "must be those of 4 source and 6 target labels"),
        ({"indices": [0.5] * 24}, "`indices` must hold whole numbers; got float64"),
        ({"indices": [99] * 24}, "must be those of 4 source and 6 target labels"),
        ({"data": [-1.0] * 24}, "must not be negative; got -1 at source label 'näme, 0 '"),
        ({"data": ["x"] * 24}, "`data` must hold numbers; got <U1"),
        ({"origin": "a\nb"}, "`origin` must say in one line"),
    ],
)
def test_an_npz_file_that_lies_is_refused(changes, words, tmp_path):
    make("sparse").save(tmp_path / "k.npz")
    change(tmp_path / "k.npz", **changes)
    refuse(tmp_path / "k.npz", words)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("dense", {"matrix": np.ones((2, 2))}, r"must have its shape, \(5, 5\); got \(2, 2\)"),
        ("dense", {"matrix": np.full((5, 5), np.nan)}, "must not be nan; got nan at source label"),
        ("dense", {"symmetric": True}, "declared symmetric must equal its transpose; got"),
        (
            "identity",
            {"target": ["a"], "shape": [4, 1]},
            "must have as many source as target labels",
        ),
        ("diagonal", {"diagonal": np.ones((3, 5))}, "same for every sample; got one of 3 samples"),
        ("low-rank", {"measured_error": "good"}, "`measured_error` must be a number; got"),
        (
            "low-rank",
            {"left": -np.ones((4, 2))},
            "`left` must not be negative; got -1 at row",
        ),
        ("dense-from-log", {"dtype": "int8"}, "`dtype` must be float32 or float64; got 'int8'"),
    ],
)
def test_every_kind_checks_its_own_arrays(kind, changes, words, tmp_path):
    make(kind).save(tmp_path / "k.npz")
    change(tmp_path / "k.npz", **changes)
    refuse(tmp_path / "k.npz", words)


def test_pickles_are_never_loaded(tmp_path):
    make().save(tmp_path / "k.npz")
    change(tmp_path / "k.npz", origin=None)
    with np.load(tmp_path / "k.npz") as file:
        np.savez(tmp_path / "k.npz", **dict(file), origin=np.array([object()]))
    refuse(tmp_path / "k.npz", "must be a .npz file of plain arrays; it cannot be read")
    np.save(tmp_path / "one.npy", np.ones(3))
    Path(tmp_path / "one.npy").rename(tmp_path / "one.npz")
    refuse(tmp_path / "one.npz", "must be a .npz file of plain arrays")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"storage": "thick"}, "`storage` must be one of dense, .*; got 'thick'"),
        ({"storage": "low rank"}, "similarities as such; a LowRankKernel has not"),
        ({"storage": "diagonal"}, "a diagonal kernel must join each label to itself alone"),
        ({"storage": "match"}, "a match must have the similarity 1 of each label to one other"),
        ({"storage": "identity"}, "an identity must have the similarity 1 of each label to itself"),
        ({"source": ["a"]}, "the source labels must hold every name in the table; they lack 'näme"),
        ({"source": "abcd"}, "`source` in the metadata must be a list; got 'abcd'"),
        ({"extra": 1}, "the metadata of a kernel must be .*; got other keys"),
        ({"symmetric": True}, "a symmetric `kernel` must be square"),
    ],
)
def test_parquet_metadata_that_lie_are_refused(changes, words, tmp_path):
    path = tmp_path / "k.parquet"
    make().save(path)
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"wassemble kernel"]) | changes
    pq.write_table(table.replace_schema_metadata({"wassemble kernel": json.dumps(about)}), path)
    refuse(path, words)


def test_parquet_metadata_are_json_and_an_identity_has_ones(tmp_path):
    path = tmp_path / "k.parquet"
    make("diagonal").save(path)
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"wassemble kernel"]) | {"storage": "identity"}
    pq.write_table(table.replace_schema_metadata({"wassemble kernel": json.dumps(about)}), path)
    refuse(path, "an identity must have the similarity 1 of each label to itself, and no other")
    pq.write_table(table.replace_schema_metadata({"wassemble kernel": "{"}), path)
    refuse(path, "the metadata of a kernel must be JSON; got an error")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"source": ["a"], "target": ["b"]}, "must have the columns source, target, similarity"),
        (
            {"source": [1], "target": ["b"], "similarity": [1.0]},
            "`source` must hold names; got int",
        ),
        (
            {"source": ["a", None], "target": ["b", "c"], "similarity": [1.0, 2]},
            "`source` must hav",
        ),
        ({"source": ["a"], "target": ["b"], "similarity": ["x"]}, "`similarity` must hold numbers"),
        ({"source": ["a"], "target": ["b"], "similarity": pa.array([None], pa.float64())}, "every"),
        ({"source": ["a"] * 2, "target": ["b"] * 2, "similarity": [1.0, 2]}, "must be in one row"),
    ],
)
def test_wrong_parquet_tables_are_refused(columns, words, tmp_path):
    pq.write_table(pa.table(columns), tmp_path / "k.parquet")
    refuse(tmp_path / "k.parquet", words)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_broken_bytes_are_an_error_that_names_the_file(suffix, rng, tmp_path):
    path = tmp_path / f"k{suffix}"
    make("dense").save(path)
    whole = path.read_bytes()
    check_broken(path, whole[: len(whole) // 2])
    check_broken(path, rng.bytes(500))
    check_broken(path, b"")
    for _ in range(150):
        changed = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            changed[place] ^= int(rng.integers(1, 256))
        check_broken(path, bytes(changed), may_pass=True)


def check_broken(path, content, *, may_pass=False):
    path.write_bytes(content)
    refused = ""
    try:
        load_kernel(path)
    except ws.InvalidInputError as error:
        refused = str(error)
    assert refused.startswith(str(path)) or (may_pass and not refused)


def test_writing_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "k.npz"
    make("dense").save(path)
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        make("sparse").save(path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["k.npz"]


def test_blocks_of_rows_are_written_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr("wassemble.kernels.base._BLOCK", 7)
    kernel = make("dense-rectangular")
    kernel.save(tmp_path / "k.parquet")
    assert pq.ParquetFile(tmp_path / "k.parquet").num_row_groups == 3
    assert_allclose(load_kernel(tmp_path / "k.parquet").to_dense(), kernel.to_dense())
