"""Data sets are what the manifest says."""

import pytest

from paper.data.files import check_data, data_folder, find_data, list_data
from wassemble import InvalidInputError


def test_every_file_of_the_manifest_is_there_and_unchanged():
    files = list_data()
    assert len(files) >= 15
    assert [file.file for file in files if not check_data(file)] == []
    assert all(file.origin and file.licence and file.what for file in files)


def test_no_file_is_missing_from_the_manifest():
    named = {file.file for file in list_data()}
    files = (path for path in data_folder().rglob("*/*") if path.is_file())
    there = {path.relative_to(data_folder()).as_posix() for path in files}
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
