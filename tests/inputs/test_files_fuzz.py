"""Files as they come: whatever is in them, a right answer or a clear refusal."""

import io
import json
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from wassemble import InvalidInputError
from wassemble.inputs import (
    Predictions,
    PredictionWriter,
    open_predictions,
    read_predictions,
    write_predictions,
)

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".npz", ".npy", ".jsonl")
every_format = pytest.mark.parametrize("suffix", SUFFIXES)
slow = settings(max_examples=25, suppress_health_check=list(HealthCheck))

# Text that every format can hold: no lone surrogates; line breaks and marks are for others.
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
plain_names = names.filter(lambda n: not set("\n\r\0\ufeff") & set(n) and not n.isdecimal())
numbers = st.floats(0, 1e300) | st.just(float("nan")) | st.sampled_from([0.0, 1.0, 0.25])


@st.composite
def predictions(draw, names=plain_names):
    labels = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    whole = st.integers(-(2**60), 2**60)
    ids = draw(st.one_of(st.lists(each, max_size=5, unique=True) for each in (names, whole)))
    n_scores = len(ids) * len(labels)
    scores = draw(st.lists(numbers, min_size=n_scores, max_size=n_scores))
    array = np.array(scores, dtype=float).reshape(len(ids), len(labels))
    return Predictions("tiny", ids, labels, array, kind="multilabel")


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def answer_or_refusal(path, **options):
    """The predictions, or None if they were refused clearly; anything else is a failure."""
    answers = []
    for read in (read_predictions, in_chunks):
        try:
            answers.append(read(path, **options))
        except InvalidInputError as error:
            text = str(error)
            assert text.startswith(f"{path.name}: ")
            assert text.count("\n") <= 1
            assert len(text) < 1000
            answers.append(None)
    whole, chunks = answers
    if whole is not None and chunks is not None:
        np.testing.assert_array_equal(whole.scores, chunks)
    # The only file that is right as a whole and not in chunks changes its kind on the way.
    assert (whole is None) == (chunks is None)
    return whole


def in_chunks(path, **options):
    with open_predictions(path, **options) as file:
        return np.concatenate([chunk.scores for chunk in file.chunks(2)])


def written(folder, suffix, found, *, chunked=False):
    path = folder / f"x{suffix}"
    if chunked:
        with PredictionWriter(path, found.labels) as writer:
            for row in range(found.n_samples):
                writer.write(found.take([row]))
    else:
        write_predictions(path, found)
    return path


@every_format
@slow
@given(found=predictions(), chunked=st.booleans())
def test_anything_that_is_written_is_read(folder, suffix, found, chunked):
    if suffix == ".jsonl" and found.n_samples == 0:
        return  # there is no line to name the labels
    if {"sample", "sample_id", "id", "label"} & set(found.labels):
        return
    again = read_predictions(written(folder, suffix, found, chunked=chunked), kind="multilabel")
    assert again.samples.tolist() == found.samples.tolist()
    assert again.labels == found.labels
    np.testing.assert_array_equal(again.scores, found.scores)


@every_format
@slow
@given(found=predictions(names))
def test_names_of_any_kind_are_kept_or_refused(folder, suffix, found):
    refusal = ""
    try:
        written(folder, suffix, found)
    except InvalidInputError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith(f"x{suffix}: ")
        return
    again = answer_or_refusal(folder / f"x{suffix}", kind="multilabel")
    if again is not None:
        assert again.labels == found.labels
        assert [str(s) for s in again.samples] == [str(s) for s in found.samples]
        np.testing.assert_array_equal(again.scores, found.scores)


@every_format
@slow
@given(content=st.binary(max_size=200))
def test_random_bytes(folder, suffix, content):
    path = folder / f"random{suffix}"
    path.write_bytes(content)
    answer_or_refusal(path, labels=["cat"])
    answer_or_refusal(path, id_column=None)


