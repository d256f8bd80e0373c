"""Golden vectors replayed in JavaScript, by onnxruntime-web in Node."""

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="heads need the extra onnx")

from export.small import BAD, GOOD, refusal, write_head

import wassemble as ws
from wassemble.export import export_onnx, load_head
from wassemble.labels import LabelSpace

NODE = Path(__file__).parent / "node"
if shutil.which("node") is None or not (NODE / "node_modules/onnxruntime-web").is_dir():
    pytest.skip("no Node, or no onnxruntime-web: `make node` installs it", allow_module_level=True)


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    folder = tmp_path_factory.mktemp("node")

    def run(head, inputs):
        request = folder / "request.json"
        request.write_text(json.dumps(inputs))
        library = str(files("wassemble.export") / "web" / "head.mjs")
        command = ["node", str(NODE / "replay.mjs"), library, str(head), str(request)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize(
    "options", [{}, {"dtype": "float64"}, {"gaps": True}, {"abstentions": False}], ids=str
)
def test_node_answers_as_the_library(replay, tmp_path, options):
    write_head(tmp_path / "head.onnx", **options)
    golden = json.loads((tmp_path / "head.golden.json").read_text())
    found = replay(tmp_path / "head.onnx", golden["inputs"])["outputs"]
    np.testing.assert_allclose(found["scores"], golden["outputs"]["scores"], atol=1e-5)
    assert found["label"] == golden["outputs"]["label"]


@pytest.mark.parametrize("what", BAD)
def test_node_refuses_in_the_same_words(replay, tmp_path, what):
    write_head(tmp_path / "head.onnx")
    words = refusal(load_head(tmp_path / "head.onnx"), BAD[what])
    assert replay(tmp_path / "head.onnx", BAD[what]) == {"error": words}


def test_node_needs_no_mask(replay, tmp_path):
    write_head(tmp_path / "head.onnx")
    found = replay(tmp_path / "head.onnx", GOOD)["outputs"]["scores"]
    np.testing.assert_allclose(found, load_head(tmp_path / "head.onnx")(GOOD)["scores"], atol=1e-6)


def test_node_keeps_the_order_of_models_whose_names_are_numbers(replay, tmp_path):
    spaces = {name: LabelSpace(["x", "y"]) for name in ("10", "2")}
    head = tmp_path / "head.onnx"
    export_onnx(ws.Fusion(ws.HELLINGER, kind="multiclass"), head, models=spaces)
    scores = {"10": [[0.9, 0.1]], "2": [[None, None]]}  # silent: what it said does not matter
    found = replay(head, scores | {"answered": [[1, 0]]})["outputs"]["scores"]
    np.testing.assert_allclose(found, [[0.9, 0.1]], atol=1e-6)
