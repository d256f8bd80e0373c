"""What `fuse` says of its kernel, and of files that cannot make one."""

import json

import pytest

from wassemble.cli import main

TREE = "animal cat\nanimal dog\nthing car\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("sample,cat,dog,car,sky\nx,0.4,0.3,0.2,0.1\n")
    (tmp_path / "b.csv").write_text("sample,cat,dog,car,sky\nx,0.1,0.6,0.2,0.1\n")
    (tmp_path / "tree.txt").write_text(TREE)
    (tmp_path / "truth.csv").write_text("sample,label\nx,cat\ny,dog\n")
    (tmp_path / "foreign.csv").write_text("word,synonym,votes\nchat,matou,3\n")
    return tmp_path


def fuse(capsys, *arguments):
    code = main(["fuse", "a.csv", "b.csv", "--out", "out.csv", *arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_the_account_says_what_the_kernel_is_from(folder, capsys):
    code, out, err = fuse(capsys, "--tree", "tree.txt", "--epsilon", "2", "--json")
    assert code == 0
    assert (
        "\nkernel: tree of tree.txt, path cost, epsilon 2; 1 label outside of tree.txt: 'sky'\n"
        in err
    )
    (kernel,) = json.loads(out)["kernels"]
    assert kernel["models"] == ["a", "b"]
    assert "epsilon 2" in kernel["origin"]
    assert "'sky'" in kernel["notes"][0]
    assert "warning" not in err


@pytest.mark.parametrize(
    "options", [["--tree", "truth.csv"], ["--graph", "truth.csv"], ["--spelling"]]
)
def test_a_kernel_that_joins_nothing_is_warned_of(folder, capsys, options):
    code, out, err = fuse(capsys, *options, "--json")
    assert code == 0
    assert "joins no two labels of different names: it does nothing" in err
    assert len(json.loads(out)["warnings"]) == 1


def test_synonyms_of_other_words_are_refused(folder, capsys):
    code, _, err = fuse(capsys, "--synonyms", "foreign.csv")
    assert code == 2
    assert "foreign.csv must have some label as a word; it has none of 'cat'" in err
