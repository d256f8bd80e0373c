"""Hard labels in a column of another name, in some files or in all."""

import pytest

from wassemble.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,prediction\nx,cat\ny,dog\n")
    (tmp_path / "b.csv").write_text("id,label\nx,cat\ny,cow\n")
    (tmp_path / "c.csv").write_text("id,cat,dog\nx,0.9,0.1\ny,0.3,0.7\n")
    return tmp_path


def test_a_column_of_names_that_is_read_as_scores_is_told_with_its_flag(folder, capsys):
    assert main(["fuse", "a.csv", "b.csv", "--out", "f.csv"]) == 2
    assert "--label-column prediction" in capsys.readouterr().err


def test_the_label_column_of_one_file_leaves_the_others_alone(folder, capsys):
    files = ["a.csv", "b.csv", "c.csv"]
    assert main(["fuse", *files, "--label-column", "a=prediction", "--out", "f.csv"]) == 0
    assert (folder / "f.csv").read_text().startswith("id,cat,dog,cow\n")


def test_a_label_column_for_all_that_a_file_lacks_is_told_with_the_way_to_name_the_model(
    folder, capsys
):
    command = ["fuse", "a.csv", "b.csv", "--label-column", "prediction", "--out", "f.csv"]
    assert main(command) == 2
    assert "--label-column MODEL=NAME is for one" in capsys.readouterr().err


def test_the_score_column_may_be_that_of_one_file(folder, capsys):
    (folder / "d.csv").write_text("id,label,p\nx,cat,0.8\ny,dog,0.6\n")
    assert main(["fuse", "d.csv", "c.csv", "--score-column", "d=p", "--out", "f.csv"]) == 0
    assert "id,cat,dog" in (folder / "f.csv").read_text()


def test_a_column_for_a_model_that_is_not_there_is_refused(folder, capsys):
    assert main(["fuse", "a.csv", "b.csv", "--label-column", "z=prediction"]) == 2
    assert "--label-column must name a model, one of a, b; got z" in capsys.readouterr().err
