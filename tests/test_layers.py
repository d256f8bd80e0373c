"""The package keeps its shape: layers in order, a light import, public names described."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import wassemble

ROOT = Path(__file__).parents[1]
OPTIONAL = ("torch", "sklearn", "pandas", "pyarrow", "ot", "matplotlib", "dask")


def test_each_layer_imports_only_from_those_below_it():
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_packages_list_their_public_names():
    files = [path for path in (ROOT / "src").rglob("*.py") if path.name != "__init__.py"]
    assert len(files) > 100
    assert [path.name for path in files if "__all__" in path.read_text(encoding="utf-8")] == []


def test_importing_wassemble_imports_nothing_optional():
    script = "import json, sys, wassemble; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout))
    assert "wassemble" in loaded
    assert loaded.intersection(OPTIONAL) == set()


@pytest.mark.parametrize("name", wassemble.__all__)
def test_every_public_name_has_a_docstring_of_its_own(name):
    assert own_docstring(getattr(wassemble, name))


def own_docstring(thing):
    """The docstring written for ``thing``: not inherited, and not a dataclass's signature."""
    if not inspect.isclass(thing):
        return thing.__doc__
    text = vars(thing).get("__doc__") or ""
    return "" if text.startswith(f"{thing.__name__}(") else text
