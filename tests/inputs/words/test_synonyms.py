"""Synonyms in text files."""

import pytest

import wassemble as ws
from wassemble.inputs.words.graphs import read_synonyms


def synonyms_of(edges):
    return [(edges.nodes[a], edges.nodes[b]) for a, b in zip(edges.starts, edges.ends, strict=True)]


def test_pairs_parted_by_spaces(tmp_path):
    path = tmp_path / "ppdb.txt"
    path.write_text("mediaeval medieval\nmuslims muslim\nmodelling modeling\n")
    synonyms = read_synonyms(path)
    assert synonyms_of(synonyms)[0] == ("mediaeval", "medieval")
    assert len(synonyms) == 3
    assert synonyms.weights is None
    assert synonyms.origin == "ppdb.txt"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.csv", "word,synonym,votes\ncar,motor vehicle,12\ncar,auto,0\n"),
        ("s.tsv", "car\tmotor vehicle\t12\ncar\tauto\t0\n"),
    ],
)
def test_a_third_column_is_votes(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    synonyms = read_synonyms(tmp_path / name)
    assert synonyms_of(synonyms) == [("car", "motor vehicle"), ("car", "auto")]
    assert synonyms.weights.tolist() == [12, 0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("car\n", ", line 1: must hold a word and a synonym, and its votes if any; got 'car'"),
        ("car auto many\n", ", line 1: the third column must be a finite number; got 'many'"),
        ("car auto 3\ncar van -1\n", "not be negative; got -1 for 'van' as a synonym of 'car'"),
        ("", ": must hold a word and a synonym, and its votes if any in each line; got none"),
    ],
)
def test_wrong_files_are_refused(text, words, tmp_path):
    path = tmp_path / "s.txt"
    path.write_text(text)
    with pytest.raises(ws.InvalidInputError, match=words) as caught:
        read_synonyms(path)
    assert str(caught.value).startswith(str(path))


def test_random_bytes_are_a_clear_error(tmp_path, rng):
    path = tmp_path / "s.txt"
    path.write_bytes(rng.bytes(5000))
    with pytest.raises(ws.InvalidInputError, match="must"):
        read_synonyms(path)
