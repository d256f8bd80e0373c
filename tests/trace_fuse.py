"""How straight the way of `wassemble fuse a.csv b.csv` is: changes of file, and openings.

A change of file is a call in one source file of wassemble while the innermost frame of wassemble
below it is in another. So calls through other libraries count (a command that click calls, a
sum over a generator), and so does a generator each time that it goes on. What happens while a
module is imported does not. By this count the way had 492 changes before it was straightened.

    python tests/trace_fuse.py [A.csv B.csv ...]

prints the changes, the pairs of files between which they are, and how often each input was
opened.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import wassemble

_HERE = f"{Path(wassemble.__file__).parent}{os.sep}"


class Trace:
    """Counts while it is entered; ``changes`` of (caller, called) and ``openings`` of a path."""

    def __init__(self) -> None:
        self.changes: Counter[tuple[str, str]] = Counter()
        self.openings: Counter[str] = Counter()
        self._is_on = False
        sys.addaudithook(self._hear)  # for good: Python has no way to remove one

    @property
    def n_changes(self) -> int:
        return self.changes.total()

    def __enter__(self) -> Trace:
        self._is_on = True
        sys.setprofile(self._follow)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        self._is_on = False

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._is_on and event == "open" and isinstance(arguments[0], str | os.PathLike):
            self.openings[os.path.abspath(arguments[0])] += 1

    def _follow(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not _is_ours(frame):
            return
        caller = frame.f_back
        while caller is not None and not _is_ours(caller):
            caller = caller.f_back
        if caller is None or _is_importing(frame):
            return
        pair = _name(caller), _name(frame)
        if pair[0] != pair[1]:
            self.changes[pair] += 1


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_HERE)


def _name(frame: FrameType) -> str:
    return frame.f_code.co_filename.removeprefix(_HERE)


def trace_fuse(files: list[str]) -> Trace:
    """The trace of fusing ``files``, the consensus going to standard output, which is caught."""
    from wassemble.cli import main

    trace = Trace()
    with contextlib.redirect_stdout(io.StringIO()), trace:
        status = main(["fuse", *files, "--quiet"])
    assert status == 0, "the files could not be fused"
    return trace


def write_small(folder: str | Path) -> list[str]:
    """Two small prediction files."""
    texts = {
        "a.csv": "sample,cat,dog,cow\n1,0.7,0.2,0.1\n2,0.1,0.8,0.1\n3,0.3,0.3,0.4\n",
        "b.csv": "sample,cat,dog,cow\n1,0.6,0.2,0.2\n2,0.2,0.7,0.1\n3,0.2,0.2,0.6\n",
    }
    for name, text in texts.items():
        Path(folder, name).write_text(text, encoding="utf-8")
    return [str(Path(folder, name)) for name in texts]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        inputs = sys.argv[1:] or write_small(temporary)
        found = trace_fuse(inputs)
    print(f"{found.n_changes} changes of file")
    for path in inputs:
        print(f"{path}: opened {found.openings[os.path.abspath(path)]} times")
    for (one, other), n_times in found.changes.most_common():
        print(f"{n_times:5}  {one} -> {other}")
