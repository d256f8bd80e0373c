"""The parts of examples/two_language_models.py that need no language model."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import wassemble as ws

PIECES = [" a", " surf", "board", " horse", "\n", " xq"]
WORDS = ["<start>", "<end>", "<unk>", "a", "surf", "surfboard", "cat", "dog"]
FIRSTS = np.array([5, 4, 5, 0, 1, 1, 5, 5])  # the last piece spells what has no other
COUNTS = np.array([0, 50, 0, 100, 10, 30, 20, 20.0]) + 1e-6


@pytest.fixture(scope="module")
def example():
    path = Path(__file__).parents[2] / "examples" / "two_language_models.py"
    spec = importlib.util.spec_from_file_location("two_language_models", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def kernel(example):
    return example.block_kernel(PIECES, FIRSTS, WORDS, COUNTS)


def test_a_piece_is_shared_among_the_words_it_begins(kernel):
    table = kernel.toarray()
    assert table[0].tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    np.testing.assert_allclose(table[1, [4, 5]], [0.25, 0.75], rtol=1e-6)
    assert np.flatnonzero(table[4]).tolist() == [1]


def test_a_piece_inside_words_leads_nowhere(kernel):
    assert kernel.toarray()[2].sum() == 0


def test_a_piece_that_begins_no_word_leads_to_words_of_similar_meaning(kernel):
    row = kernel.toarray()[3]
    found = {WORDS[i] for i in np.argsort(-row)[:2]}
    assert found == {"cat", "dog"}


def test_transported_pieces_are_a_histogram(example, kernel):
    pieces = np.array([0.4, 0.2, 0.1, 0.0, 0.25, 0.05])
    words = example.transport(kernel, pieces)
    assert words.sum() == pytest.approx(1)
    assert words[3] / words[5] == pytest.approx(0.4 / 0.15, rel=1e-3)


@pytest.mark.parametrize("rule", [ws.ARITHMETIC, ws.GEOMETRIC, ws.Barycenter(tolerance=None)])
def test_a_gate_keeps_the_words_where_both_agree(example, kernel, rule, monkeypatch):
    monkeypatch.setattr(example, "N_PIECES", 3)
    monkeypatch.setattr(example, "N_WORDS", 4)
    words = np.array([0, 0.1, 0, 0.5, 0.1, 0.1, 0.1, 0.1])
    step = example.Step(words, np.array([0.1, 0.7, 0.05, 0.05, 0.05, 0.05]), 5, 0.0)
    similar = example.similar_words(WORDS)
    fused = example.Fusion(kernel, FIRSTS, similar, rule, 0.5, 2)
    open_gate, shut = fused.fuse(step), example.replace(fused, gate=1.0).fuse(step)
    np.testing.assert_array_equal(shut, words)
    assert open_gate.sum() == pytest.approx(1)
    assert open_gate[5] > words[5] + 0.05  # the pieces say surfboard
