"""Files of predictions: every format in and out, whole and in chunks, and clear refusals."""

import gzip
import json
import lzma
import os
import struct
import subprocess
import sys
import textwrap
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from wassemble import InvalidInputError
from wassemble.errors import MissingExtraError
from wassemble.inputs import (
    Predictions,
    PredictionWriter,
    open_predictions,
    read_predictions,
    write_predictions,
)
from wassemble.inputs.files import read_truth
from wassemble.inputs.formats import arrow_files, csv_files
from wassemble.inputs.formats.sources import blame

nan = float("nan")
TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".arrow", ".feather", ".ipc")
JSON = (".jsonl", ".ndjson")
SUFFIXES = (*TABLES, *JSON, ".npz", ".npy")
TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", *JSON)

every_format = pytest.mark.parametrize("suffix", SUFFIXES)


def some_predictions(rng, *, n_samples=7, n_labels=3, dtype="f8", ids=None):
    scores = rng.random((n_samples, n_labels)).astype(dtype)
    scores[rng.random(scores.shape) < 0.2] = nan
    labels = [f"label {place}" for place in range(n_labels)]
    ids = [f"s{place}" for place in range(n_samples)] if ids is None else ids
    return Predictions("tiny", ids, labels, scores, kind="multilabel")


def same(one, other):
    assert one.samples.tolist() == other.samples.tolist()
    assert one.labels == other.labels
    np.testing.assert_array_equal(one.scores, other.scores)


def put(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(match, path, **options):
    """The refusal of a file, by both ways to read it."""
    texts = []
    for read in (read_predictions, lambda *a, **k: list(open_predictions(*a, **k).chunks(2))):
        with pytest.raises(InvalidInputError, match=match) as caught:
            read(path, **options)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert texts[0].startswith(f"{path.name}: ")
    assert texts[0].count("\n") <= 1
    return texts[0]


# Round trips.


@every_format
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("ids", [None, [3, 1, -4, 15, 9, 2, 6]])
def test_what_is_written_is_read(tmp_path, rng, suffix, ids, dtype):
    predictions = some_predictions(rng, dtype=dtype, ids=ids)
    path = tmp_path / f"net.v2{suffix}"
    write_predictions(path, predictions)
    found = read_predictions(path)
    assert found.samples.tolist() == predictions.samples.tolist()
    assert found.labels == predictions.labels
    np.testing.assert_array_equal(found.scores.astype(dtype), predictions.scores)
    assert found.scores.dtype == ("f8" if suffix in TEXT else dtype)
    assert found.model == ("tiny" if suffix == ".npz" else "net.v2")
    assert read_predictions(path, model="mine").model == "mine"


@every_format
def test_strange_names_are_kept(tmp_path, suffix):
    labels = ['a,b;c\td"e"', "ä😀", " x ", "NA", "sample_id ", "0.5", "*"]
    samples = ["é,\t1", "NA", '"', " 7", "nan"]
    if suffix != ".npy":
        labels.append("line\nbreak\r\n")
        samples.append("a\nb\r")
    scores = np.arange(len(labels) * len(samples), dtype=float).reshape(len(samples), -1)
    predictions = Predictions("tiny", samples, labels, scores)
    write_predictions(tmp_path / f"odd{suffix}", predictions)
    same(read_predictions(tmp_path / f"odd{suffix}"), predictions)


@every_format
def test_ten_thousand_columns(tmp_path, rng, suffix):
    predictions = some_predictions(rng, n_samples=3, n_labels=10_000)
    write_predictions(tmp_path / f"wide{suffix}", predictions)
    same(read_predictions(tmp_path / f"wide{suffix}"), predictions)


@every_format
def test_no_samples_at_all(tmp_path, suffix):
    predictions = Predictions("tiny", [], ["cat", "dog"], np.empty((0, 2)))
    path = tmp_path / f"none{suffix}"
    write_predictions(path, predictions)
    options = {"labels": ["cat", "dog"]} if suffix in JSON else {}
    same(read_predictions(path, **options), predictions)
    with open_predictions(path, **options) as file:
        (chunk,) = file.chunks(5)
        same(chunk, predictions)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("id_type", [np.int64, object])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".npz"])
def test_a_file_without_samples_keeps_its_types(tmp_path, suffix, id_type, dtype):
    nothing = Predictions("tiny", np.empty(0, id_type), ["cat", "dog"], np.empty((0, 2), dtype))
    path = tmp_path / f"none{suffix}"
    write_predictions(path, nothing)
    found = read_predictions(path)
    assert found.samples.dtype == id_type
    assert found.scores.dtype == dtype


def test_a_long_table_without_rows_keeps_its_types(tmp_path):
    schema = pa.schema({"sample": pa.int32(), "label": pa.string(), "score": pa.float32()})
    pq.write_table(schema.empty_table(), tmp_path / "none.parquet")
    found = read_predictions(tmp_path / "none.parquet", labels=["cat"])
    assert found.samples.dtype == np.int64
    assert found.scores.dtype == np.float32


@every_format
def test_no_score_at_all(tmp_path, suffix):
    predictions = Predictions("tiny", ["a", "b"], ["cat", "dog"], np.full((2, 2), nan))
    path = tmp_path / f"none{suffix}"
    write_predictions(path, predictions)
    same(read_predictions(path), predictions)
    if suffix == ".parquet":
        assert pq.read_table(path)["cat"].null_count == 2
    if suffix == ".arrow":
        assert pa.feather.read_table(path)["cat"].null_count == 2


@every_format
def test_extreme_scores_are_kept_to_the_last_bit(tmp_path, suffix):
    tiny, huge = np.finfo(float).smallest_subnormal, np.finfo(float).max
    scores = [[0, tiny, huge, 1 / 3], [1, nan, np.nextafter(1, 2), 1e-300]]
    predictions = Predictions("tiny", ["a", "b"], list("wxyz"), scores)
    write_predictions(tmp_path / f"edge{suffix}", predictions)
    same(read_predictions(tmp_path / f"edge{suffix}"), predictions)


def test_an_npz_keeps_all_that_is_known(tmp_path):
    scores = [[1, nan], [nan, 1]]
    predictions = Predictions("big", [5, 6], ["a", "b"], scores, kind="multilabel", is_hard=True)
    write_predictions(tmp_path / "x.npz", predictions)
    found = read_predictions(tmp_path / "x.npz")
    assert (found.model, found.kind, found.is_hard) == ("big", "multilabel", True)
    assert not found.kind_is_detected
    with open_predictions(tmp_path / "x.npz", kind="multiclass") as file:
        assert (file.model, file.kind, file.is_hard) == ("big", "multiclass", True)


def test_the_written_text_is_plain(tmp_path):
    predictions = Predictions("tiny", ["a", "b,c"], ["cat", "d,g"], [[0.9, 0.1], [nan, 1]])
    write_predictions(tmp_path / "x.csv", predictions.take([0]))
    assert (tmp_path / "x.csv").read_bytes() == b'sample,cat,"d,g"\na,0.9,0.1\n'
    write_predictions(tmp_path / "x.csv", predictions.take([1]))
    assert (tmp_path / "x.csv").read_bytes() == b'sample,cat,"d,g"\n"b,c",,1\n'
    write_predictions(tmp_path / "x.tsv", predictions.take([1]))
    assert (tmp_path / "x.tsv").read_bytes() == b"sample\tcat\td,g\nb,c\t\t1\n"
    write_predictions(tmp_path / "x.jsonl", predictions.take([1]))
    assert json.loads((tmp_path / "x.jsonl").read_text()) == {
        "sample": "b,c",
        "scores": {"cat": None, "d,g": 1.0},
    }
    write_predictions(tmp_path / "x.npy", predictions.take([1]))
    assert (tmp_path / "x.labels.txt").read_bytes() == b"cat\nd,g\n"
    assert (tmp_path / "x.samples.txt").read_bytes() == b"b,c\n"
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), [[nan, 1]])


