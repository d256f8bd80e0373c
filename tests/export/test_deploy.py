"""The guide from `fit` to an answer over HTTP, as it stands."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from patience import SECONDS
from shell_data import write_all

pytest.importorskip("onnxruntime", reason="heads need the extra onnx")

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "deploy.md"


def four_commands():
    block = re.search(r"^```sh\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.S | re.M)[1]
    return block.splitlines()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def ask(address, body):
    """What curl would print; waits for the server."""
    give_up = time.monotonic() + SECONDS
    while True:
        try:
            with urllib.request.urlopen(address, body) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)


def test_four_commands_go_from_files_to_an_answer(tmp_path):
    write_all(tmp_path)
    port = str(free_port())
    fit, export, serve, curl = (line.replace("8080", port) for line in four_commands())
    run = [sys.executable, "-m", "wassemble"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for line in (fit, export):
        words = [*run, *shlex.split(line)[1:]]
        subprocess.run(words, cwd=tmp_path, env=environment, check=True, capture_output=True)
    words = [*run, *shlex.split(serve)[1:]]
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as server:
        try:
            name, address, flag, data = shlex.split(curl)
            assert (name, flag, data[0]) == ("curl", "--data", "@")
            answer = ask(f"http://{address}", (tmp_path / data[1:]).read_bytes())
        finally:
            server.terminate()
    outputs = {each["name"]: each["data"] for each in answer["outputs"]}
    assert sum(outputs["scores"]) == pytest.approx(1, abs=1e-4)
    assert outputs["label"][0] == outputs["scores"].index(max(outputs["scores"]))
