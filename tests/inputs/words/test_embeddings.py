"""Word vectors: looking words up, and reading them from files."""

import gzip
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import wassemble as ws
from wassemble.inputs.words.embeddings import Embeddings, read_embeddings, split_words, word_forms

WORDS = ["the", "polar", "bear", "Paris", "café"]
VECTORS = np.array([[0.1, -0.2], [1, 0], [0.5, 0.25], [-3e-2, 4], [2, 2.5]], dtype=np.float32)


def as_text(words=WORDS, vectors=VECTORS, end="\n"):
    lines = [
        f"{word} {' '.join(map(repr, row))}"
        for word, row in zip(words, vectors.tolist(), strict=True)
    ]
    return "".join(line + end for line in lines)


def as_binary(words=WORDS, vectors=VECTORS, end=b"\n"):
    head = f"{len(words)} {vectors.shape[1]}\n".encode()
    rows = zip(words, vectors.astype("<f4"), strict=True)
    return head + b"".join(word.encode() + b" " + row.tobytes() + end for word, row in rows)


def check(path, names=None, words=WORDS, vectors=VECTORS):
    found = read_embeddings(path, names=names)
    assert found.words == tuple(words)
    assert_allclose(found.vectors, vectors, rtol=1e-6)
    assert found.vectors.dtype == np.float32
    assert found.origin == path.name


def refuse(path, content, words, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ws.InvalidInputError, match=words) as caught:
        read_embeddings(path, **options)
    assert str(caught.value).startswith(str(path))


# -- looking up ----------------------------------------------------------------------


def test_words_are_found_as_written_or_in_other_case():
    embeddings = Embeddings(["Paris", "paris", "rome"], np.eye(3))
    assert embeddings.find("paris") == 1
    assert embeddings.find("PARIS") is None
    assert embeddings.find_folded("PARIS") == 0
    assert "rome" in embeddings
    assert "Rome" not in embeddings
    assert repr(embeddings) == "Embeddings(3 words, 3 dimensions)"


def test_of_a_word_that_comes_twice_the_first_counts():
    embeddings = Embeddings(["a", "b", "a"], [[1.0], [2.0], [3.0]])
    assert embeddings.find("a") == 0
    assert len(embeddings) == 3


@given(st.text(min_size=1))
def test_the_forms_of_a_label_start_with_itself_and_have_its_words(label):
    assert word_forms(label)[0] == label
    for form in word_forms(label):
        assert split_words(form) == split_words(label)


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a"], [1.0], r"numbers of shape \(n_words, n_dimensions\); got float64 of shape \(1,\)"),
        (["a"], [["x"]], r"numbers of shape \(n_words, n_dimensions\); got <U1"),
        ([], np.zeros((0, 3)), r"numbers of shape \(n_words, n_dimensions\)"),
        (["a", "b"], [[1.0]], "one vector for each word; got 2 words and 1 vectors"),
        ([7], [[1.0]], "a word must be a text; got 7 at 0"),
        (["a", "b"], [[1.0], [np.nan]], "must be finite in float32; got one that is not at 'b'"),
        (["a"], [[1e300]], "must be finite in float32; got one that is not at 'a'"),
    ],
)
def test_wrong_vectors_are_refused(words, vectors, message):
    with pytest.raises(ws.InvalidInputError, match=message):
        Embeddings(words, vectors)


# -- formats -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["glove.txt", "words.vec", "plain"])
@pytest.mark.parametrize("header", ["", "5 2\n"])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
def test_text_files_with_and_without_a_header(name, header, end, tmp_path):
    path = tmp_path / name
    path.write_bytes((header + as_text(end=end)).encode())
    check(path)


