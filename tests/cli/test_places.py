"""No command writes over what it reads, whatever the file is called; shells complete files."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from wassemble import Fusion, Predictions, write_predictions
from wassemble.cli import main
from wassemble.cli.command import command as whole_command
from wassemble.cli.places import Command, NamedFile, NameOrFile, Output
from wassemble.errors import InvalidInputError
from wassemble.inputs import open_predictions
from wassemble.scale import fuse_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = Predictions("a", ["x", "y"], ["cat", "dog"], [[0.7, 0.3], [0.2, 0.8]])
    for name in ("a.csv", "b.csv", "a.npy", "parts/a/1.csv", "parts/b/1.csv", "sub/c.csv"):
        write_predictions(name, table)
    (tmp_path / "truth.csv").write_text("sample,label\nx,cat\ny,dog\n")
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    (tmp_path / "v.txt").write_text("cat 1 0\ndog 0 1\n")
    (tmp_path / "k.csv").write_text("source,target,similarity\ncat,cat,1\ndog,dog,1\n")
    (tmp_path / "fuse.toml").write_text('files = ["a.csv"]\n')
    (tmp_path / "g.jsonl").write_text('{"image_id": "1", "caption": "a cat"}\n')
    (tmp_path / "h.jsonl").write_text('{"image_id": "1", "caption": "a dog"}\n')
    (tmp_path / "link.csv").symlink_to("a.csv")
    os.link("a.csv", "hard.csv")
    (tmp_path / "linked").symlink_to("parts/a")
    ensemble = tmp_path / "e"
    ensemble.mkdir()
    (ensemble / "ensemble.json").write_text("{}")
    (ensemble / "kernel-0.npz").write_text("")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "line",
    [
        "fuse a.csv b.csv --out a.csv",
        "fuse a.csv b.csv --out ./sub/../a.csv",
        "fuse a.csv b.csv --out file://{here}/a.csv",
        "fuse a.csv b.csv --out link.csv",
        "fuse a.csv b.csv --out hard.csv",
        "fuse link.csv b.csv --out a.csv",
        "fuse first=a.csv b.csv --out a.csv",
        "fuse a.csv b.csv --target labels.txt --out labels.txt",
        "fuse a.csv b.csv --embeddings v.txt --out v.txt",
        "fuse a.csv b.csv --kernel k.csv --out k.csv",
        "fuse a.csv b.csv --kernel a=k.csv --out k.csv",
        "fuse a.csv b.csv --confusion truth.csv --out truth.csv",
        "fuse a.csv b.csv --labels a=labels.txt --out labels.txt",
        "fuse a.csv b.csv --target a.labels.txt --out a.npy",
        "fuse --config fuse.toml --out fuse.toml",
        "fuse parts/a parts/b --out parts/a",
        "fuse parts/a parts/b --out linked",
        "fuse parts/a parts/b --out parts/a/fused",
        "fuse parts/a parts/b --out parts",
        "fuse parts/a parts/b --out .",
        "fuse memory://x/a memory://x/b --out memory://x/a/",
        "fuse memory://x/a memory://x/b --out memory://x",
        "kernel --source labels.txt --spelling --out labels.txt",
        "kernel --source a.csv --kernel k.csv --out k.csv",
        "fit a.csv b.csv --truth truth.csv --out .",
        "fit sub/c.csv a.csv --truth truth.csv --out sub",
        "fit a.csv b.csv --truth truth.csv --out new --log truth.csv",
        "fit a.csv b.csv --truth truth.csv --out new --log link.csv",
        "predict e a.csv b.csv --out a.csv",
        "predict e a.csv b.csv --out e/kernel-0.npz",
        "report e a.csv b.csv --truth truth.csv --out e/ensemble.html",
        "study items g=g.jsonl h=h.jsonl --out g.jsonl",
        "study items g=g.jsonl h=h.jsonl --references v.txt --out v.txt",
    ],
)
def test_what_is_read_is_not_written_over(folder, capsys, line):
    before = contents(folder)
    assert main(line.format(here=folder).split()) == 2
    said = capsys.readouterr().err
    words = ("an input as well", "in a folder that is read", "folder of its own")
    assert any(each in said for each in words)
    assert "hint: choose another name" in said
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit a.csv b.csv --truth truth.csv --out b.npy", "--out must be a folder"),
        ("fit a.csv b.csv --truth truth.csv --out b.npy/e", "b.npy is a file"),
        ("fit a.csv b.csv --truth truth.csv --out new --log sub", "--log must be a file"),
        ("predict e a.csv --out sub", "--out must be a file; got sub, which is a folder"),
        ("predict e a.csv --out f.xyz", "must end in .csv"),
        ("kernel --source labels.txt --spelling --out k.txt", "must end in .npz or .parquet"),
        ("example animals v.txt", "FOLDER must be a folder, new or not; got v.txt"),
    ],
)
def test_an_output_that_cannot_be_written_is_told_before_any_work(
    folder, capsys, monkeypatch, line, message
):
    write_predictions("b.npy", Predictions("b", ["x"], ["cat"], [[1.0]]))
    for name in ("learn_ensemble", "LearnedEnsemble"):
        monkeypatch.setattr(f"wassemble.ensemble.learning.{name}", None)
    before = contents(folder)
    assert main(line.split()) == 2
    assert message in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize(
    "line",
    [
        "fuse a.csv b.csv --target labels.txt --out fused.csv",
        "fuse a.csv b.csv --out fused.csv",
        "fuse parts/a parts/b --out parts-fused",
        "fuse parts/a parts/b --out parts/fused",
    ],
)
def test_other_files_of_the_same_folder_may_be_written_again_and_again(folder, line):
    assert main(line.split()) == 0
    assert main(line.split()) == 0


def test_a_page_may_lie_in_the_folder_of_its_ensemble(folder, capsys):
    line = "report e a.csv b.csv --truth truth.csv --out e/report.html"
    assert main(line.split()) == 2
    assert "must be a learned ensemble" in capsys.readouterr().err  # and nothing of --out


def test_python_does_not_write_over_a_file_that_it_reads(folder):
    with (
        open_predictions("a.csv") as file,
        pytest.raises(InvalidInputError, match=r"the output must not be an input as well"),
    ):
        fuse_files([file], "hard.csv")
    assert Fusion().run([file_of("a.csv")]).consensus.n_samples == 2


def file_of(name):
    with open_predictions(name) as file:
        return next(file.chunks(10))


def every_command(group=whole_command, path=()):
    for name, found in group.commands.items():
        if isinstance(found, click.Group):
            yield from every_command(found, (*path, name))
        else:
            yield (*path, name), found


def test_every_command_that_writes_checks_first_and_every_file_is_typed():
    for path, found in every_command():
        names = {parameter.name: parameter.type for parameter in found.params}
        if path != ("completion",):
            assert isinstance(found, Command), path
        for name in {"out", "log"} & set(names):
            assert isinstance(names[name], Output), (path, name)
        for parameter in found.params:
            shown = parameter.metavar or ""
            if "FILE" in shown and parameter.name != "out":
                assert isinstance(parameter.type, NamedFile | NameOrFile), (path, parameter.name)


def test_every_option_says_what_it_does():
    for path, found in every_command():
        assert found.help, path
        for option in (each for each in found.params if isinstance(each, click.Option)):
            told = (option.help or "").split("  [")[0]
            assert len(told.split()) >= 3, (path, option.name)
            assert told.endswith((".", "]")), (path, option.name)


# -- completion ------------------------------------------------------------------------


def complete(line, incomplete):
    shell = ShellComplete(whole_command, {}, "wassemble", "_WASSEMBLE_COMPLETE")
    found = shell.get_completions(line.split(), incomplete)
    return [(each.type, each.value) for each in found]


@pytest.mark.parametrize(
    "line",
    [
        "fuse",
        "fuse a.csv",
        "fuse a.csv --out",
        "fuse a.csv --kernel",
        "fuse a.csv --target",
        "explain a.csv --embeddings",
        "describe",
        "kernel --source",
        "fit a.csv --truth",
        "fit a.csv --log",
        "predict",
        "predict e",
        "report e a.csv --out",
        "study items",
        "example animals",
        "serve",
    ],
)
def test_a_shell_completes_file_names(folder, line):
    [(kind, value)] = complete(line, "a")
    assert kind in ("file", "dir")
    assert value == "a"


def test_files_are_completed_behind_the_name_of_a_model(folder):
    expected = [("plain", "first=a.csv"), ("plain", "first=a.labels.txt")]
    assert complete("fuse", "first=a.")[:2] == expected
    assert complete("fuse", "first=pa") == [("plain", "first=parts/")]
    assert complete("fuse", "first=parts/") == [
        ("plain", "first=parts/a/"),
        ("plain", "first=parts/b/"),
    ]
    assert complete("fuse", "first=nothing/x") == []


BASH = """
eval "$({python} -m wassemble completion bash)"
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
COMP_TYPE=9
compopt() {{ echo "compopt $2"; }}
_wassemble_completion wassemble
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("wassemble fuse a", "compopt default"),  # bash itself completes files
        ("wassemble fuse first = a", "compopt default"),  # bash takes words apart there
        ("wassemble fuse a.csv --out su", "compopt default"),
        ("wassemble fus", "fuse"),
        ("wassemble fuse a.csv --embed", "--embeddings"),
        ("wassemble fuse a.csv --rule geo", "geometric"),
    ],
)
def test_bash_completes_files_and_options(folder, words, expected):
    # The script calls the command by its name: put one of that name on the path.
    script = Path("bin/wassemble")
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m wassemble "$@"\n')
    script.chmod(0o755)
    source = BASH.format(python=shlex.quote(sys.executable), words=words)
    environment = os.environ | {"PATH": f"{script.parent.absolute()}:{os.environ['PATH']}"}
    found = subprocess.run(
        ["bash", "-c", source], capture_output=True, text=True, check=False, env=environment
    )
    assert expected in found.stdout.split("\n"), found.stderr
