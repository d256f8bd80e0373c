"""What must hold before a release: `make release-check`.

Builds both distributions and checks what is in them, then installs the wheels with the oldest and
with the newest allowed dependencies in each Python that is promised, far from the clone, and runs
the snippets of the README, the examples, the gallery and the fast tests there. A Python that is not
on this machine is an error unless `--pythons` leaves it out.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if ":: 3." in name]
EXTRAS = ("cli", "onnx", "scale", "web")
# Extras that come with torch: they are tried where there is a build of it.
TORCH_EXTRAS = ("captions", "text")
# What the tests and examples import beside the package; not held to the oldest versions.
TOOLS = (
    "array-api-strict",
    "hypothesis",
    "joblib",
    "pandas",
    "polars",
    "POT",
    "pytest",
    "pytest-xdist",
)
EXAMPLES = ("digits_with_different_labels.py", "imagenet_top5.py")
# What examples read, beside what the wheel has.
DATA = ("datasets/cifar100", "datasets/flusight", "datasets/imagenet")
# The gallery, in its folder, all in one process: else most of the time would be imports.
GALLERY = """
import runpy
from pathlib import Path

import matplotlib

matplotlib.use("agg")  # no window
import matplotlib.pyplot as plt

scripts = sorted(Path().glob("plot_*.py"))
for script in scripts:
    runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
print(len(scripts))
"""
# The captioners that use them are in a clone; here it is seen that they can be imported together.
IMPORT_TORCH_EXTRAS = """
import ot
import safetensors
import transformers
from pycocoevalcap.cider.cider import Cider
"""
# The pinned one, in a build without gigabytes for graphics cards.
TORCH = next(
    f"{line}+cpu"
    for line in (ROOT / "constraints.txt").read_text().split()
    if line.startswith("torch==")
)
UV = (sys.executable, "-m", "uv", "--quiet")
# A package without a wheel for this Python is not one that people would install.
WHEELS_ALONE = ("--only-binary", ":all:")


def main() -> int:
    """Check everything; how many checks failed."""
    parser = argparse.ArgumentParser(prog="python release/check.py", description=__doc__)
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, help="such as 3.11 3.12")
    parser.add_argument("--only", choices=["oldest", "newest"], help="dependencies of one age")
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        wheels = build(Path(folder) / "dist", report)
        check_versions(report)
        for version in options.pythons:
            for age in [options.only] if options.only else ["oldest", "newest"]:
                with report.about(f"Python {version}, {age} dependencies"):
                    room = Path(folder) / f"{version}-{age}"
                    report.left_out += try_wheels(version, age, wheels, room)
                    shutil.rmtree(room)
    report.left_out += [f"Python {each}" for each in PYTHONS if each not in options.pythons]
    return report.close()


class Report:
    """What was checked, what was left out, and what failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.left_out: list[str] = []

    @contextmanager
    def about(self, what: str) -> Iterator[None]:
        """Tell how a check ends; one that fails does not keep the others from running."""
        started = time.perf_counter()
        print(f"{what} ...", flush=True)
        try:
            yield
            print(f"{what}: passed in {time.perf_counter() - started:.0f} s", flush=True)
        except CheckError as error:
            self.failed.append(what)
            print(f"{what}: FAILED\n{error}", flush=True)

    def close(self) -> int:
        """Say what was left out and what failed; how many checks that are."""
        for each in dict.fromkeys(self.left_out):
            print(f"not checked: {each}")
        print(f"failed: {'; '.join(self.failed)}" if self.failed else "ready to be released")
        return len(self.failed)


class CheckError(Exception):
    """What a check found, in words."""


