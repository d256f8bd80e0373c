"""The commands of the guide, from a folder of Parquet files to a fused folder on a cluster."""

import re
import shlex
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from scale.clusters import contents, run, started, wait_until

pytest.importorskip("distributed")

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "scale.md"


def test_commands_of_the_guide_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8").partition("## Models on several machines")[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = text.replace(":8786", f":{port}").replace("--port 8786", f"--port {port}")
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], {})
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    assert [line.split()[0] for line in lines] == ["wassemble", "dask", "dask", "dask", "wassemble"]
    with ExitStack() as stack:
        for line in lines:
            command = [sys.executable, "-m", *shlex.split(line)]
            if line.startswith("dask"):
                process = stack.enter_context(started(command))
                wait_until(lambda: is_open(port), process)  # the scheduler comes first
                continue
            done = run(command)
            assert done.returncode == 0, done.stderr
            assert "8 partitions, 0 of an earlier run" in done.stderr
    assert len(contents(tmp_path / "fused")) == 9
    assert contents(tmp_path / "fused") == contents(tmp_path / "fused-there")


def is_open(port):
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
