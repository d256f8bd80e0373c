"""Every line of shell in the pages and in the help texts runs as it stands, or says why not.

A line that is neither run nor listed in `NOT_RUN` fails. What is listed is checked as far as
it can be: its options are parsed, its make target or its extra is looked up. `WASSEMBLE_LONG=1`
runs the slow ones, too.
"""

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from shell_data import write_all

from paper.commands import main as paper_main, paper as paper_command
from wassemble.cli import main
from wassemble.cli.command import command as whole_command

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
IS_LONG = bool(os.environ.get("WASSEMBLE_LONG"))


class NotRun(NamedTuple):
    """Lines that are not run, why, and what is checked in place of it."""

    pattern: str
    why: str
    check: Callable[[str], None]


NAMES = {whole_command: "wassemble", paper_command: "python -m paper"}
MAINS = {whole_command: main, paper_command: paper_main}


def group_of(line):
    """The commands that a line calls one of."""
    words = re.sub(r"^(\w+=\S+ )*", "", line)  # variables of the environment
    return next((each for each, name in NAMES.items() if words.startswith(f"{name} ")), None)


def parses(line):
    """The command takes these options and arguments."""
    words = shlex.split(line, comments=True)
    while "=" in words[0]:  # a variable of the environment
        words.pop(0)
    group, context = group_of(line), None
    del words[: len(NAMES[group].split())]
    while isinstance(group, click.Group):
        name = words.pop(0)
        group = group.commands[name]
    context = group.make_context(name, words)
    assert context.params is not None


def is_a_target(line):
    makefile = (ROOT / "Makefile").read_text()
    for name in shlex.split(line, comments=True)[1:]:
        assert re.search(rf"^{re.escape(name)}:", makefile, re.MULTILINE), name


def is_an_extra(line):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for names in re.findall(r"'\.\[(.*?)\]'", line):
        assert set(names.split(",")) <= set(extras), line
    for given in re.findall(r"-c (\S+)", line):
        assert (ROOT / given).is_file()


def is_for_ranks(line):
    parses("wassemble" + line.partition("-m wassemble")[2])


def is_a_file(line):
    assert (ROOT / shlex.split(line)[1]).is_file()


def is_of_shipped_files(line):
    """Files that come with the repository are there; tests/cli/test_guide.py runs the line."""
    parses(line)
    places = [word for word in shlex.split(line) if word.startswith("datasets/")]
    assert all(list(ROOT.glob(place)) for place in places)


def is_known(line):
    assert line


NOT_RUN = [
    NotRun(r"pip install ", "installs packages", is_an_extra),
    NotRun(r"make ", "would run for minutes, and this very test", is_a_target),
    NotRun(r".*(wassemble|paper) serve ?", "runs until it is stopped; tests/web starts it", parses),
    NotRun(r"curl ", "needs the server; tests/export/test_deploy.py runs both", is_known),
    NotRun(r"python -m paper demo", "half a minute; tests/paper/test_demo.py", parses),
    NotRun(r"python -m paper heads", "runs for minutes", parses),
    NotRun(r"python -m paper score-captioners$", "runs for a minute; tests/paper", parses),
    NotRun(r"python -m paper train-captioners", "trains for minutes; tests/paper does", parses),
    NotRun(r"python -m paper reproduce (all|captioning) ", "an hour; `make results`", parses),
    NotRun(r"python -m paper without-truth", "needs minutes; tests/paper", parses),
    NotRun(r"python -m paper flusight", "runs for a minute; `make evidence`", parses),
    NotRun(r"python -m paper evidence", "runs for minutes; `make evidence`", parses),
    NotRun(r".* --scheduler tcp://", "there is no cluster at the address; tests/scale", parses),
    NotRun(r"dask (scheduler|worker) ", "runs until it is stopped; tests/scale", is_known),
    NotRun(r"python examples/", "tests/examples runs them", is_a_file),
    NotRun(r"python -m paper generate smoothed mine/", "needs your own pictures", parses),
]
if shutil.which("sqlite3") is None:
    NOT_RUN.append(NotRun(r"sqlite3 ", "is not installed here; Python does the same", is_known))
if find_spec("onnxruntime") is None:
    NOT_RUN.append(NotRun(r"wassemble (export|verify) ", "heads need the extra onnx", parses))
# Run in the long suite alone: ten seconds and more of the processor each.
SLOW = {
    r"python -m paper generate (?!--first 5$)": parses,
    r"python -m paper reproduce attributes ": parses,
    r"torchrun ": is_for_ranks,
    r"wassemble (fit|evaluate \w+) (datasets|demo)/.* --truth ": is_of_shipped_files,
}


COMMANDS = {
    "wassemble": "-m wassemble",
    "python": "",
    "torchrun": "-m torch.distributed.run",
}


def why_not(line):
    return next((each for each in NOT_RUN if re.match(each.pattern, line)), None)


def slow_check(line):
    return next((check for pattern, check in SLOW.items() if re.match(pattern, line)), None)