@pytest.mark.parametrize("suffix", TABLES)
def test_the_column_of_ids_gets_a_name_that_no_label_has(tmp_path, suffix):
    predictions = Predictions("tiny", ["a"], ["sample", "cat"], [[0.5, 0.5]])
    path = tmp_path / f"x{suffix}"
    write_predictions(path, predictions)
    refused("got 'sample' and 'sample_id'", path)
    same(read_predictions(path, id_column="sample_id"), predictions)
    same(read_predictions(path, labels=["sample", "cat"]), predictions)
    taken = Predictions("tiny", ["a"], ["sample", "id", "sample_id"], [[0.5, 0.5, 0]])
    with pytest.raises(InvalidInputError, match=rf"x{suffix}: one of the names .* must be free"):
        write_predictions(path, taken)


@every_format
def test_the_same_predictions_give_the_same_bytes(tmp_path, rng, suffix, monkeypatch):
    predictions = some_predictions(rng)
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    write_predictions(one, predictions)
    later = time.time() + 1000
    monkeypatch.setattr(time, "time", lambda: later)
    write_predictions(two, predictions)
    assert one.read_bytes() == two.read_bytes()


# Chunks.


@every_format
@pytest.mark.parametrize("n_rows", [1, 3, 7, 100])
def test_chunks_are_the_whole_in_pieces(tmp_path, rng, suffix, n_rows):
    predictions = some_predictions(rng)
    path = tmp_path / f"x{suffix}"
    write_predictions(path, predictions)
    with open_predictions(path) as file:
        assert file.samples.tolist() == predictions.samples.tolist()
        assert file.labels == predictions.labels
        assert file.n_samples == 7
        assert file.kind == "multilabel"
        assert file.kind_is_detected == (suffix != ".npz")
        assert file.streams == (suffix != ".npz")
        for _ in range(2):  # as often as you like
            chunks = list(file.chunks(n_rows))
            assert [c.n_samples for c in chunks[:-1]] == [n_rows] * (len(chunks) - 1)
            assert [s for c in chunks for s in c.samples] == predictions.samples.tolist()
            np.testing.assert_array_equal(
                np.concatenate([chunk.scores for chunk in chunks]), predictions.scores
            )


@every_format
def test_chunks_that_are_written_are_the_whole(tmp_path, rng, suffix):
    predictions = some_predictions(rng, dtype="f4" if suffix not in TEXT else "f8")
    path = tmp_path / f"x{suffix}"
    with PredictionWriter(path, predictions.labels) as writer:
        for rows in ([0, 1], [], [2], [3, 4, 5, 6]):
            writer.write(predictions.take(rows))
        assert not path.exists()
    same(read_predictions(path), predictions)
    assert read_predictions(path).scores.dtype == predictions.scores.dtype


@every_format
def test_a_long_file_in_small_pieces(tmp_path, rng, suffix, monkeypatch):
    monkeypatch.setattr(csv_files, "_BLOCK", 1 << 12)
    monkeypatch.setattr(csv_files, "_BYTES_PER_FIELD", 1)
    monkeypatch.setattr(csv_files, "_N_FIELDS", 700)
    monkeypatch.setattr(arrow_files, "_GROUP_CELLS", 300)
    predictions = some_predictions(rng, n_samples=1000, n_labels=5)
    path = tmp_path / f"x{suffix}"
    with PredictionWriter(path, predictions.labels) as writer:
        for start in range(0, 1000, 64):
            writer.write(predictions.take(slice(start, start + 64)))
    same(read_predictions(path), predictions)
    with open_predictions(path, kind="multilabel") as file:
        chunks = list(file.chunks(77))
    assert [chunk.n_samples for chunk in chunks] == [77] * 12 + [76]
    np.testing.assert_array_equal(np.concatenate([c.scores for c in chunks]), predictions.scores)


@pytest.fixture
def two_arrow_threads():
    """Arrow reads ahead for each of its threads, and has one for each core."""
    before = pa.cpu_count()
    pa.set_cpu_count(2)
    yield
    pa.set_cpu_count(before)


