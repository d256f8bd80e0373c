"""Heads and golden vectors that somebody changed: refused in words, and nothing else is read."""

import json

import numpy as np
import pytest
from export.small import GOOD, LABELS, write_head

import wassemble as ws
from wassemble.export import export_onnx, load_head, verify_head
from wassemble.labels import LabelSpace

onnx = pytest.importorskip("onnx", reason="heads need the extra onnx")


@pytest.fixture
def path(tmp_path):
    write_head(tmp_path / "head.onnx")
    return tmp_path / "head.onnx"


def change_model(path, change):
    model = onnx.load(path)
    change(model)
    path.write_bytes(model.SerializeToString())


def say(**changes):
    def change(model):
        (entry,) = model.metadata_props
        entry.value = json.dumps(json.loads(entry.value) | changes)

    return change


def point_elsewhere(model):
    tensor = next(each for each in model.graph.initializer if each.data_type == 1)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "beside.bin", "offset": "0", "length": "4"}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def add_loop(model):
    body = onnx.helper.make_graph([], "body", [], [])
    model.graph.node.append(onnx.helper.make_node("Loop", ["", ""], ["x"], body=body))


def call_someone(model):
    model.graph.node[0].domain = "com.example"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (point_elsewhere, "must hold all its numbers itself"),
        (add_loop, "no operators but those of heads; got 'Loop'"),
        (call_someone, "no operators but those of heads"),
        (say(format="another"), "must be a head that `wassemble export` wrote"),
        (say(models={"first": ["a"]}), "must be a head that"),
        (say(target=["a"]), "must be a head that"),
        (say(dtype="object"), "must be a head that"),
        (say(errors={}), "must be a head that"),
        (lambda model: setattr(model.metadata_props[0], "value", "[" * 9999), "must be a head"),
    ],
)
def test_a_changed_file_is_refused(path, change, words):
    (path.parent / "beside.bin").write_bytes(bytes(4))
    change_model(path, change)
    with pytest.raises(ws.InvalidInputError, match=words):
        load_head(path)


@pytest.mark.parametrize("content", [b"", bytes(100), b"\x08\x08\x12"])
def test_what_is_no_onnx_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ws.InvalidInputError, match="must be an ONNX file"):
        load_head(path)


def test_words_of_a_file_are_not_run(path):
    wide = dict.fromkeys(load_head(path).about["errors"], "{model:>99999999}{model.__class__}")
    change_model(path, say(errors=wide))
    with pytest.raises(ws.InvalidInputError) as raised:
        load_head(path)({})
    assert len(str(raised.value)) < 100


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": []},
        {"inputs": {"first": [["x"]]}},
        {"outputs": {}},
        {"outputs": {"scores": [[0.3, 0.3, 0.4]], "label": [0]}},
        {"inputs": {name: [] for name in LABELS}, "outputs": {"scores": [], "label": []}},
        {"format": "another"},
        {"ensemble": "another"},
    ],
)
def test_changed_golden_vectors_are_refused(path, changes):
    golden = path.with_suffix(".golden.json")
    golden.write_text(json.dumps(json.loads(golden.read_text()) | changes))
    with pytest.raises(ws.InvalidInputError):
        verify_head(path)


def test_golden_vectors_do_not_say_how_far_off_a_head_may_be(path):
    golden = path.with_suffix(".golden.json")
    record = json.loads(golden.read_text())
    record["outputs"]["scores"][0][0] += 0.1
    golden.write_text(json.dumps(record | {"tolerance": 1.0}))
    assert not verify_head(path).holds


@pytest.mark.parametrize(
    "names", [("inner step 1", "inner constant 0"), ("10", "2"), ("ü/ß", "a\nb")]
)
def test_models_may_have_any_name(names, tmp_path):
    spaces = {name: LabelSpace(["x", "y"]) for name in names}
    fusion = ws.Fusion(ws.HELLINGER, kind="multiclass")
    export_onnx(fusion, tmp_path / "head.onnx", models=spaces)
    assert verify_head(tmp_path / "head.onnx").holds


@pytest.mark.parametrize("name", ["answered", "scores", "label"])
def test_but_those_of_inputs_and_outputs(name, tmp_path):
    fusion = ws.Fusion(ws.HELLINGER, kind="multiclass")
    with pytest.raises(ws.InvalidInputError, match="must not be called"):
        export_onnx(fusion, tmp_path / "head.onnx", models={name: LabelSpace(["x", "y"])})


@pytest.mark.parametrize(
    "rows",
    [
        [["0.4", "0.6"]] * 2,
        [[None, "0.6"]] * 2,
        np.array([[0.4j, 0.6]] * 2),
        np.array([["2020-01-01"] * 2] * 2, dtype="M8[D]"),
        [[10**400, 0]] * 2,
        [[0.4], [0.4, 0.6]],
    ],
)  # fmt: skip
def test_what_is_no_number_is_no_score(path, rows):
    head = load_head(path)
    with pytest.raises(ws.InvalidInputError, match="'second' must be numbers; got something else"):
        head(GOOD | {"second": rows})
    with pytest.raises(ws.InvalidInputError, match="`answered` must have shape"):
        head(GOOD, rows)
