"""`python -m paper reproduce` and `python -m paper data` as a user runs them."""

import json

import pytest

from paper.commands import main
from paper.record.catalogue import EXPERIMENTS

QUICK = ["--set", "epsilons=[0.3]", "--set", "mass-penalties=2"]


def test_an_experiment_is_run_once_and_shown(tmp_path, capsys):
    assert main(["reproduce", "attributes", "--out", str(tmp_path), *QUICK]) == 0
    shown = capsys.readouterr()
    assert "| Wasserstein " in shown.out
    assert "1/1 attributes: " in shown.err
    assert {path.name for path in tmp_path.iterdir()} == {
        "attributes.json",
        "attributes.md",
        "results.html",
    }
    record = json.loads((tmp_path / "attributes.json").read_text())
    assert record["config"]["epsilons"] == [0.3]
    assert main(["reproduce", "attributes", "--out", str(tmp_path), *QUICK, "--json"]) == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == record
    assert "made before" in again.err


def test_the_list_names_every_experiment_and_where_it_is_in_the_paper(tmp_path, capsys):
    assert main(["reproduce", "list", "--out", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found] == list(EXPERIMENTS)
    assert not any(each["record"] for each in found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dragons"], "an experiment must be one of caption-attributes, "),
        (["attributes", "--set", "epsilon"], "--set must be KEY=VALUE; got 'epsilon'"),
        (["attributes", "--set", "epsilom=1"], "a setting of 'attributes' must be one of "),
        (["attributes", "--set", "epsilon=-1"], "`epsilon` must be finite and above 0; got -1.0."),
        (["attributes", "timing", "--set", "seed=1"], "--set goes with one experiment"),
    ],
)
def test_wrong_words_are_named_and_nothing_is_written(tmp_path, capsys, arguments, words):
    assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_data_files_are_listed_with_their_licence(capsys):
    assert main(["data", "list", "--json"]) == 0
    found = {each["file"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["words/glove_100d_10k.npz"]["licence"] == "PDDL 1.0"
    assert all(each["is_whole"] for each in found.values())


def test_a_missing_file_is_shown_as_missing(tmp_path, capsys, monkeypatch):
    from paper.data.files import data_folder

    manifest = (data_folder() / "manifest.json").read_text()
    monkeypatch.setenv("WASSEMBLE_DATA", str(tmp_path))
    (tmp_path / "manifest.json").write_text(manifest)
    assert main(["data", "list"]) == 0
    shown = capsys.readouterr().out
    assert "\tNO\t" in shown
    assert "\tyes\t" not in shown
