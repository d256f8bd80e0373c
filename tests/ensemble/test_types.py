"""Types that users' own type checkers rely on."""

import dataclasses
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wassemble as ws
from wassemble.ensemble.fuse import FuseOptions

RETURNS = """
from typing import assert_type

import numpy as np

import wassemble as ws



class Frame:
    columns = ["sample", "cat"]
    shape = (1, 2)


array = np.ones((2, 3, 4))
frame = Frame()
table = ws.Predictions("a", ["x"], ["cat"], [[1.0]])

assert_type(ws.fuse(array), np.ndarray)
assert_type(ws.fuse([array, array], kernel=np.eye(4), rule=ws.Barycenter()), np.ndarray)
assert_type(ws.fuse([[0.5, 0.5], [1.0, 0.0]]), np.ndarray)
assert_type(ws.fuse({"a": frame, "b": frame}, weights={"a": 0.5, "b": 0.5}), Frame)
assert_type(ws.fuse([frame, frame]), Frame)
assert_type(ws.fuse({"a": table}, rule=ws.ARITHMETIC), ws.Predictions)
assert_type(ws.fuse([table, table]), ws.Predictions)
ws.fuse(array, epsilon=1.0)  # type: ignore[call-overload]
ws.fuse(array, rule="small")  # type: ignore[call-overload]
"""


def test_fuse_returns_what_its_input_is_made_of(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--disable-error-code=type-arg", f"--cache-dir={tmp_path}"]
    file = tmp_path / "fuse_returns.py"
    file.write_text(RETURNS)
    command += ["--config-file=", str(file)]
    source = Path(ws.__file__).parents[1]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(source)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_option_of_fuse_has_its_type():
    named = list(inspect.signature(ws.fuse).parameters)[1:-1]
    fields = [field.name for field in dataclasses.fields(ws.Fusion)]
    assert set(FuseOptions.__annotations__) == {*named, *fields}
    assert set(named) - set(fields) == {"n_threads", "progress", "out"}
