"""No command writes over what it reads or begins work it cannot write; shells complete names."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from paper.commands import main, paper

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "v.txt").write_text("cat 1 0\ndog 0 1\n")
    (tmp_path / "k.csv").write_text("source,target,similarity\ncat,cat,1\ndog,dog,1\n")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def complete(line, incomplete):
    shell = ShellComplete(paper, {}, "paper", "_PAPER_COMPLETE")
    found = shell.get_completions(line.split(), incomplete)
    return [(each.type, each.value) for each in found]


@pytest.mark.parametrize(
    "line",
    [
        "generate --images v.txt --out v.txt",
        "generate v.txt --out v.txt",
        "generate --kernel k.csv --out k.csv",
    ],
)
def test_what_is_read_is_not_written_over(folder, capsys, line):
    before = contents(folder)
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert "an input as well" in said
    assert "hint: choose another name" in said
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("reproduce attributes --out v.txt", "--out must be a folder"),
        ("evidence animals --out v.txt", "--out must be a folder"),
        ("train-captioners tiny --out v.txt", "--out must be a folder"),
        ("generate --first 1 --out sub", "--out must be a file"),
        ("references test --out sub", "--out must be a file"),
    ],
)
def test_an_output_that_cannot_be_written_is_told_before_any_work(folder, capsys, line, message):
    before = contents(folder)
    assert main(line.split()) == 2
    assert message in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize("line", ["generate --out", "generate --kernel", "serve"])
def test_a_shell_completes_file_names(folder, line):
    [(kind, value)] = complete(line, "a")
    assert kind in ("file", "dir")
    assert value == "a"


def test_names_and_files_are_completed_where_either_may_stand(folder):
    (folder / "testing.npz").write_text("")
    found = complete("generate --images", "te")
    assert found == [("plain", "test"), ("plain", "testing.npz")]


def test_an_error_names_the_command_that_helps(capsys):
    assert main(["reproduce"]) == 2
    assert "hint: `python -m paper reproduce --help` shows" in capsys.readouterr().err


def test_captions_on_a_terminal_begin_their_lines():
    pytest.importorskip("torch")
    pytest.importorskip("pty")
    ours, its = os.openpty()
    shown = []

    def read():
        try:
            while some := os.read(ours, 65536):
                shown.append(some)
        except OSError:  # the command has closed it
            pass

    reader = threading.Thread(target=read)
    reader.start()
    options = ["--first", "2", "--rule", "geometric", "--max-words", "3"]
    command = [sys.executable, "-m", "paper", "generate", "tiny", *options]
    subprocess.run(command, cwd=ROOT, stderr=its, stdout=its, check=True)
    os.close(its)
    reader.join()
    os.close(ours)
    lines = b"".join(shown).decode().splitlines()
    assert len([line for line in lines if line.startswith('{"image_id"')]) == 2
