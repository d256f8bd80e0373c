"""A wheel carries the library alone, and what it promises runs from it, far from any clone."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from patience import SECONDS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bin_folder(wheel, tmp_path_factory):
    """Programs of a new environment: the wheel is installed, its dependencies are borrowed."""
    folder = tmp_path_factory.mktemp("environment")
    call([sys.executable, "-m", "venv", "--without-pip", folder], folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    call([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], folder)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(call([python, "-c", code], folder).stdout.strip())
    # A folder in a .pth file is searched, but its own .pth files, such as that of an editable
    # install, are not followed.
    (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


@pytest.fixture
def run(bin_folder, tmp_path):
    """Run a program of the new environment in a folder of its own; what it prints."""
    return lambda name, *words: call([bin_folder / name, *words], tmp_path).stdout


def build(target, folder):
    """The path of a distribution of this repository."""
    call(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder], ROOT, clean=False
    )
    [found] = folder.iterdir()
    return found


def call(command, folder, *, clean=True, **variables):
    found = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=(clean_environment() if clean else dict(os.environ)) | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found


def clean_environment():
    """Without what leads back to the repository."""
    ours = ("PYTHONPATH", "WASSEMBLE_DATA")
    return {name: value for name, value in os.environ.items() if name not in ours}


def test_a_wheel_holds_the_library_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {re.sub(r"-.*\.dist-info", ".dist-info", top) for top in tops} == {
        "wassemble",
        "wassemble.dist-info",
    }
    tracked = ROOT / "src"
    missing = [
        path
        for path in tracked.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.relative_to(tracked).as_posix() not in names
    ]
    assert missing == []


def test_a_source_distribution_is_what_a_wheel_is_built_from(tmp_path):
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    python = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert python <= names
    beside = {name for name in names if not name.startswith("src/")}
    known = {"pyproject.toml", "README.md", "LICENSE", "CHANGES.md", "CITATION.cff"}
    assert beside == known | {"PKG-INFO", ".gitignore"}


def test_the_environment_has_the_wheel_and_no_clone(run, bin_folder):
    code = "import importlib.util as u, wassemble; print(wassemble.__file__, u.find_spec('paper'))"
    place, paper = run("python", "-c", code).split()
    assert Path(place).is_relative_to(bin_folder.parent)
    assert paper == "None"


def test_without_a_compiler_one_line_says_what_is_missing(tmp_path):
    shutil.copytree(ROOT / "native", tmp_path / "native")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=tmp_path / "native",
        env=os.environ | {"CXX": "no-such-compiler"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if "compiler" in line]
    assert "needs a C++17 compiler, and no-such-compiler is not there" in line
    assert line.endswith("wassemble runs without it, on NumPy.")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="no compiler")
def test_native_sweeps_are_found_once_their_wheel_is_installed(bin_folder, tmp_path):
    code = (
        "import wassemble as ws; ws.show_versions();"
        "print(ws.solve_barycenter([[[0.5, 0.5]]] * 2, [[1.0, 0.2], [0.2, 1.0]]).solver.name)"
    )
    clone = tmp_path / "native"
    shutil.copytree(ROOT / "native", clone, ignore=shutil.ignore_patterns("*.so"))
    call([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], clone)
    [wheel] = tmp_path.glob("*.whl")
    assert re.fullmatch(r"wassemble_native-.*-py3-none-\w+\.whl", wheel.name)
    room = tmp_path / "room"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    call([*pip, "--no-deps", "--no-index", "--target", room, wheel], tmp_path)
    python = bin_folder / "python"
    without = call([python, "-c", code], tmp_path, WASSEMBLE_NATIVE="0").stdout
    found = call([python, "-c", code], tmp_path, PYTHONPATH=str(room)).stdout
    assert without.split()[-1] == "plain"
    assert "sweeps            native, " in found
    assert found.split()[-1] == "native"


def test_the_snippets_of_the_readme_run(run):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    run("python", "-c", "\n".join(blocks))


def test_the_command_fuses_and_learns(run, tmp_path):
    assert run("wassemble", "--version").startswith("wassemble, version ")
    run("wassemble", "example", "animals", "demo")
    files = [str(path) for path in sorted((tmp_path / "demo").glob("resnet*"))]
    assert len(files) == 2
    run("wassemble", "fuse", *files, "--attributes", "demo/attributes.csv", "--out", "fused.csv")
    assert "zebra" in (tmp_path / "fused.csv").read_text().splitlines()[0]
    for name, shift in (("a", 0), ("b", 1)):
        rows = [f"{i},{0.9 - 0.8 * ((i + shift) % 5 % 2):.1f},0.4" for i in range(40)]
        (tmp_path / f"{name}.csv").write_text("sample,cat,dog\n" + "\n".join(rows))
    truth = [f"{i},{'dog' if i % 5 % 2 else 'cat'}" for i in range(40)]
    (tmp_path / "truth.csv").write_text("sample,label\n" + "\n".join(truth))
    words = ("a.csv", "b.csv", "--truth", "truth.csv", "--out", "ensemble")
    run("wassemble", "fit", *words, "--time-budget", "0")
    run("wassemble", "predict", "ensemble", "a.csv", "b.csv", "--out", "predicted.csv")
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 41


def test_the_web_app_serves_its_examples(bin_folder, tmp_path):
    command = [bin_folder / "wassemble", "serve", tmp_path, "--port", "0", "--no-token"]
    environment = clean_environment()
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        said = process.stderr.readline()
        address = re.search(r"http://[\d.:]+", said)
        assert address, said + process.stderr.read()
        for path in ("/explorer/view?example=animals", "/explorer/view?example=languages"):
            assert 'aria-label="Verdict"' in fetch(address[0] + path)
        assert "Create the example study" in fetch(f"{address[0]}/studies")
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def fetch(address):
    """A page; one that a busy machine has no time for is asked for again."""
    give_up = time.monotonic() + SECONDS
    while True:
        try:
            with urlopen(address, timeout=SECONDS) as page:
                return page.read().decode()
        except HTTPError as error:
            if error.code != 503 or time.monotonic() > give_up:
                raise
            time.sleep(1)
