"""A record is made anew when a file that its experiment uses has changed, and only then."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paper.record import fingerprint as module
from paper.record.catalogue import EXPERIMENTS
from paper.record.fingerprint import fingerprint, used_files

ROOT = Path(__file__).parents[2]
ATTRIBUTES = EXPERIMENTS["attributes"]


def used_by(name):
    files = used_files(f"paper.{EXPERIMENTS[name].module}")
    return {path.relative_to(ROOT).as_posix() for path in files}


@pytest.mark.parametrize("name", ["attributes", "multilabel", "captioning-vocabulary"])
def test_whatever_an_import_loads_is_used(name):
    code = (
        f"import json, sys, paper.{EXPERIMENTS[name].module}\n"
        "ours = [m for n, m in sys.modules.items() if n.split('.')[0] in ('paper', 'wassemble')]\n"
        "print(json.dumps([m.__file__ for m in ours]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {Path(path).resolve() for path in json.loads(done.stdout)}
    assert len(loaded) > 50
    assert loaded <= used_files(f"paper.{EXPERIMENTS[name].module}")


def test_what_an_experiment_does_not_import_is_not_used():
    used = used_by("attributes")
    others = ("src/wassemble/web", "src/wassemble/cli", "src/wassemble/text", "paper/captioning")
    assert [path for path in used if path.startswith(others)] == []
    assert "paper/record/catalogue.py" not in used  # a new experiment leaves the others alone


def test_imports_inside_functions_and_of_lazy_names_are_used(tmp_path, monkeypatch):
    source = "def run():\n    import wassemble as ws\n    return ws.kernels.load\n"
    (tmp_path / "lazy.py").write_text(source)
    real = module._source
    monkeypatch.setattr(
        module, "_source", lambda n: tmp_path / "lazy.py" if n == "paper.lazy" else real(n)
    )
    used = used_files("paper.lazy")
    assert {"lazy.py", "__init__.pyi"} <= {path.name for path in used}
    assert "kernels" in {path.parent.name for path in used}


def test_settings_and_files_in_use_change_the_fingerprint(tmp_path, monkeypatch):
    made_by = fingerprint(ATTRIBUTES, {"epsilon": 0.3})
    assert fingerprint(ATTRIBUTES, {"epsilon": 0.3}) == made_by
    assert fingerprint(ATTRIBUTES, {"epsilon": 0.4}) != made_by
    real, changed = module._source, tmp_path / "solvers" / "__init__.py"
    changed.parent.mkdir()
    name = "wassemble.solvers"
    monkeypatch.setattr(module, "_source", lambda n: changed if n == name else real(n))
    changed.write_bytes(real(name).read_bytes())
    same_content = fingerprint(ATTRIBUTES, {"epsilon": 0.3})
    changed.write_text(changed.read_text() + "# another line\n")
    assert fingerprint(ATTRIBUTES, {"epsilon": 0.3}) != same_content