@pytest.mark.usefixtures("two_arrow_threads")
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".npy", ".jsonl"])
def test_memory_is_flat_when_streaming(tmp_path, rng, suffix, monkeypatch):
    monkeypatch.setattr(csv_files, "_BLOCK", 1 << 16)
    monkeypatch.setattr(csv_files, "_BYTES_PER_FIELD", 100)
    monkeypatch.setattr(csv_files, "_N_FIELDS", 1 << 14)
    monkeypatch.setattr(arrow_files, "_GROUP_CELLS", 1 << 14)
    labels = [f"label {place}" for place in range(400)]
    n_chunks, n_rows = (16, 25) if suffix == ".jsonl" else (40, 100)
    size = n_chunks * n_rows * len(labels) * 8
    path = tmp_path / f"big{suffix}"
    allocated = []

    def measured(step):
        step()
        allocated.append(pa.total_allocated_bytes())

    write_predictions(path, some_predictions(rng))
    read_predictions(path)  # what is imported for it is not counted
    tracemalloc.start()
    try:
        before = pa.total_allocated_bytes()
        with PredictionWriter(path, labels) as writer:
            for start in range(0, n_chunks * n_rows, n_rows):
                scores = rng.random((n_rows, 400))
                ids = range(start, start + n_rows)
                measured(lambda s=scores, i=ids: writer.write(Predictions("m", i, labels, s)))
        with open_predictions(path, kind="multilabel") as file:
            chunks = file.chunks(n_rows)
            for _ in range(n_chunks):
                measured(lambda: next(chunks))
        peak = tracemalloc.get_traced_memory()[1] + max(allocated) - before
    finally:
        tracemalloc.stop()
    assert peak < size / 2, f"{peak:,} bytes of {size:,}"


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".jsonl"])
def test_long_tables_come_in_chunks_too(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    rows = {"id": [1, 2, 1, 3], "label": ["a", "b", "b", None], "score": [0.5, 0.6, 0.7, None]}
    if suffix == ".jsonl":
        keys = list(rows)
        lines = [dict(zip(keys, row, strict=True)) for row in zip(*rows.values(), strict=True)]
        put(path, "\n".join(map(json.dumps, lines)))
    else:
        writers = {".csv": "write_csv", ".parquet": "write_parquet", ".arrow": "write_ipc"}
        getattr(pl.DataFrame(rows), writers[suffix])(path)
    whole = read_predictions(path)
    assert whole.samples.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(whole.scores, [[0.5, 0.7], [nan, 0.6], [nan, nan]])
    with open_predictions(path, labels=["b", "a", "z"]) as file:
        assert not file.streams
        chunks = list(file.chunks(2))
    assert [chunk.samples.tolist() for chunk in chunks] == [[1, 2], [3]]
    np.testing.assert_array_equal(chunks[0].scores, [[0.7, 0.5, nan], [0.6, nan, nan]])


def test_chunks_never_say_something_else_than_the_whole(tmp_path):
    lines = [f"{i},0.5,0.5" for i in range(3000)] + ["last,0.9,0.9"]
    path = put(tmp_path / "x.csv", "\n".join(["sample,a,b", *lines]))
    assert read_predictions(path).kind == "multilabel"
    with open_predictions(path) as file:
        assert file.kind == "multiclass"
        assert file.kind_is_detected
        assert next(file.chunks(10)).kind_is_detected
        with pytest.raises(InvalidInputError, match=r"x.csv: .* a sum of 1.8 at sample 'last'"):
            list(file.chunks(1000))
    with open_predictions(path, kind="multilabel") as file:
        assert sum(chunk.n_samples for chunk in file.chunks(1000)) == 3001


@pytest.mark.parametrize("n_rows", [1, 7, 5000])
def test_one_missing_score_makes_short_sums_histograms(tmp_path, n_rows):
    """The first answers of a list: what is missing in one row speaks for all of them."""
    short = [f"{i},0.5,0.3" for i in range(3000)]
    path = put(tmp_path / "x.csv", "\n".join(["sample,a,b", "first,0.5,", "low,0.1,0.1", *short]))
    assert read_predictions(path).kind == "multiclass"
    with open_predictions(path) as file:
        assert file.kind == "multiclass"
        assert sum(chunk.n_samples for chunk in file.chunks(n_rows)) == 3002
    path = put(tmp_path / "x.csv", "\n".join(["sample,a,b", *short, "last,0.5,"]))
    assert read_predictions(path).kind == "multiclass"
    with open_predictions(path) as file:
        assert file.kind == "multilabel"
        with pytest.raises(InvalidInputError, match=r"got missing scores, .* at sample 'last'"):
            list(file.chunks(n_rows))
    path = put(tmp_path / "x.csv", "\n".join(["sample,a,b", "big,0.9,0.9", *short, "last,0.5,"]))
    assert read_predictions(path).kind == "multilabel"
    with open_predictions(path) as file:
        assert sum(chunk.n_samples for chunk in file.chunks(n_rows)) == 3002


@every_format
def test_an_open_file_is_read_whole_as_it_is_read_at_once(rng, tmp_path, suffix):
    path = tmp_path / f"tiny{suffix}"
    write_predictions(path, some_predictions(rng, n_samples=3000))
    with open_predictions(path, kind="multilabel") as file:
        whole = file.read()
        same(whole, read_predictions(path, kind="multilabel"))
        same(whole, file.read())  # again, from the start
    with pytest.raises(InvalidInputError, match="has been closed"):
        file.read()


def test_a_later_sample_may_not_contradict_the_kind_of_a_file_that_is_read_whole(tmp_path):
    rows = ["0.5,0.5"] * 2000 + ["0.9,0.9"]
    text = "".join(f"{place},{row}\n" for place, row in enumerate(rows))
    path = put(tmp_path / "x.csv", f"sample,a,b\n{text}")
    with open_predictions(path) as file:
        assert file.kind == "multiclass"
        with pytest.raises(InvalidInputError, match=r"must hold for all; got a sum of 1\.8"):
            file.read()


@pytest.mark.parametrize("suffix", TABLES[:4])
@pytest.mark.parametrize("n_samples", [0, 3, 5000])
def test_a_csv_is_opened_three_times_at_most_and_let_go_of(
    rng, tmp_path, monkeypatch, suffix, n_samples
):
    path = tmp_path / f"tiny{suffix}"
    write_predictions(path, some_predictions(rng, n_samples=n_samples))
    opened, n_native = [], 0

    def open_bytes(path, *, real=csv_files._open_bytes):
        opened.append(real(path))
        return opened[-1]

    def open_for_arrow(file, *, real=csv_files._open_for_arrow):
        nonlocal n_native
        n_native += 1
        return real(file)

    monkeypatch.setattr(csv_files, "_open_bytes", open_bytes)
    monkeypatch.setattr(csv_files, "_open_for_arrow", open_for_arrow)
    with open_predictions(path) as file:
        assert sum(chunk.n_samples for chunk in file.chunks(7)) == n_samples
    assert len(opened) == 1
    assert n_native <= 2
    with open_predictions(path):
        pass
    assert all(each.closed for each in opened)
    if (folder := Path("/proc/self/fd")).exists():
        deadline = time.monotonic() + 10  # a thread may be reading ahead still
        while any(str(path) == os.path.realpath(each) for each in folder.iterdir()):
            assert time.monotonic() < deadline


@pytest.mark.parametrize("ending", ["csv", "tsv.gz"])
@pytest.mark.parametrize("is_long", [False, True])
def test_the_threads_of_arrow_never_call_python(tmp_path, ending, is_long):
    # A thread that is in Python's hands while the interpreter ends aborts the process: here each
    # reading of a file of Python's takes so long that one would be, were there any.
    mark = "," if ending == "csv" else "\t"
    header = ("sample", "label", "score") if is_long else ("sample", "a", "b")
    row = ("{}", "a", "0.5") if is_long else ("{}", "0.5", "0.5")
    lines = [mark.join(header), *(mark.join(row).format(place) for place in range(10_000))]
    lines.insert(600, "short")
    text = "\n".join(lines).encode()
    path = put(tmp_path / f"x.{ending}", gzip.compress(text) if ending.endswith("gz") else text)
    script = f"""
        import io, time
        from pathlib import Path
        import pyarrow.csv
        from wassemble.errors import InvalidInputError
        from wassemble.inputs import open_predictions
        from wassemble.inputs.formats import csv_files

        class Slow(io.BufferedReader):
            def read(self, size=-1):
                time.sleep(0.2)
                return super().read(size)

        real, csv_files._BLOCK = csv_files._open_bytes, 1 << 12
        csv_files._open_bytes = lambda path: Slow(real(path))
        csv_files._explain = lambda *_: None  # goes through the whole file, slowly
        try:
            open_predictions({str(path)!r}, label_column="label" if {is_long} else None)
        except InvalidInputError:
            print("refused")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n", "")


def test_a_file_that_changes_between_ids_and_scores_is_refused(tmp_path):
    path = put(tmp_path / "x.csv", "sample,a\n1,1\n2,1\n")
    with open_predictions(path, kind="multilabel") as file:
        put(path, "sample,a\n1,1\n")
        with pytest.raises(InvalidInputError, match="must not change while it is read"):
            list(file.chunks(5))
        put(path, "sample,a\n1,1\n2,1\n3,1\n")
        with pytest.raises(InvalidInputError, match="must not change while it is read"):
            list(file.chunks(5))


def test_a_closed_file_has_no_chunks(tmp_path):
    path = put(tmp_path / "x.csv", "sample,a\n1,1\n2,1\n")
    with open_predictions(path) as file:
        chunks = file.chunks(1)
        next(chunks)
        for wrong in (0, -1, 1.5, "3"):
            with pytest.raises(InvalidInputError, match="`n_rows` must be"):
                file.chunks(wrong)
    assert list(chunks) == []
    with pytest.raises(InvalidInputError, match=r"x.csv: the file must be open"):
        file.chunks(1)


# CSV and TSV.


def test_text_with_a_byte_order_mark_and_any_line_ends(tmp_path):
    for mark in (b"", b"\xef\xbb\xbf"):
        for end in (b"\n", b"\r\n", b"\r"):
            for last in (b"", end, end + end):
                content = mark + end.join([b"", b'"sample",cat', b"a,1", b"", b"b,"]) + last
                found = read_predictions(put(tmp_path / "x.csv", content))
                assert found.samples.tolist() == ["a", "b"]
                np.testing.assert_array_equal(found.scores, [[1], [nan]])


def test_other_encodings_are_refused_with_their_line(tmp_path):
    path = tmp_path / "x.csv"
    text = "sample,cat\nx,1\nmäuse,1\n"
    refused("must be UTF-8; line 3 is not", put(path, text.encode("latin-1")))
    refused("must be UTF-8; line 1 is not", put(path, text.replace("cat", "ä").encode("cp1252")))
    refused("it looks like UTF-16", put(path, text.encode("utf-16")))
    many = "sample,cat\n" + "x,1\n" * 5000 + "ä,1\n"
    refused("must be UTF-8; line 5002 is not", put(path, many.encode("latin-1")))


def test_ids_of_text_files_are_integers_if_all_are_written_so(tmp_path):
    for ids, expected in (
        (["0", "-17", "3"], [0, -17, 3]),
        (["007", "8"], ["007", "8"]),
        (["-0", "1"], ["-0", "1"]),
        (["1", "a"], ["1", "a"]),
        (["1.0", "2.0"], ["1.0", "2.0"]),
        (["9" * 25, "1"], ["9" * 25, "1"]),
        (["9" * 5000, "1"], ["9" * 5000, "1"]),
        (["NA", "nan"], ["NA", "nan"]),
        (["٣", "1"], ["٣", "1"]),
    ):
        path = put(tmp_path / "x.csv", "sample,cat\n" + "".join(f"{i},0.5\n" for i in ids))
        assert read_predictions(path).samples.tolist() == expected


def test_missing_scores_and_flags_of_text_files(tmp_path):
    missing = ["", "NA", "nan", "NaN", "null", '""']
    path = put(
        tmp_path / "x.csv", "id,cat\n" + "".join(f"{i},{m}\n" for i, m in enumerate(missing))
    )
    assert np.isnan(read_predictions(path).scores).all()
    path = put(tmp_path / "x.csv", "id,cat,dog\n1,True,false\n2,,true\n3,False,TRUE\n")
    np.testing.assert_array_equal(read_predictions(path).scores, [[1, 0], [nan, 1], [0, 1]])
    path = put(
        tmp_path / "x.csv", "id,cat\n" + "".join(f"{i},True\n" for i in range(30)) + "x,0.5\n"
    )
    refused("line 32, column 'cat' must hold True or False, as above; got '0.5'", path)


def test_a_wrong_number_of_fields_names_the_line(tmp_path):
    path = tmp_path / "x.csv"
    refused("line 3 must have 3 fields; got 2", put(path, "sample,a,b\nx,1,2\ny,1\n"))
    refused("line 2 must have 3 fields; got 4", put(path, "sample,a,b\nx,1,2,3\ny,1\n"))
    refused("line 5 must have 2 fields; got 3", put(path, 'sample,a\n"x\n\ny",1\nz,1,2\n'))
    text = refused("line 2 must have 2 fields; got 1", put(path, 'sample,a\n"x,1\ny,2\n'))
    assert "a quote is opened there" in text


def test_a_score_that_is_no_number_names_line_and_column(tmp_path):
    path = tmp_path / "x.tsv"
    refused("line 3, column 'a' must hold a number; got 'x'", put(path, "id\ta\n1\t.5\n2\tx\n"))
    refused("line 3, column 'a' must hold a number; got '1_0'", put(path, "id\ta\n1\t.5\n2\t1_0\n"))
    refused("must be finite; got inf at sample", put(path, "id\ta\n1\tinf\n"))
    refused("must not be negative; got -1 at sample", put(path, "id\ta\n1\t1\n2\t-1\n"))
    long = put(tmp_path / "x.csv", "id,label,score\n1,cat,0.5\n\n2,cat,high\n")
    refused("line 4, column 'score' must hold a number; got 'high'", long)


def test_other_separators_are_hinted_at(tmp_path):
    text = refused("separated by ','", put(tmp_path / "x.csv", "sample;cat;dog\na;0,5;0,5\n"))
    assert "hint: it looks as if they were separated by ';'" in text
    text = refused(r"separated by '\\t'", put(tmp_path / "x.tsv", "sample,cat,dog\na,1,2\n"))
    assert "separated by ','" in text


def test_a_field_or_a_row_without_an_end_is_refused(tmp_path, monkeypatch):
    path = put(tmp_path / "x.csv", "sample,cat\na,1\n" + "b" * 200_000 + ",1\n")
    refused("line 3 must be readable; got: field larger than field limit", path)
    monkeypatch.setattr(csv_files, "_BLOCK", 1000)
    path = put(tmp_path / "x.csv", "sample,cat\na,1\n" + "b" * 2000 + ",1\n")
    refused("a row must have at most 1,000 bytes; got a longer one", path)
    wide = ",".join(["sample", *map(str, range(999))]) + "\na" + ",0.5" * 999
    assert read_predictions(put(tmp_path / "x.csv", wide)).scores.shape == (1, 999)


def test_empty_text_files(tmp_path):
    for content in ("", "\n\n", "\ufeff"):
        refused("must name the columns; got an empty file", put(tmp_path / "x.csv", content))
    for content in ("sample,cat,dog", "sample,cat,dog\n", "\nsample,cat,dog\r\n"):
        path = put(tmp_path / "x.csv", content)
        assert read_predictions(path).scores.shape == (0, 2)
    path = put(tmp_path / "x.csv", "sample,label,score\n")
    refused("must name at least one label", path)
    assert read_predictions(path, labels=["cat"]).scores.shape == (0, 1)
    refused("column of scores for each label; got none", put(tmp_path / "x.csv", "sample\na\n"))


def test_ids_of_text_files_that_are_missing_or_come_twice(tmp_path):
    path = tmp_path / "x.csv"
    refused("must have a sample id; got none at line 4", put(path, "id,a\n1,1\n\n,1\n"))
    refused("must differ; got more than once: '1'", put(path, "id,a\n1,1\n2,1\n1,1\n"))
    refused("names of columns must differ; got more than once: 'a'", put(path, "id,a,a\n1,1,1\n"))
    refused("label name must be a text that is not empty", put(path, "id,a,\n1,1,1\n"))
    refused("sample 'x', label 'a', at line 2 and line 5", put(path, "id,label\nx,a\ny,a\n\nx,a\n"))


def test_a_column_without_a_name_can_hold_the_ids(tmp_path):
    path = tmp_path / "x.csv"
    frame = pd.DataFrame({"cat": [0.5, 1.0]}, index=["a", "b"])
    frame.to_csv(path)
    assert read_predictions(path).samples.tolist() == ["a", "b"]
    frame.reset_index(drop=True).to_csv(path)
    for options in ({}, {"id_column": ""}):
        read = read_predictions(path, **options)
        assert read.samples.tolist() == [0, 1]
        assert read.origin.ids == "ids in the column without a name"
        assert read.origin.id_column is None  # no name to write


def test_a_truncated_gzip_is_refused(tmp_path):
    packed = gzip.compress(b"sample,cat\n" + b"".join(b"%d,0.5\n" % i for i in range(9999)))
    refused("must be a whole gzipped CSV file", put(tmp_path / "x.csv.gz", packed[:-100]))
    refused("must be a whole gzipped CSV file", put(tmp_path / "x.csv.gz", b"sample,cat\na,1\n"))


# Parquet and Arrow.


def test_files_of_other_libraries(tmp_path):
    columns = {"image": ["a", "b"], "cat": [0.5, None], "dog": [1, 0]}
    expected = [[0.5, 1], [nan, 0]]
    frames = pl.DataFrame(columns), pd.DataFrame(columns)
    frames[0].write_parquet(tmp_path / "polars.parquet")
    frames[0].write_ipc(tmp_path / "polars.arrow", compression="zstd")
    frames[0].write_ipc_stream(tmp_path / "stream.arrow")
    frames[1].to_parquet(tmp_path / "pandas.parquet")
    frames[1].to_feather(tmp_path / "pandas.feather")
    frames[1].set_index("image").to_parquet(tmp_path / "index.parquet")
    frames[1].drop(columns="image").set_axis(["a", "b"]).to_parquet(tmp_path / "noname.parquet")
    for path in tmp_path.iterdir():
        found = read_predictions(path)
        assert found.samples.tolist() == ["a", "b"]
        assert found.labels.names == ("cat", "dog")
        np.testing.assert_array_equal(found.scores, expected)
    frames[1].drop(columns="image").set_axis([7, 8]).to_parquet(tmp_path / "numbers.parquet")
    assert read_predictions(tmp_path / "numbers.parquet").samples.tolist() == [7, 8]


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_an_index_of_pandas_beside_ids_is_no_label(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"

    def write(frame):
        table = pa.Table.from_pandas(frame)
        (pq.write_table if suffix == ".parquet" else pa.feather.write_feather)(table, path)

    wide = pd.DataFrame({"sample": ["a", "b", "c"], "cat": [0.5, 0.1, 1], "dog": [0.5, 0.9, 0]})
    for index in (None, "fold", "__null_dask_index__"):
        write(wide[wide["dog"] > 0].rename_axis(index))
        found = read_predictions(path)
        assert found.samples.tolist() == ["a", "b"]
        assert found.labels.names == ("cat", "dog")
    write(wide.set_index([[0.1, 0.2, 0.3]]).rename_axis("eel"))
    assert read_predictions(path).labels.names == ("cat", "dog")
    assert read_predictions(path, labels=["eel", "cat"]).scores[:, 0].tolist() == [0.1, 0.2, 0.3]
    write(wide.rename(columns={"sample": "image"}).set_axis([7, 8, 9]))
    assert read_predictions(path, id_column="image").labels.names == ("cat", "dog")
    # Of several levels, the one that holds ids is known by its name or its type.
    for name in ("id", "image"):
        write(wide.rename(columns={"sample": name}).assign(fold=1).set_index([name, "fold"]))
        assert read_predictions(path).samples.tolist() == ["a", "b", "c"]
        assert read_predictions(path).labels.names == ("cat", "dog")
    # A long table stays one.
    long = pd.DataFrame({"sample": ["a", "b"], "label": ["cat", "dog"], "score": [0.9, 0.8]})
    write(long[long["score"] > 0.85].set_axis([3]))
    assert read_predictions(path).scores.tolist() == [[0.9]]


@pytest.mark.parametrize(
    "noted",
    [b"{", b"\xff", b"[" * 99_999, b"[1]", b'{"index_columns": "cat"}', b'{"index_columns": [1]}'],
)
def test_what_pandas_noted_must_be_readable(tmp_path, noted):
    path = tmp_path / "x.parquet"
    table = pa.table({"sample": ["a"], "cat": [1.0]})
    pq.write_table(table.replace_schema_metadata({"pandas": noted}), path)
    refused("what pandas noted in the table about its index must be readable", path)
    for fine in (b"{}", b'{"index_columns": ["gone", {"kind": "range"}]}'):
        pq.write_table(table.replace_schema_metadata({"pandas": fine}), path)
        assert read_predictions(path).labels.names == ("cat",)


def test_names_with_dots_are_names_in_parquet(tmp_path):
    predictions = Predictions("tiny", ["x"], ["sample.a", "a", "a.b"], [[0.1, 0.2, 0.3]])
    write_predictions(tmp_path / "x.parquet", predictions)
    same(read_predictions(tmp_path / "x.parquet"), predictions)
    found = read_predictions(tmp_path / "x.parquet", labels=["a"])
    np.testing.assert_array_equal(found.scores, [[0.2]])


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_columns_of_tables_that_are_no_scores(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    write = {".parquet": pq.write_table, ".arrow": pa.feather.write_feather}[suffix]
    for column in (["val"], [{"a": 1}], [[1.0]], [b"x"], pa.array([1], pa.timestamp("s"))):
        write(pa.table({"sample": ["a"], "cat": [1.0], "odd": column}), path)
        refused("the column 'odd' must hold scores, as numbers; got", path)
        assert read_predictions(path, labels=["cat"]).scores.tolist() == [[1]]
    write(pa.table({"sample": [None], "cat": [1.0]}), path)
    refused("one column must hold the sample ids|must have a sample id", path)
    write(pa.table({"sample": ["a", None], "cat": [1.0, 1.0]}), path)
    refused("must have a sample id; got none at row 1", path)


def test_columns_of_the_same_name_in_tables(tmp_path):
    pq.write_table(pa.table([["a"], [1], [2]], names=["id", "x", "x"]), tmp_path / "x.parquet")
    refused("names of columns must differ; got more than once: 'x'", tmp_path / "x.parquet")


def test_row_groups_gather_small_chunks(tmp_path, rng):
    predictions = some_predictions(rng, n_samples=500)
    with PredictionWriter(tmp_path / "x.parquet", predictions.labels) as writer:
        for row in range(500):
            writer.write(predictions.take([row]))
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups == 1


def test_an_arrow_file_that_points_beyond_its_end_is_refused(tmp_path):
    path = tmp_path / "x.arrow"
    write_predictions(path, Predictions("tiny", ["abcde", "fghijkl"], ["cat"], [[1], [1]]))
    offsets = struct.pack("<iii", 0, 5, 12)
    content = path.read_bytes()
    assert content.count(offsets) == 1
    refused("whole", put(path, content.replace(offsets, struct.pack("<iii", 0, 5, 2**30))))


def test_the_old_feather_is_refused(tmp_path):
    refused("Feather version 2; got version 1", put(tmp_path / "x.feather", b"FEA1" + bytes(99)))


# NumPy.


def test_npy_files_need_names_beside_them(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.eye(2))
    refused("must be named in a file x.labels.txt; there is none", path)
    named = read_predictions(path, labels=["cat", "dog"])
    assert named.samples.tolist() == [0, 1]
    refused("as many labels as columns, 2; got 3", path, labels=["a", "b", "c"])
    put(tmp_path / "x.labels.txt", b"\xef\xbb\xbfcat\r\nd\xc3\xb6g")
    assert read_predictions(path).labels.names == ("cat", "dög")
    same(read_predictions(path, labels=["dög"]), Predictions("x", [0, 1], ["dög"], [[0], [1]]))
    refused("none for 'cow'", path, labels=["cow"])
    put(tmp_path / "x.samples.txt", "8\n9\n")
    assert read_predictions(path).samples.tolist() == [8, 9]
    put(tmp_path / "x.samples.txt", "8\n")
    refused("as many lines of x.samples.txt as rows, 2; got 1", path)
    put(tmp_path / "x.samples.txt", "8\n8\n")
    refused("must differ; got more than once: '8'", path)
    put(tmp_path / "x.labels.txt", "cat\n\n")
    refused("x.labels.txt must have a name on each line; line 2 is empty", path)
    put(tmp_path / "x.labels.txt", b"cat\n\xff\n")
    refused("x.labels.txt must be UTF-8; line 2 is not", path)
    put(tmp_path / "x.labels.txt", "cat\ncat\n")
    refused("label names must differ", path)


@pytest.mark.parametrize("dtype", ["f2", ">f4", "<f8", ">f8", "i4", "u1", "?", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_real_type_and_order(tmp_path, dtype, order):
    scores = np.array([[1, 0, 1], [0, 1, 0]], dtype=dtype, order=order)
    for path in (tmp_path / "x.npy", tmp_path / "x.npz"):
        np.save(path, scores) if path.suffix == ".npy" else np.savez(path, scores=scores)
        found = read_predictions(path, labels=["a", "b", "c"])
        assert found.scores.tolist() == [[1, 0, 1], [0, 1, 0]]
        assert found.scores.dtype == (np.float32 if dtype == ">f4" else np.float64)
        (chunk,) = open_predictions(path, labels=["a", "b", "c"]).chunks(2)
        for scores_read in (found.scores, chunk.scores):
            assert scores_read.flags.writeable
            assert scores_read.flags.c_contiguous
            assert type(scores_read) is np.ndarray


def test_arrays_that_are_no_scores(tmp_path):
    for scores, match in (
        (np.ones(3), "shape .n_samples, n_labels.; got .3,."),
        (np.ones((2, 2, 2)), "shape"),
        (np.ones((2, 2), complex), "must be real numbers; got an array of dtype complex128"),
        (np.array([["a", "b"]]), "must be real numbers"),
        (np.array([[0.5, -1]]), "must not be negative"),
    ):
        np.save(tmp_path / "x.npy", scores)
        np.savez(tmp_path / "x.npz", scores=scores)
        refused(match, tmp_path / "x.npy", labels=["a", "b"])
        refused(match, tmp_path / "x.npz", labels=["a", "b"])


def test_arrays_of_an_npz_that_do_not_fit(tmp_path):
    path = tmp_path / "x.npz"

    def save(**arrays):
        np.savez(path, **({"scores": np.eye(2), "labels": ["a", "b"]} | arrays))
        return path

    np.savez(path, probs=np.eye(2))
    refused("an array 'scores'; got 'probs'", path)
    np.savez(path, scores=np.eye(2))
    refused("must be named in an array 'labels'; there is none", path)
    refused("'labels' must hold text; got 2 entries of dtype int64", save(labels=[1, 2]))
    refused("'labels' must hold text", save(labels=np.array([b"a", b"b"])))
    refused("as many labels as columns, 2; got 3", save(labels=["a", "b", "c"]))
    refused("as many sample ids as rows, 2; got 1", save(samples=["a"]))
    refused("'samples' must hold text", save(samples=[0.5, 1]))
    refused('`kind` must be "multiclass" or "multilabel"; got \'fuzzy\'', save(kind="fuzzy"))
    refused("'kind' must hold text; got 0 entries", save(kind=np.array([], dtype=str)))
    refused("'model' must hold text", save(model=3))
    assert read_predictions(save(samples=[3, 4], truth=[1, 1])).samples.tolist() == [3, 4]


def test_pickled_objects_are_refused_and_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("was unpickled",)

    objects = np.array([[Bomb()]], dtype=object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    put(tmp_path / "x.labels.txt", "cat\n")
    np.savez(tmp_path / "x.npz", scores=objects, labels=["cat"])
    np.savez(tmp_path / "y.npz", scores=np.eye(1), labels=np.array(["cat"], dtype=object))
    for name in ("x.npy", "x.npz", "y.npz"):
        refused("pickled objects, which are never read", tmp_path / name)


def lying_array(shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(64)


@pytest.mark.parametrize("shape", [(10**15, 1), (9, 1), (7, 1), (-8, -1), (2**70, 0)])
def test_headers_that_lie_cost_nothing(tmp_path, shape):
    put(tmp_path / "x.npy", lying_array(shape))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("scores.npy", lying_array(shape))
    tracemalloc.start()
    try:
        for path in (tmp_path / "x.npy", tmp_path / "x.npz"):
            refused("must have .* bytes; got 64", path, labels=["cat"])
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_archives_that_lie_about_sizes_cost_nothing(tmp_path):
    path = tmp_path / "x.npz"
    honest = lying_array((8, 1))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("scores.npy", honest)
    size = len(honest).to_bytes(4, "little")
    tracemalloc.start()
    try:
        for claim in (2**31, len(honest) + 8):
            content = path.read_bytes().replace(size, claim.to_bytes(4, "little"))
            assert content != path.read_bytes()
            broken = put(tmp_path / "y.npz", content)
            refused("array 'scores': .*(Bad CRC|must have 64 bytes)", broken, labels=["cat"])
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert read_predictions(path, labels=["cat"]).n_samples == 8


# JSON lines.


def test_json_lines_with_and_without_all_labels(tmp_path):
    lines = (
        '{"sample": 1, "scores": {"cat": 0.5}, "split": "val"}\n\n'
        '{"sample": "b", "scores": {"dog": 1, "cat": null}}\n'
        '{"sample": "c", "scores": null}'
    )
    path = put(tmp_path / "x.jsonl", "\ufeff" + lines)
    found = read_predictions(path)
    assert found.samples.tolist() == ["1", "b", "c"]
    assert found.labels.names == ("cat", "dog")
    np.testing.assert_array_equal(found.scores, [[0.5, nan], [nan, 1], [nan, nan]])
    assert read_predictions(path, labels=["z", "dog", "cat"]).scores[1].tolist()[1] == 1
    refused("must be in `labels`; got 'dog'", path, labels=["cat"])


def test_json_lines_with_hard_labels_and_other_names(tmp_path):
    path = put(tmp_path / "x.jsonl", '{"id": 1, "label": "cat"}\n{"id": 2, "label": null}\n')
    found = read_predictions(path)
    assert found.is_hard
    np.testing.assert_array_equal(found.scores, [[1], [nan]])
    path = put(tmp_path / "x.jsonl", '{"img": 1, "cls": "cat", "p": 0.5, "rank": 1}\n')
    options = {"id_column": "img", "label_column": "cls"}
    refused('line 1 must have "score", or nothing but', path, **options)
    found = read_predictions(path, score_column="p", **options)
    assert found.scores.tolist() == [[0.5]]
    assert not found.is_hard
    path = put(tmp_path / "x.jsonl", '{"id": 1, "label": "cat", "p": {"dog": 0.5}}\n')
    assert read_predictions(path, score_column="p").labels.names == ("dog",)


def test_json_lines_as_tables_are_written(tmp_path):
    path = tmp_path / "x.jsonl"
    frame = pd.DataFrame({"cat": [0.7, 0.2], "dog": [0.3, nan], "id": ["a", "b"]})
    frame.to_json(path, orient="records", lines=True)
    found = read_predictions(path)
    assert (found.samples.tolist(), found.labels.names) == (["a", "b"], ("cat", "dog"))
    np.testing.assert_array_equal(found.scores, [[0.7, 0.3], [0.2, nan]])
    frame.assign(split="val").to_json(path, orient="records", lines=True)
    refused("nothing but a sample id and numbers; got 'cat', 'dog', 'id', 'split'", path)
    frame.to_json(path, orient="records", lines=True)
    refused('line 1 must have "scores"', path, label_column="animal")


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("{", "line 2 must be one JSON object; got: Expecting property name"),
        ("[1]", r"line 2 must be one JSON object; got \[1\]"),
        ("3 4", "line 2 must be one JSON object; got: Extra data"),
        ('{"sample": 1}', 'line 2 must have "scores"'),
        ('{"scores": {"cat": 1}}', "line 2 must have one sample id"),
        ('{"sample": 1, "id": 2, "scores": {"cat": 1}}', "got 'sample', 'id'"),
        ('{"sample": 1.5, "scores": {"cat": 1}}', "line 2: 'sample' must be a text or a whole"),
        ('{"sample": true, "scores": {"cat": 1}}', "line 2: 'sample' must be a text or a whole"),
        ('{"sample": "", "scores": {"cat": 1}}', "line 2: 'sample' must be a text or a whole"),
        ('{"sample": "a", "scores": {"cat": 1}}', "must differ; got more than once: 'a'"),
        ('{"sample": 1, "scores": {"cat": "1"}}', "line 2: the score of 'cat' must be a number"),
        ('{"sample": 1, "scores": [1]}', 'line 2 must have "scores", an object'),
        ('{"sample": 1, "scores": {"cat": 1, "cat": 2}}', "line 2 .* the same name twice"),
        ('{"sample": 1, "scores": {"": 1}}', "label name must be a text that is not empty"),
        ('{"sample": 1, "scores": {"cat": Infinity}}', "must be finite"),
        ('{"sample": 1, "scores": {"cat": 1e999}}', "must be finite"),
        ('{"sample": 1, "scores": {"cat": 1' + "0" * 400 + "}}", "must be finite"),
        ('{"sample": 1, "scores": {"cat": -1}}', "must not be negative"),
        ('{"sample": 1, "label": "cat", "score": 1}', "line 2 must have the form of the first"),
        ('{"sample": 1, "cat": 1}', 'line 2 must have the form of the first lines, all with "sco'),
        ('{"sample": 1' + "0" * 5000 + ', "scores": {"cat": 1}}', "line 2 must be one JSON object"),
        ("[" * 100_000, "line 2 must be one JSON object"),
    ],
)
def test_json_lines_that_are_wrong_are_named(tmp_path, line, match):
    first = '{"sample": "a", "scores": {"cat": 0.5}}\n'
    refused(match, put(tmp_path / "x.jsonl", first + line))


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('{"sample": 1, "label": 0.5, "score": 1}', "a label must be text or a whole number"),
        ('{"sample": 1, "label": "cat"}', "line 2 must have a score, like other lines"),
        ('{"sample": "a", "label": "cat", "score": 1}', "'cat', at line 1 and line 2"),
        ('{"sample": "a", "label": null}', "without a label at line 2 and with one at line 1"),
        ('{"sample": 1, "label": null, "score": 1}', "must have a label; got none at line 2"),
        ('{"sample": 1, "scores": {"cat": 1}}', "line 2 must have the form of the first"),
    ],
)
def test_long_json_lines_that_are_wrong_are_named(tmp_path, line, match):
    first = '{"sample": "a", "label": "cat", "score": 0.5}\n'
    refused(match, put(tmp_path / "x.jsonl", first + line))


def test_json_lines_in_another_encoding(tmp_path):
    content = '{"sample": "ä", "scores": {"cat": 1}}'.encode("latin-1")
    refused("must be UTF-8; line 1 is not", put(tmp_path / "x.jsonl", content))


# Every format alike.


@every_format
def test_labels_pick_columns_or_declare_them(tmp_path, rng, suffix):
    predictions = some_predictions(rng)
    path = tmp_path / f"x{suffix}"
    write_predictions(path, predictions)
    chosen = ["label 2", "label 0"]
    if suffix in JSON:
        refused("must be in `labels`; got 'label 1'", path, labels=chosen)
        return
    found = read_predictions(path, labels=iter(chosen))
    assert found.labels.names == tuple(chosen)
    np.testing.assert_array_equal(found.scores, predictions.scores[:, [2, 0]])
    refused("none for 'cow'", path, labels=["label 1", "cow"])


@every_format
def test_files_that_are_none(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    refused(f"must be a file; there is none at {path}", path)
    path.mkdir()
    refused("must be a file; got a folder", path)
    predictions = Predictions("tiny", ["a"], ["cat"], [[1]])
    with pytest.raises(InvalidInputError, match=f"x{suffix}: must be a file that can be written"):
        write_predictions(path, predictions)
    with pytest.raises(InvalidInputError, match=f"x{suffix}: must be a file that can be written"):
        write_predictions(put(tmp_path / "plain", "") / f"x{suffix}", predictions)
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".txt") == ["plain", path.name]


@every_format
def test_files_that_may_not_be_read(tmp_path, suffix, monkeypatch):
    path = put(tmp_path / f"x{suffix}", b"ARROW1")

    def forbid(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", forbid)
    monkeypatch.setattr(gzip, "open", forbid)
    monkeypatch.setattr(zipfile, "ZipFile", forbid)
    monkeypatch.setattr(pq, "ParquetFile", forbid)
    refused("got: Permission denied", path)


def test_names_that_are_none(tmp_path):
    for name in ("x.txt", "x", ".csv", "x.gz", "csv"):
        with pytest.raises(InvalidInputError, match=r"must end in \.csv, .*\.npz") as caught:
            read_predictions(tmp_path / name)
        assert str(caught.value).startswith(f"{name}: ")
    with pytest.raises(InvalidInputError, match="must be the path of a file; got 3"):
        read_predictions(3)
    put(tmp_path / "X.CSV", "sample,cat\na,1\n")
    assert read_predictions(str(tmp_path / "X.CSV")).model == "X"


def test_options_that_make_no_sense(tmp_path):
    path = put(tmp_path / "x.csv", "sample,cat\na,1\n")
    refused('`kind` must be "multiclass" or "multilabel"; got \'soft\'', path, kind="soft")
    refused("`id_column` must be the name of a column; got 1", path, id_column=1)
    refused("label names must come as a list", path, labels="cat")
    refused("must have a name; got ''", path, model="")
    np.save(tmp_path / "x.npy", np.eye(2))
    for option in ("id_column", "label_column", "score_column"):
        refused(f"`{option}` must be left out of NumPy", tmp_path / "x.npy", **{option: "cat"})


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    path = put(tmp_path / "x.csv", "sample,cat\na,1\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'wassemble\[tables\]'"):
        read_predictions(path)
    with pytest.raises(MissingExtraError, match="writing CSV files needs pyarrow"):
        write_predictions(path, Predictions("tiny", ["a"], ["cat"], [[1]]))


def test_importing_inputs_loads_no_table_library():
    script = "import sys, wassemble.inputs; print([m for m in sys.modules if '.' not in m])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "'wassemble'" in done.stdout
    for name in ("pandas", "polars", "pyarrow", "narwhals"):
        assert f"'{name}'" not in done.stdout


def test_only_faults_of_files_are_blamed_on_them():
    fits = pytest.raises(InvalidInputError, match=r"x.csv: must fit in memory; it does not")
    with fits, blame("x.csv", "a whole file"):
        raise MemoryError
    with pytest.raises(TypeError, match="a mistake of ours"), blame("x.csv", "a whole file"):
        raise TypeError("a mistake of ours")


def test_faults_that_other_libraries_find_in_files_are_blamed_on_them():
    for error in (lzma.LZMAError("corrupt"), pa.ArrowInvalid("corrupt")):
        fits = pytest.raises(InvalidInputError, match=r"x.csv: must be a whole file; got: corrupt")
        with fits, blame("x.csv", "a whole file"):
            raise error


def test_inputs_do_without_a_library_that_some_python_lacks():
    script = "import sys; sys.modules['lzma'] = None; import wassemble.inputs.files"
    subprocess.run([sys.executable, "-c", script], check=True)


# Whole or not at all.


@every_format
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_writer_that_is_interrupted_leaves_what_was_there(tmp_path, rng, suffix, error):
    predictions = some_predictions(rng)
    path = tmp_path / f"x{suffix}"

    def interrupted():
        with PredictionWriter(path, predictions.labels) as writer:
            writer.write(predictions.take([0]))
            raise error("stop")

    with pytest.raises(error, match="stop"):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    write_predictions(path, predictions)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(error, match="stop"):
        interrupted()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@every_format
def test_a_disk_that_is_full_leaves_what_was_there(tmp_path, rng, suffix, monkeypatch):
    predictions = some_predictions(rng)
    path = tmp_path / f"x{suffix}"
    write_predictions(path, predictions)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Predictions, "take", full)
    with pytest.raises(InvalidInputError, match=f"x{suffix}: .* No space left on device"):
        write_predictions(path, predictions)
    # Not even if the error is caught inside.
    with PredictionWriter(path, predictions.labels) as writer:
        with pytest.raises(InvalidInputError, match="No space left"):
            writer.write(predictions)
        with pytest.raises(InvalidInputError, match="inside a `with` block"):
            writer.write(predictions)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_the_companions_of_an_npy_come_first(tmp_path, monkeypatch):
    order = []
    replace = type(tmp_path).replace
    monkeypatch.setattr(
        type(tmp_path), "replace", lambda self, to: (order.append(to.name), replace(self, to))
    )
    write_predictions(tmp_path / "x.npy", Predictions("tiny", ["a"], ["cat"], [[1]]))
    assert order[-1] == "x.npy"
    assert sorted(order) == ["x.labels.txt", "x.npy", "x.samples.txt"]


def test_chunks_that_do_not_fit_the_file(tmp_path):
    one = Predictions("tiny", ["a"], ["cat"], np.ones((1, 1), "f4"))
    writer = PredictionWriter(tmp_path / "x.parquet", ["cat"])
    with pytest.raises(InvalidInputError, match="inside a `with` block"):
        writer.write(one)
    for name in ("x.parquet", "x.npy"):
        with pytest.raises(InvalidInputError, match=f"{name}: every chunk must have .*same type"):
            write_two(tmp_path / name, one, Predictions("tiny", ["b"], ["cat"], [[1.0]]))
    with pytest.raises(InvalidInputError, match=r"x.arrow: every chunk .* ids and scores of the"):
        write_two(
            tmp_path / "x.arrow", one, Predictions("tiny", [3], ["cat"], np.ones((1, 1), "f4"))
        )
    with pytest.raises(InvalidInputError, match="labels of the file"):
        write_two(tmp_path / "x.csv", one, Predictions("tiny", ["b"], ["dog"], [[1]]))
    with pytest.raises(InvalidInputError, match="must be Predictions; got list"):
        write_two(tmp_path / "x.csv", one, [[1]])
    with pytest.raises(InvalidInputError, match="must be Predictions"):
        write_predictions(tmp_path / "x.csv", [[1]])
    with pytest.raises(InvalidInputError, match="`kind` must be"):
        PredictionWriter(tmp_path / "x.csv", ["cat"], kind="soft")
    assert list(tmp_path.iterdir()) == []


def write_two(path, one, other):
    with PredictionWriter(path, one.labels) as writer:
        writer.write(one)
        writer.write(other)


def test_a_writer_may_be_told_the_kind(tmp_path):
    with PredictionWriter(tmp_path / "x.npz", ["cat"], kind="multilabel") as writer:
        writer.write(Predictions("tiny", ["a"], ["cat"], [[1]]))
    assert read_predictions(tmp_path / "x.npz").kind == "multilabel"


def test_names_that_a_format_cannot_keep_are_refused(tmp_path):
    def written(name, *, sample="a", label="cat"):
        write_predictions(tmp_path / name, Predictions("tiny", [sample], [label], [[1]]))

    for odd in ("a\nb", "a\r", "\ufeffa"):
        with pytest.raises(InvalidInputError, match=r"x.npy: a label .* one line of text"):
            written("x.npy", label=odd)
        with pytest.raises(InvalidInputError, match=r"x.npy: a sample id .* one line of text"):
            written("x.npy", sample=odd)
    with pytest.raises(InvalidInputError, match=r"x.npz: a label .* must not end in a zero byte"):
        written("x.npz", label="a\0")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (r'{"sample": "a", "scores": {"\ud800": 1}}', "label name"),
        (r'{"sample": "\ud800", "scores": {"cat": 1}}', "sample id"),
        (r'{"sample": "a", "label": "\ud800", "score": 1}', "label name"),
    ],
)
def test_half_characters_in_names_are_refused(tmp_path, line, what):
    path = tmp_path / "x.jsonl"
    path.write_text(line)
    with pytest.raises(InvalidInputError, match=rf"x\.jsonl: a {what} must be readable text"):
        read_predictions(path)
    path.write_text(line.replace(r"\ud800", r"\ud83d\ude00"))
    assert "\U0001f600" in [*read_predictions(path).labels, *read_predictions(path).samples]


def test_half_characters_in_arrays_are_refused(tmp_path):
    arrays = {"scores": np.ones((1, 1)), "labels": np.array(["cat"]), "model": np.array("tiny")}
    for name in ("labels", "model"):
        np.savez(tmp_path / "x.npz", **arrays | {name: np.array(["\ud800"])})
        with pytest.raises(InvalidInputError, match=rf"array '{name}' must be readable text"):
            read_predictions(tmp_path / "x.npz")


def test_a_long_table_of_many_labels_stays_sparse(tmp_path):
    n_labels = 200_000  # a block of 1,024 samples would take 1.6 GB
    path = tmp_path / "x.parquet"
    rows = np.arange(n_labels)
    table = {"sample": rows % 2000, "label": rows.astype(str), "score": np.full(n_labels, 0.01)}
    pd.DataFrame(table).to_parquet(path)
    tracemalloc.start()
    try:
        with open_predictions(path) as file:
            assert (file.kind, file.n_samples, len(file.labels)) == ("multiclass", 2000, n_labels)
            chunk = next(file.chunks(2))
            assert np.count_nonzero(chunk.scores == 0.01) == 200
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300e6


def test_a_table_that_does_not_fit_in_memory_is_refused_before_it_is_made(tmp_path, monkeypatch):
    path = put(tmp_path / "x.csv", "sample,label,score\n" + "a,cat,0.5\nb,dog,0.5\n")
    monkeypatch.setattr("wassemble.inputs.formats.sources._free_memory", lambda: 31)
    with pytest.raises(InvalidInputError, match="2 samples x 2 labels must fit in mem") as caught:
        read_predictions(path)
    assert "wassemble fuse" in str(caught.value)
    with open_predictions(path) as file:
        assert file.n_samples == 2


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
@pytest.mark.parametrize("label", ["2", 2, 2.0])
def test_whole_numbers_are_labels_in_every_format(tmp_path, suffix, label):
    path = tmp_path / f"x.{suffix}"
    frame = pd.DataFrame({"sample": ["a", "b"], "label": [label, type(label)(7)]})
    write = {
        "csv": lambda: frame.to_csv(path, index=False),
        "tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        "parquet": lambda: frame.to_parquet(path),
        "jsonl": lambda: frame.to_json(path, orient="records", lines=True),
    }
    write[suffix]()
    for read in (read_predictions(path), read_truth(path, column="label")):
        assert read.labels.names == ("2", "7")
        assert read.is_hard


def test_a_truth_column_is_read_from_a_table_of_any_others(tmp_path):
    path = tmp_path / "x.parquet"
    pd.DataFrame({"image": ["a", "b"], "width": [1.5, 2.5], "digit": [3, 4]}).to_parquet(path)
    read = read_truth(path, column="digit")
    assert (read.samples.tolist(), read.labels.names) == (["a", "b"], ("3", "4"))
    with pytest.raises(InvalidInputError, match="must have a column 'number'; got 'image'"):
        read_truth(path, column="number")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "npz"])
def test_files_without_ids_are_read_by_row(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    scores = [[0.7, 0.3], [0.2, 0.8]]
    if suffix == "jsonl":
        lines = [json.dumps({"scores": dict(zip("ab", row, strict=True))}) for row in scores]
        path.write_text("\n".join(lines))
    elif suffix == "npz":
        np.savez(path, scores=scores, labels=["a", "b"])
    else:
        frame = pd.DataFrame(scores, columns=["a", "b"])
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    read = read_predictions(path, by_row=True)
    assert read.samples.tolist() == [0, 1]
    assert not read.origin.has_ids
    np.testing.assert_allclose(read.scores, scores)


def test_a_long_table_without_ids_is_refused(tmp_path):
    path = put(tmp_path / "x.csv", "label,score\ncat,0.5\n")
    refused("a long table must have sample ids", path, by_row=True)


@pytest.mark.parametrize("columns", ["prediction", "Predicted_Label", "prediction,confidence"])
def test_a_column_of_predictions_alone_is_not_taken_for_a_label(tmp_path, columns):
    names = columns.split(",")
    path = put(tmp_path / "x.csv", f"id,{columns}\na,{','.join('1' * len(names))}\n")
    text = refused(f"a column called '{names[0]}' may be either", path)
    assert f'hint: label_column="{names[0]}"' in text
    scores = {"score_column": names[1]} if len(names) > 1 else {}
    assert read_predictions(path, label_column=names[0], **scores).labels.names == ("1",)
    assert read_predictions(path, labels=names).labels.names == tuple(names)
    more = put(tmp_path / "y.csv", "id,prediction,cat,dog\na,0.2,0.3,0.5\n")
    assert read_predictions(more).labels.names == ("prediction", "cat", "dog")
