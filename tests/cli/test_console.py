"""What is seen on a terminal, and what gets past it."""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

from wassemble import Predictions, write_predictions

pytest.importorskip("pty")


def on_terminal(*arguments, stdout=None):
    """Bytes that a command writes to a terminal; its standard output, too, if not given."""
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
    command = [sys.executable, "-m", "wassemble", *arguments]
    found = subprocess.run(command, stderr=its, stdout=stdout or its, check=True)
    os.close(its)
    reader.join()
    os.close(ours)
    return b"".join(shown).decode(), found.stdout


def test_a_table_for_a_pipe_gets_there_though_a_bar_is_shown(tmp_path):
    path = tmp_path / "a.csv"
    write_predictions(path, Predictions("a", ["x", "y"], ["cat", "dog"], np.full((2, 2), 0.5)))
    shown, table = on_terminal("fuse", str(path), stdout=subprocess.PIPE)
    assert table.decode().splitlines()[0] == "sample,cat,dog"
    assert "sample,cat,dog" not in shown
    assert "fusing" in shown


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_are_for_terminals_that_want_them(tmp_path, monkeypatch, no_color):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    path = tmp_path / "a.csv"
    write_predictions(path, Predictions("a", ["x", "y"], ["cat", "dog"], np.full((2, 2), 0.5)))
    shown, _ = on_terminal("fuse", str(path), f"b={path}", "--out", str(tmp_path / "c.csv"))
    has_colour = re.search(r"\x1b\[(\d+;)*3[0-8]", shown) is not None
    assert has_colour == (not no_color)
