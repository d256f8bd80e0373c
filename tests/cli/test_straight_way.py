"""The way of `wassemble fuse a.csv b.csv`, as `trace_fuse` counts it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import trace_fuse

# May only go down.
MOST_CHANGES = 246


@pytest.fixture(scope="module")
def told() -> str:
    script = Path(trace_fuse.__file__)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    return ran.stdout


def test_a_csv_is_opened_twice_at_most(told):
    openings = [int(times) for times in re.findall(r"opened (\d+) times", told)]
    assert len(openings) == 2
    assert all(0 < times <= 2 for times in openings)


def test_the_way_changes_from_file_to_file_no_more_often_than_it_did(told):
    found = re.match(r"(\d+) changes of file", told)
    assert found is not None
    assert 100 < int(found[1]) <= MOST_CHANGES


def test_what_is_fused_is_written_while_it_is_traced(tmp_path, capsys):
    files = trace_fuse.write_small(tmp_path)
    trace = trace_fuse.trace_fuse(files)
    assert capsys.readouterr().err == ""
    assert any(called == "scale/files.py" for _, called in trace.changes)