@every_format
@slow
@given(found=predictions(), share=st.floats(0, 1))
def test_truncated_files(folder, suffix, found, share):
    path = written(folder, suffix, found)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    again = answer_or_refusal(path, kind="multilabel")
    # A text file may end anywhere; others are whole or refused.
    if again is not None and suffix not in (".csv", ".tsv", ".jsonl"):
        np.testing.assert_array_equal(again.scores, found.scores)


@every_format
@settings(slow, max_examples=60)
@given(found=predictions(), data=st.data())
def test_damaged_files(folder, suffix, found, data):
    path = written(folder, suffix, found)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        if not content:
            break
        place = data.draw(st.integers(0, len(content) - 1))
        size = data.draw(st.integers(0, 4))
        content[place : place + size] = data.draw(st.binary(max_size=4))
    path.write_bytes(content)
    answer_or_refusal(path)


marks = ["", '"', "'", ",", ";", "\t", "\n", "\r", "\0", " ", "#", "\ufeff", "x,y", "é", "😀"]
values = ["a", "1", "0.5", "-1", "07", "inf", "nan", "true", "1e999"]
cells = st.sampled_from([*marks, *values, "sample", "id", "label", "score", "cat"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@settings(slow, max_examples=300)
@given(rows=st.lists(st.lists(cells, min_size=1, max_size=4), max_size=5), wide=st.booleans())
def test_text_that_looks_like_a_table(folder, suffix, rows, wide):
    header = ["sample", "cat", "dog"] if wide else ["sample", "label", "score"]
    mark = "," if suffix == ".csv" else "\t"
    path = folder / f"cells{suffix}"
    path.write_text(
        "\n".join(mark.join(row) for row in [header, *rows]), encoding="utf-8", newline=""
    )
    answer_or_refusal(path, kind="multilabel")
    path.write_text("\n".join(mark.join(row) for row in rows), encoding="utf-8", newline="")
    answer_or_refusal(path, kind="multilabel")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["a", "cat", ""]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["cat", "dog", ""]), inner, max_size=2)
    ),
    max_leaves=4,
)
keys = st.sampled_from(["sample", "id", "scores", "label", "score", "other"])


@settings(slow, max_examples=300)
@given(lines=st.lists(st.dictionaries(keys, json_values, max_size=4), max_size=4))
def test_json_of_any_shape(folder, lines):
    path = folder / "shapes.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    answer_or_refusal(path, kind="multilabel")
    answer_or_refusal(path, kind="multilabel", labels=["cat", "dog"], score_column="other")


headers = st.fixed_dictionaries(
    {},
    optional={
        "descr": st.sampled_from(["<f8", ">f4", "|O", "<U3", "|V8", "|b1", "<i8", "<c16", "x", 3])
        | st.just([("a", "<f8")]),
        "fortran_order": st.booleans() | st.just("no"),
        "shape": st.lists(st.sampled_from([-1, 0, 1, 2, 8, 2**40, 2**70, 1.5]), max_size=4).map(
            tuple
        ),
        "extra": st.just(1),
    },
)


@settings(slow, max_examples=150)
@given(
    about=headers, version=st.sampled_from([(1, 0), (2, 0), (3, 0), (9, 9)]), n=st.integers(0, 99)
)
def test_arrays_with_headers_of_any_kind(folder, about, version, n):
    text = repr(about).encode() + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    content = b"\x93NUMPY" + bytes(version) + size + text + bytes(n)
    path = folder / "header.npy"
    path.write_bytes(content)
    answer_or_refusal(path, labels=["cat"], kind="multilabel")
    good = io.BytesIO()
    np.save(good, np.array(["cat"]))
    for broken in ("scores", "labels", "samples", "kind", "model"):
        path = folder / "header.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in {"scores", "labels", broken}:
                archive.writestr(f"{name}.npy", content if name == broken else good.getvalue())
        answer_or_refusal(path, kind="multilabel")
