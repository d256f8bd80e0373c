"""Edges between named nodes, and reading them from files."""

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import wassemble as ws
from wassemble.inputs.words.graphs import Edges, as_edges, read_edges


def pairs_of(edges):
    ends = [(edges.nodes[a], edges.nodes[b]) for a, b in zip(edges.starts, edges.ends, strict=True)]
    return ends if edges.weights is None else list(zip(ends, edges.weights.tolist(), strict=True))


def test_nodes_come_in_the_order_of_appearance():
    edges = Edges([("b", "a"), ["c", "b"]])
    assert edges.nodes.names == ("b", "a", "c")
    assert_array_equal(edges.starts, [0, 2])
    assert_array_equal(edges.ends, [1, 0])
    assert edges.weights is None
    assert repr(edges) == "Edges(2 edges between 3 nodes)"
    assert as_edges(edges) is edges


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tree.txt", "n1 n2\nn1 n3\n"),
        ("tree.txt", "# a comment\n\nparent child\n  n1   n2  \nn1 n3"),
        ("tree.txt", "n1\tn2\nn1\tn3\n"),
        ("tree.tsv", "parent\tchild\r\nn1\tn2\r\nn1\tn3\r\n"),
        ("tree.csv", "source,target\nn1,n2\nn1,n3\n"),
        ("tree.csv", '"n1","n2"\n"n1", n3\n'),
        ("tree", "\ufeffn1 n2\nn1 n3\n"),
    ],
)
def test_two_columns_are_pairs(name, text, tmp_path):
    (tmp_path / name).write_bytes(text.encode())
    edges = read_edges(tmp_path / name)
    assert pairs_of(edges) == [("n1", "n2"), ("n1", "n3")]
    assert edges.origin == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.txt", "a b 1\nb c 2.5\n"),
        ("g.csv", "from,to,weight\na,b,1\nb,c,2.5\n"),
        ("g.tsv", "a\tb\t1\nb\tc\t2.5\n"),
    ],
)
def test_a_third_column_is_a_weight(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    assert pairs_of(read_edges(tmp_path / name)) == [(("a", "b"), 1.0), (("b", "c"), 2.5)]


def test_names_may_hold_spaces_between_tabs_and_commas(tmp_path):
    (tmp_path / "g.tsv").write_text("polar bear\tbear\n# one\tbear\n")
    assert pairs_of(read_edges(tmp_path / "g.tsv")) == [("polar bear", "bear"), ("# one", "bear")]
    (tmp_path / "g.csv").write_text('polar bear,"bear, brown"\n')
    assert pairs_of(read_edges(tmp_path / "g.csv")) == [("polar bear", "bear, brown")]


def test_packed_files_are_unpacked(tmp_path):
    path = tmp_path / "tree.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n"))
    assert pairs_of(read_edges(path)) == [("a", "b")]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("g.txt", b"", ": must hold two names, and a weight if any in each line; got none"),
        ("g.txt", b"parent child\n", ": must hold two names"),
        ("g.txt", b"a b\nc\n", ", line 2: must hold two names, and a weight if any; got 'c'"),
        (
            "g.txt",
            b"a b\na b c d\n",
            ", line 2: must hold two names, and a weight if any; got 'a,b",
        ),
        ("g.txt", b"a b\nb c 2\n", ", line 2: must have 2 columns as the lines before; got 3"),
        ("g.txt", b"a b x\n", ", line 1: the third column must be a finite number; got 'x'"),
        (
            "g.txt",
            b"a b 1\na c inf\n",
            ", line 2: the third column must be a finite number; got 'i",
        ),
        ("g.csv", b"a,b\n,c\n", ", line 2: must hold two names, and a weight if any; got ',c'"),
        ("g.txt", b"a b\n\xff\xfe c\n", ", line 2: must be UTF-8 text; got other bytes"),
        ("g.txt", b"a b\nc\0 d\n", ", line 2: must be text; got a zero byte"),
        ("g.txt.gz", b"a b\n", ": must be a whole gzip file; it cannot be read"),
        ("g.csv", b"a,b\n" + b"x" * 200_000 + b",b\n", ", line 2: must be a line of CSV"),
    ],
)
def test_wrong_files_are_refused_with_their_line(name, content, words, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ws.InvalidInputError, match=words) as caught:
        read_edges(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", ["g.txt", "g.csv", "g.tsv.gz"])
def test_random_bytes_are_a_clear_error(name, tmp_path, rng):
    for size in (1, 10, 1000, 100_000):
        path = tmp_path / name
        path.write_bytes(rng.bytes(size))
        with pytest.raises(ws.InvalidInputError, match="must"):
            read_edges(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ws.InvalidInputError, match=r"g.txt: must be a file; there is none"):
        read_edges(tmp_path / "g.txt")


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([], "edges must hold at least one pair of nodes; got none"),
        (["ab"], "an edge must be two names, or two names and a weight; got 'ab'"),
        ([("a", 3)], r"the ends of an edge must be names; got \('a', 3\)"),
        ([("a", "")], r"the ends of an edge must be names; got \('a', ''\)"),
        ([("a", "b", "x")], "must be a finite number; got 'x' from 'a' to 'b'"),
        ([("a", "b", True)], "must be a finite number; got True from 'a' to 'b'"),
        ([("a", "b", np.nan)], "must be a finite number; got nan from 'a' to 'b'"),
        ([("a", "b"), ("a", "c", 1)], "a weight, or none; got 1 weights of 2 edges"),
    ],
)
def test_wrong_pairs_are_refused(pairs, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        Edges(pairs)


def test_a_path_is_read_by_read_edges():
    with pytest.raises(ws.InvalidInputError, match="hint: `read_edges` reads them from a file"):
        as_edges("tree.txt")