def test_text_files_may_be_packed(tmp_path):
    path = tmp_path / "glove.txt.gz"
    path.write_bytes(gzip.compress(as_text().encode()))
    check(path)


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("name", ["GoogleNews.bin", "GoogleNews.bin.gz"])
def test_binary_files_of_word2vec(end, name, tmp_path):
    path = tmp_path / name
    content = as_binary(end=end)
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    check(path)
    check(path, names=["PARIS"], words=["Paris"], vectors=VECTORS[3:4])


@pytest.mark.parametrize("key", ["words", "names", "labels"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arrays_of_any_precision(key, dtype, tmp_path):
    vectors = VECTORS.astype(dtype)
    np.savez(tmp_path / "w.npz", **{key: np.array(WORDS), "vectors": vectors})
    check(tmp_path / "w.npz", vectors=vectors.astype(np.float32))


@pytest.mark.parametrize("shape", [(), (5,), (5, 1), (2,), (1, 2)])
@pytest.mark.parametrize("key", ["vectors", "codes"])
def test_whole_numbers_are_multiplied_by_their_scale(shape, key, tmp_path, rng):
    codes = rng.integers(-127, 128, (5, 2)).astype(np.int8)
    scale = rng.random(shape).astype(np.float32)
    np.savez(tmp_path / "w.npz", words=np.array(WORDS), scale=scale, **{key: codes})
    factor = scale[:, None] if shape == (5,) else scale
    check(tmp_path / "w.npz", vectors=codes * factor)


def test_words_may_hold_spaces_where_no_header_rules_them_out(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 1 2\n. . . 3 4\nno\u00a0break 5 6\n\nin\u2028line 7 8\n", encoding="utf-8")
    check(
        path,
        words=["the", ". . .", "no\u00a0break", "in\u2028line"],
        vectors=[[1, 2], [3, 4], [5, 6], [7, 8]],
    )


@pytest.mark.parametrize("name", ["w.txt", "w.bin", "w.npz"])
def test_only_wanted_words_are_kept(name, tmp_path):
    path = tmp_path / name
    if name == "w.npz":
        np.savez(path, words=np.array(WORDS), vectors=VECTORS)
    else:
        path.write_bytes(as_text().encode() if name == "w.txt" else as_binary())
    kept = [1, 2, 4]
    check(path, ["Polar_Bear", "CAFÉ", "zebra"], [WORDS[i] for i in kept], VECTORS[kept])


def test_memory_holds_the_wanted_words_only(tmp_path):
    path = tmp_path / "large.txt"
    row = " ".join(["0.125"] * 100)
    with path.open("w") as file:
        file.writelines(f"word{k} {row}\n" for k in range(20_000))
    tracemalloc.start()
    found = read_embeddings(path, names=["word7", "word19999"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.words == ("word7", "word19999")
    assert peak < 1e6  # the file has 12 MB


# -- files that are wrong ------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ": must hold the vector of a word; got none"),
        ("\n\n", ": must hold the vector of a word; got none"),
        ("word\n", ", line 1: must be a word and 1 numbers; got 0 after the word"),
        ("a 1 2\nb 1\n", ", line 2: must be a word and 2 numbers; got 1 after the word"),
        ("a 1 2\nb 1 x\n", ", line 2: 'b' must be followed by numbers; got other text"),
        ("a 1 2\nb 1 nan\n", ", line 2: 'b' must have 2 finite numbers"),
        ("2 2\na 1 2\nb 1 2 3\n", ", line 3: must be a word and 2 numbers; got 3 after the word"),
        ("3 2\na 1 2\nb 1 2\n", ": must hold 3 words, as its first line says; got 2"),
        (b"a 1 2\n\xff\xfe 1 2\n", ", line 2: must be UTF-8 text; got other bytes"),
        (b"\0" * 2**20, ", line 1: must be a word and its vector; got no end of line"),
    ],
)
def test_wrong_text_files_are_refused_with_their_line(content, words, tmp_path):
    refuse(tmp_path / "w.txt", content, words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must start with the number of words and of dimensions"),
        (b"hello world\n", "must start with the number of words and of dimensions; got other"),
        (as_binary()[:-6], "must hold 5 words; it ends inside word 5"),
        (b"9 2\n" + as_binary()[4:], "must hold 9 words; got no end of word 6"),
        (b"5 99999999\n" + as_binary()[4:], "must have from 1 to 1,048,576 dimensions"),
        (as_binary(vectors=np.full((5, 2), np.inf)), "of word 1, 'the', must be finite"),
        (b"\xba\x16\x4f\x2f rest", "got a model of fastText.\nhint: its vectors are in the .vec"),
    ],
)
def test_wrong_binary_files_are_refused(content, words, tmp_path):
    refuse(tmp_path / "w.bin", content, words)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"vectors": VECTORS}, r"must have the arrays words .* and vectors .*; got vectors"),
        ({"words": WORDS}, r"must have the arrays words .*; got words"),
        ({"words": [1, 2], "vectors": VECTORS[:2]}, "the words must be a list of texts; got int64"),
        ({"words": WORDS, "vectors": VECTORS[:2]}, r"of shape \(5, n_dimensions\); got float32 of"),
        (
            {"words": WORDS, "vectors": VECTORS, "scale": [1, 2, 3]},
            "`scale` must be one number, one",
        ),
        ({"words": WORDS, "vectors": VECTORS * np.nan}, "must be finite in float32; .* at 'the'"),
    ],
)
def test_wrong_arrays_are_refused(arrays, words, tmp_path):
    np.savez(tmp_path / "w.npz", **arrays)
    with pytest.raises(ws.InvalidInputError, match=words):
        read_embeddings(tmp_path / "w.npz")


