"""Beside the library as it was before it had native sweeps, in processes that take turns."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from wassemble.solvers.native_sweep import find_native

ROOT = Path(__file__).parents[1]
#: The last commit without native sweeps.
BEFORE = "d2b46bd"
_N_TURNS = 3


def run(*, quick: bool) -> dict:
    """Seconds of each case by age of the library; none where the history is not there."""
    with tempfile.TemporaryDirectory() as folder:
        if not _unpack(Path(folder)):
            return {"commit": BEFORE, "seconds": {}}
        natives = {} if find_native() is None else {"native": {}}
        kinds = {
            "before": {"PYTHONPATH": str(Path(folder) / "src"), "WASSEMBLE_NATIVE": "0"},
            "NumPy": {"WASSEMBLE_NATIVE": "0"},
            **natives,
        }
        best: dict[str, dict[str, float]] = {}
        for _ in range(1 if quick else _N_TURNS):
            for kind, switches in kinds.items():
                found = _measure(switches, quick=quick)
                known = best.setdefault(kind, found)
                best[kind] = {case: min(found[case], known[case]) for case in found}
    return {"commit": BEFORE, "seconds": best}


def _unpack(folder: Path) -> bool:
    """The sources of that commit; False in a clone without its history."""
    done = subprocess.run(
        ["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True, check=False
    )
    if done.returncode:
        return False
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return True


def _measure(switches: dict[str, str], *, quick: bool) -> dict[str, float]:
    command = [sys.executable, Path(__file__).with_name("before_worker.py")]
    done = subprocess.run(
        [*command, "quick"] if quick else command,
        env=os.environ | switches,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)