def joined(lines):
    """Lines of shell; one that ends in a backslash goes on."""
    text = "\n".join(lines).replace("\\\n", " ")
    found = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    return [line for line in found if line and not line.startswith("#")]


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:sh|bash|shell|console)\n(.*?)^```$", text, re.DOTALL | re.M)
    return [line for block in blocks for line in joined(block.splitlines())]


def every_command():
    """Words that call each command, and the command."""
    todo = [((name,), group) for group, name in NAMES.items()]
    while todo:
        path, group = todo.pop(0)
        yield path, group
        todo += [((*path, name), found) for name, found in getattr(group, "commands", {}).items()]


def examples_of(command):
    """Lines of the help text that are shell: those of paragraphs that are kept as they are."""
    paragraphs = re.split(r"\n\s*\n", command.help or "")
    shown = [p.split("\b\n")[1] for p in paragraphs if "\b\n" in p]
    return [line for p in shown for line in joined(map(str.strip, p.splitlines()))]


WITH_SHELL = [page for page in PAGES if blocks_of(page)]
HELPED = {" ".join(path): examples_of(found) for path, found in every_command()}
HELPED = {name: lines for name, lines in HELPED.items() if lines}


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Files to copy: they are made once."""
    folder = tmp_path_factory.mktemp("prepared")
    write_all(folder)
    return folder


@pytest.fixture
def run(prepared, tmp_path):
    """A function that runs a line of shell where the files are that it may name."""
    folder = tmp_path / "work"
    subprocess.run(["cp", "-r", prepared, folder], check=True)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, words in COMMANDS.items():
        script = tools / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n')
        script.chmod(0o755)
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    # A clone is where `python -m paper` runs; here it is where the files are.
    places = (str(ROOT), os.environ.get("PYTHONPATH"))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))

    def run(line):
        found = subprocess.run(
            ["bash", "-c", line],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert found.returncode == 0, f"{line}\n{found.stderr}"
        return found

    run.folder = folder
    return run


def try_all(lines, run, monkeypatch):
    monkeypatch.chdir(run.folder)
    for line in lines:
        listed = why_not(line)
        if listed is not None:
            listed.check(line)
        elif not IS_LONG and (check := slow_check(line)) is not None:
            check(line)
        else:
            run(line)


@pytest.mark.parametrize("page", WITH_SHELL, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_shell_of_a_page_runs_from_top_to_bottom(page, run, monkeypatch):
    text = page.read_text(encoding="utf-8")
    lines = blocks_of(page)
    for toml in re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.M):
        (run.folder / "fuse.toml").write_text(toml)
        lines.append("wassemble fuse --config fuse.toml")
    prepare = PREPARE.get(page.name)
    if prepare is not None:
        monkeypatch.chdir(run.folder)
        prepare(text)
    try_all(lines, run, monkeypatch)


def run_first_python(text):
    """What the page itself says to make first."""
    block = re.search(r"^```python\n(.*?)^```$", text, re.DOTALL | re.M)[1]
    exec(block, {})


def open_database(_):
    """The database that `serve` makes."""
    import sqlite3

    with sqlite3.connect("studies/wassemble.db") as connection:
        connection.execute("create table t (x)")
    connection.close()


PREPARE = {"scale.md": run_first_python, "web.md": open_database}


@pytest.mark.parametrize("name", HELPED)
def test_examples_of_a_help_text_run(name, run, monkeypatch, capsys):
    def run_here(line):
        group = group_of(line)
        if group is None:
            return run(line)
        # The same words that a shell gives, without a second for each start.
        words = shlex.split(line, comments=True)[len(NAMES[group].split()) :]
        words = [each for word in words for each in (sorted(glob.glob(word)) or [word])]
        assert MAINS[group](words) == 0, f"{line}\n{capsys.readouterr().err}"
        return None

    run_here.folder = run.folder
    try_all(HELPED[name], run_here, monkeypatch)


def test_every_command_shows_examples():
    without = [
        " ".join(path)
        for path, found in every_command()
        if " ".join(path) not in HELPED and path[1:] not in (("study",), ("data", "list"))
    ]
    assert without == []


def test_every_reason_not_to_run_is_needed():
    lines = [line for page in WITH_SHELL for line in blocks_of(page)]
    lines += [line for examples in HELPED.values() for line in examples]
    unused = [each.pattern for each in NOT_RUN if not any(why_not(x) is each for x in lines)]
    unused += [pattern for pattern in SLOW if not any(re.match(pattern, line) for line in lines)]
    assert unused == []


def test_commands_in_running_text_parse():
    """What stands in backquotes as a whole command is one."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        for found in re.findall(r"`((?:wassemble|python -m paper) [^`]*)`", text):
            line = re.sub(r"\s+", " ", found)
            whole = group_of(line)
            words = line.split()[len(NAMES[whole].split()) :]
            assert words[0] in whole.commands or words[0].startswith("-"), (page, line)
            flags = [word for word in words if word.startswith("--")]
            group = whole.commands.get(words[0], whole)
            if isinstance(group, click.Group) and len(words) > 1 and words[1] in group.commands:
                group = group.commands[words[1]]
            known = {flag for p in group.params for flag in (*p.opts, *p.secondary_opts)}
            assert set(flags) <= known | {"--help", "--version"}, (page, line)