def test_pickles_are_never_loaded(tmp_path):
    np.savez(tmp_path / "w.npz", words=np.array(WORDS, dtype=object), vectors=VECTORS)
    with pytest.raises(ws.InvalidInputError, match=r"must be a .npz file of plain arrays"):
        read_embeddings(tmp_path / "w.npz")


@pytest.mark.parametrize("name", ["w.txt", "w.txt.gz", "w.bin", "w.npz", "w.vec"])
def test_random_bytes_are_a_clear_error(name, tmp_path, rng):
    for size in (1, 10, 1000, 100_000):
        refuse(tmp_path / name, rng.bytes(size), "must")


def test_many_words_are_gathered_in_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("wassemble.inputs.words.embeddings._CHUNK", 2)
    (tmp_path / "w.txt").write_text(as_text())
    check(tmp_path / "w.txt")


def test_cut_off_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "w.npz", words=np.array(WORDS), vectors=VECTORS)
    whole = (tmp_path / "w.npz").read_bytes()
    refuse(tmp_path / "w.npz", whole[:-40], "must be a .npz file of plain arrays; it cannot be")


def test_cut_off_packed_files_are_refused(tmp_path):
    packed = gzip.compress(as_text().encode())
    refuse(tmp_path / "w.txt.gz", packed[:-12], "must be a whole gzip file; it cannot be read")


def test_wanted_words_that_are_not_there_are_named(tmp_path):
    refuse(tmp_path / "w.txt", as_text(), "the vector of one of 'zebra'; got none", names=["Zebra"])
    with pytest.raises(ws.InvalidInputError, match="`names` must come as a list; got one text"):
        read_embeddings(tmp_path / "w.txt", names="zebra")


@pytest.mark.parametrize("name", ["no.txt", "no.npz", "no.bin", "no.vec.gz"])
def test_a_missing_file_is_named(name, tmp_path):
    with pytest.raises(ws.InvalidInputError, match=f"{name}: must be a file; there is none"):
        read_embeddings(tmp_path / name)


def test_duplicates_in_a_file_keep_the_first(tmp_path):
    path = tmp_path / "w.txt"
    path.write_text("a 1 2\na 3 4\n")
    found = read_embeddings(path)
    assert_array_equal(found.vectors[found.find("a")], [1, 2])
