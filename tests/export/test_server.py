"""A head over HTTP: the Open Inference Protocol, limits and metrics."""

import asyncio
import json
import time

import httpx
import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="heads need the extra onnx")

from export.small import BAD, GOOD, LABELS, refusal, write_head
from fastapi.testclient import TestClient
from patience import SECONDS

import wassemble as ws
from wassemble.export import export_onnx, load_head
from wassemble.export.server import Limits, create_app
from wassemble.labels import LabelSpace

INFER = "/v2/models/head/infer"


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    path = tmp_path_factory.mktemp("head") / "head.onnx"
    write_head(path)
    return load_head(path)


@pytest.fixture
def client(head):
    return TestClient(create_app(head, "head"))


def to_request(inputs):
    tensors = []
    for name, rows in inputs.items():
        shape = list(np.shape(np.array(rows, dtype=object)))
        tensors.append({"name": name, "shape": shape, "datatype": "FP32", "data": rows})
    return {"id": "7", "inputs": tensors}


def test_a_server_is_ready(client):
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/head/ready"):
        assert client.get(path).status_code == 200
    assert client.get("/v2/models/other/ready").status_code == 404
    assert client.get("/v2").json()["name"] == "wassemble"


def test_metadata_name_labels(client):
    about = client.get("/v2/models/head").json()
    inputs = {each["name"]: each for each in about["inputs"]}
    assert inputs["first"]["parameters"]["labels"] == LABELS["first"]
    assert inputs["second"]["shape"] == [-1, 2]
    assert inputs["answered"]["shape"] == [-1, 2]
    assert [each["name"] for each in about["outputs"]] == ["scores", "label"]


def test_answers_are_those_of_the_head(client, head):
    answer = client.post(INFER, json=to_request(GOOD)).json()
    outputs = {each["name"]: each for each in answer["outputs"]}
    expected = head(GOOD)
    scores = np.reshape(outputs["scores"]["data"], outputs["scores"]["shape"])
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-6)
    assert outputs["label"]["data"] == expected["label"].tolist()
    assert answer["id"] == "7"


def test_data_may_be_flat_and_outputs_chosen(client):
    request = to_request(GOOD)
    for tensor in request["inputs"]:
        tensor["data"] = np.ravel(tensor["data"]).tolist()
    request["outputs"] = [{"name": "label"}]
    answer = client.post(INFER, json=request).json()
    assert [each["name"] for each in answer["outputs"]] == ["label"]


@pytest.mark.parametrize("what", BAD)
def test_http_refuses_in_the_same_words(client, head, what):
    answer = client.post(INFER, json=to_request(BAD[what]))
    assert (answer.status_code, answer.json()) == (400, {"error": refusal(head, BAD[what])})


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"inputs": 3}',
        '{"inputs": [{"name": "first"}]}',
        '{"inputs": [{"name": "first", "shape": ["2", 3], "data": [1]}]}',
    ],
)
def test_what_is_no_request_is_told_what_one_is(client, body):
    answer = client.post(INFER, content=body)
    assert answer.status_code == 400
    assert "a request must be JSON" in answer.json()["error"]


@pytest.mark.parametrize("shape", [[2, 3], [-1, 2], [9999999999, 9999999999], []])
def test_data_fill_their_shape(client, shape):
    request = to_request(GOOD)
    request["inputs"][1] |= {"shape": shape}
    answer = client.post(INFER, json=request)
    assert answer.status_code == 400
    assert f"the data of 'second' must fill its shape {tuple(shape)}" in answer.json()["error"]


def test_an_input_cannot_be_there_twice(client):
    request = to_request(GOOD)
    request["inputs"] *= 2
    answer = client.post(INFER, json=request)
    assert (answer.status_code, "each input once" in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (["0.4", "0.6"], "'second' must be numbers"),
        ([10**400, 0], "'second' must be numbers"),
        ([1e300, 0], "'second' must be finite"),
        ([{"a": 1}, 2], "'second' must be numbers"),
    ],
)
def test_data_are_numbers(client, data, words):
    request = to_request(GOOD)
    request["inputs"][1] |= {"data": [data, data]}
    answer = client.post(INFER, json=request)
    assert (answer.status_code, words in answer.json()["error"]) == (400, True)


def test_a_single_number_is_no_table(client):
    request = to_request(GOOD)
    request["inputs"][1] |= {"shape": [], "data": 0.5}
    assert "got ()" in client.post(INFER, json=request).json()["error"]


def test_only_outputs_that_there_are_can_be_chosen(client):
    answer = client.post(INFER, json=to_request(GOOD) | {"outputs": [{"name": "prices"}]})
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "outputs must be among 'scores', 'label'; got 'prices'.",
    )


def test_an_id_is_a_text(client):
    body = json.dumps(to_request(GOOD) | {"id": float("nan")})
    assert client.post(INFER, content=body).json()["id"] == "nan"


def test_limits_are_kept(head):
    client = TestClient(create_app(head, "head", Limits(max_samples=1, max_bytes=2000)))
    answer = client.post(INFER, json=to_request(GOOD))
    assert (answer.status_code, "1 samples at most" in answer.text) == (400, True)
    assert client.post(INFER, content=b" " * 3000).status_code == 413


def test_what_takes_too_long_is_given_up(head, monkeypatch):
    monkeypatch.setattr(head, "run", lambda inputs: time.sleep(0.5))
    client = TestClient(create_app(head, "head", Limits(max_seconds=0.01)))
    assert client.post(INFER, json=to_request(GOOD)).status_code == 504


def test_a_request_must_arrive_in_time(head):
    app = create_app(head, "head", Limits(max_seconds=0.05))

    async def trickle():
        yield b"{"
        await asyncio.sleep(SECONDS)

    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://head") as client:
            return await client.post(INFER, content=trickle())

    assert asyncio.run(ask()).status_code == 408


def test_metrics_are_text_that_prometheus_reads(tmp_path):
    spaces = {name: LabelSpace(["x", "y"]) for name in ('"é\\', "b\nc")}
    fusion = ws.Fusion(ws.HELLINGER, kind="multiclass")
    export_onnx(fusion, tmp_path / "head.onnx", models=spaces)
    client = TestClient(create_app(load_head(tmp_path / "head.onnx"), "head"))
    lines = client.get("/metrics").text.splitlines()
    assert r'wassemble_model_answers_total{model="\"é\\"} 0' in lines
    assert r'wassemble_model_answers_total{model="b\nc"} 0' in lines


def test_metrics_count_who_disagrees(client):
    client.post(INFER, json=to_request(GOOD))
    client.post(INFER, json=to_request(BAD["a shape is wrong"]))
    lines = client.get("/metrics").text.splitlines()
    assert "wassemble_samples_total 2" in lines
    assert "wassemble_refused_requests_total 1" in lines
    assert 'wassemble_request_seconds_bucket{le="+Inf"} 1' in lines
    answers = [line for line in lines if line.startswith("wassemble_model_answers_total{")]
    assert answers == [f"wassemble_model_answers_total{{model={json.dumps(m)}}} 2" for m in LABELS]
    assert 'wassemble_model_disagreements_total{model="second"} 0' in lines