def call(*command: object, cwd: Path = ROOT) -> str:
    """What a command prints, without what leads back to the clone."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if folder := clean.get("PIP_FIND_LINKS"):  # uv looks where pip does
        clean.setdefault("UV_FIND_LINKS", folder)
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CheckError(
            "\n".join(["$ " + " ".join(words), done.stdout[-4000:], done.stderr[-4000:]])
        )
    return done.stdout


def build(dist: Path, report: Report) -> list[Path]:
    """The wheels, each built from its source distribution, and both checked."""
    with report.about("building"):
        for place in (ROOT, ROOT / "native"):
            call(sys.executable, "-m", "build", "--outdir", dist, place)
    made, wheels = sorted(dist.glob("*.*")), sorted(dist.glob("*.whl"))
    with report.about("twine check"):
        call(sys.executable, "-m", "twine", "check", "--strict", *made)
    with report.about("check-wheel-contents"):
        call(Path(sys.executable).parent / "check-wheel-contents", *wheels)
    for path in made:
        print(f"  {path.name}: {path.stat().st_size / 1e6:.1f} MB")
    return wheels


def check_versions(report: Report) -> None:
    """The version stands in `__init__.py`; pages that repeat it must agree."""
    with report.about("versions"):
        source = (ROOT / "src/wassemble/__init__.py").read_text()
        version = re.search(r'__version__ = "(.*)"', source)[1]
        for name, pattern in (("CITATION.cff", r"^version: (.*)$"), ("CHANGES.md", r"^## (\S+)")):
            found = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)[1]
            if found != version:
                raise CheckError(f"{name} is about {found}; the package is {version}.")


def try_wheels(version: str, age: str, wheels: Sequence[Path], room: Path) -> list[str]:
    """Install the wheels in an environment of their own, and use them there; what was left out."""
    python = make_environment(find_python(version), age, wheels, room)
    away = room / "away"
    for name in ("tests", "examples", *DATA):
        shutil.copytree(ROOT / name, away / name, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(ROOT / "pyproject.toml", away)
    where = call(python, "-c", "import wassemble; print(wassemble.__file__)", cwd=away)
    if not Path(where.strip()).is_relative_to(room):
        raise CheckError(f"the package comes from {where}, not from the wheel.")
    call(python, "-c", readme_snippets(), cwd=away)
    call(python, "-m", "wassemble", "--version", cwd=away)
    for name in EXAMPLES:
        call(python, f"examples/{name}", cwd=away)
    said = call(python, "-c", GALLERY, cwd=away / "examples" / "gallery")
    if int(said.splitlines()[-1]) != len(list((ROOT / "examples" / "gallery").glob("plot_*.py"))):
        raise CheckError("not every example of the gallery was run.")
    ignored = tests_of_torch(python, away)
    aside = [f"--ignore={path}" for path in ignored]
    tests = ["-q", "--tb=line", "--numprocesses=auto", "-m", "fast", *aside, "tests"]
    # Compiled before: warnings of its escape sequences would be errors of our tests.
    call(python, "-W", "ignore", "-c", "import ot")
    said = call(python, "-m", "pytest", *tests, cwd=away)
    print(f"  tests: {said.splitlines()[-1]}")
    if age == "newest":  # NumPy 2.1 leaves what its arrays hold unknown
        check_types(python, away)
    if not ignored:
        try_torch_extras(version, age, wheels, room)
        return []
    reason = f"no {TORCH} for Python {version} was found (UV_FIND_LINKS, UV_INDEX: where to look)"
    what = f"{len(ignored)} files of tests, and the extras {' and '.join(TORCH_EXTRAS)}"
    return [f"{what}: {reason}"]


def find_python(version: str) -> Path:
    """An interpreter of this version: on the path, or beside the one that runs this."""
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python3"))
    for place in (shutil.which(f"python{version}"), *beside):
        # A shim may be on the path without what it stands for.
        if place and _asked(place, "import sys; print('%d.%d' % sys.version_info[:2])") == version:
            return Path(place)
    raise CheckError(f"there is no Python {version} here.\nhint: --pythons names those to check")


def _asked(python: str | Path, code: str) -> str:
    """What an interpreter prints; nothing if it cannot be started."""
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def make_environment(base: Path, age: str, wheels: Sequence[Path], room: Path) -> Path:
    """Python of a new environment that has the wheels, their dependencies and the tools."""
    call(*UV, "venv", "--python", base, room / "venv")
    python = room / "venv" / "bin" / "python"
    pins = room / "pins.txt"
    pins.touch()
    if age == "oldest":
        pin_oldest(python, pins)
    extras = f"[{','.join(EXTRAS)}]"
    named = [f"{path}{extras if path.name.startswith('wassemble-') else ''}" for path in wheels]
    install = [*UV, "pip", "install", *WHEELS_ALONE, "--python", python, "--constraints", pins]
    call(*install, *named, *TOOLS)
    with suppress(CheckError):  # `tests_of_torch` says what is left out without it
        call(*install, TORCH)
    return python


def try_torch_extras(version: str, age: str, wheels: Sequence[Path], room: Path) -> None:
    """The extras that come with torch, of the same age, beside the pinned torch."""
    python = room / "torch" / "bin" / "python"
    call(*UV, "venv", "--python", find_python(version), room / "torch")
    torch, pins = room / "torch.txt", room / "torch-pins.txt"
    torch.write_text(f"{TORCH}\n")
    shutil.copy(torch, pins)
    if age == "oldest":
        pin_oldest(python, pins, TORCH_EXTRAS, beside=[torch])
    wheel = next(path for path in wheels if path.name.startswith("wassemble-"))
    install = [*UV, "pip", "install", *WHEELS_ALONE, "--python", python, "--constraints", pins]
    call(*install, f"{wheel}[{','.join(TORCH_EXTRAS)}]", "hypothesis", "pytest", "pytest-xdist")
    call(python, "-W", "ignore", "-c", IMPORT_TORCH_EXTRAS, cwd=room / "away")
    call(python, "-m", "pytest", "-q", "--tb=line", "tests/text/models", cwd=room / "away")


def pin_oldest(
    python: Path, pins: Path, extras: Sequence[str] = EXTRAS, beside: Sequence[Path] = ()
) -> None:
    """Write the lower bounds of the package and its extras, beside what other files pin."""
    which = [f"--extra={name}" for name in extras]
    which += [f"--constraints={path}" for path in beside]
    lowest = ["--resolution", "lowest-direct", *which, "--python", python, "--output-file", pins]
    call(*UV, "pip", "compile", *WHEELS_ALONE, *lowest, ROOT / "pyproject.toml")


def tests_of_torch(python: Path, away: Path) -> list[Path]:
    """Files of tests that import torch, where there is none."""
    if _asked(python, "import torch; print(torch.__version__)"):
        return []
    imports = re.compile(r"^(import torch|from torch|from kernels.factories)", re.MULTILINE)
    return [path for path in (away / "tests").rglob("*.py") if imports.search(path.read_text())]


def readme_snippets() -> str:
    """Python of the README, as one script."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def check_types(python: Path, away: Path) -> None:
    """The types of the installed package are found, and a user's script agrees with them."""
    shutil.copy(ROOT / "release" / "user_script.py", away)
    pyright = Path(sys.executable).parent / "pyright"
    call(pyright, "--pythonpath", python, "user_script.py", cwd=away)


if __name__ == "__main__":
    sys.exit(main())
