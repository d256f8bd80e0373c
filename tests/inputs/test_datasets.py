"""Data sets are what the manifest says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wassemble
from wassemble import InvalidInputError
from wassemble.inputs.datasets import check_data, data_folder, find_data, list_data


def test_every_file_of_the_manifest_is_there_and_unchanged():
    files = list_data()
    assert len(files) >= 15
    assert [file.file for file in files if not check_data(file)] == []
    assert all(file.origin and file.licence and file.what for file in files)


def test_no_file_is_missing_from_the_manifest():
    named = {file.file for file in list_data()}
    there = {p.relative_to(data_folder()).as_posix() for p in data_folder().rglob("*/*")}
    assert {name for name in there if "__pycache__" not in name} == named


def test_a_missing_file_is_named_with_the_way_to_it(tmp_path, monkeypatch):
    monkeypatch.setenv("WASSEMBLE_DATA", str(tmp_path))
    with pytest.raises(InvalidInputError, match=r"voc2007/x.npy must be in .*\nhint: it comes"):
        find_data("voc2007/x.npy")


def test_a_changed_file_is_noticed(tmp_path, monkeypatch):
    (file,) = [file for file in list_data() if file.file.endswith("class_names.txt")]
    monkeypatch.setenv("WASSEMBLE_DATA", str(tmp_path))
    assert not check_data(file)
    path = tmp_path / file.file
    path.parent.mkdir()
    path.write_bytes(b"x" * file.bytes)
    assert not check_data(file)


def test_a_copy_that_was_installed_finds_the_repository_it_runs_in(tmp_path):
    installed = tmp_path / "lib" / "python" / "site-packages"
    shutil.copytree(Path(wassemble.__file__).parent, installed / "wassemble")
    strange = tmp_path / "strange"  # a folder of the same name that is not ours
    (strange / "datasets" / "words").mkdir(parents=True)
    (strange / "datasets" / "words" / "ppdb_synonyms.txt").write_text("mine")

    def find(folder, **more):
        environment = {k: v for k, v in os.environ.items() if k != "WASSEMBLE_DATA"}
        code = "from wassemble.inputs.datasets import find_data as f\n"
        return subprocess.run(
            [sys.executable, "-P", "-c", code + "print(f('words/ppdb_synonyms.txt'))"],
            env=environment | {"PYTHONPATH": str(installed)} | more,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    shipped = str(data_folder() / "words" / "ppdb_synonyms.txt")
    assert find(data_folder().parent).stdout.strip() == shipped
    assert find(strange, WASSEMBLE_DATA=str(data_folder())).stdout.strip() == shipped
    lost = find(strange)
    assert lost.returncode == 1
    assert "hint: it comes with the repository: git clone, then run there" in lost.stderr
