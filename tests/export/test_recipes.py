"""Recipes of the guide, in MLflow and by the clients of Triton and KServe: `make test-recipes`."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from export.small import GOOD, write_head

from wassemble.export import load_head

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "deploy.md"
REASON = "not installed: `make test-recipes` has it"


def block(language):
    text = GUIDE.read_text(encoding="utf-8")
    return re.search(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)[1]


@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_mlflow_runs_a_head(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason=REASON)
    path = tmp_path / "head.onnx"
    write_head(path)
    names = {}
    exec(block("py"), names)
    saved = str(tmp_path / "saved")
    mlflow.pyfunc.save_model(
        saved, python_model=names["FusionHead"](), artifacts={"head": str(path)}
    )
    found = mlflow.pyfunc.load_model(saved).predict({k: np.array(v) for k, v in GOOD.items()})
    np.testing.assert_array_equal(found, load_head(path)(GOOD)["scores"])


READ_CONFIG = """
import sys
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

print(text_format.Parse(sys.stdin.read(), ModelConfig()).name)
"""


def test_triton_knows_every_field():
    if find_spec("tritonclient") is None:
        pytest.skip(f"tritonclient is {REASON}")
    # In a process of its own: KServe's messages have the same names as Triton's.
    words = [sys.executable, "-c", READ_CONFIG]
    done = subprocess.run(words, input=block("text"), text=True, capture_output=True, check=False)
    assert (done.stdout, done.returncode) == ("head\n", 0), done.stderr


def test_kserve_knows_every_field():
    kserve = pytest.importorskip("kserve", reason=REASON)
    import yaml

    said = yaml.safe_load(block("yaml"))
    assert said.pop("metadata") == {"name": "head"}  # Kubernetes' own
    service = build(kserve, "V1beta1InferenceService", said)
    assert service.spec.predictor.model.storage_uri == "pvc://models"


def build(kserve, kind, said):
    """What a service is made of, by the classes of KServe; they refuse fields that are missing."""
    made = getattr(kserve, kind)
    names = {spelled: name for name, spelled in made.attribute_map.items()}
    given = {names[spelled]: value for spelled, value in said.items()}
    for name, value in given.items():
        if isinstance(value, dict):
            given[name] = build(kserve, made.openapi_types[name], value)
    return made(**given)
