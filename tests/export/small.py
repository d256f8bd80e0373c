"""A small head, and inputs that it must refuse: the same for Python, HTTP and JavaScript."""

import wassemble as ws
from wassemble.export import export_onnx
from wassemble.labels import LabelSpace

LABELS = {"first": ["cat", "dog", "cow"], "second": ["dog", "cat"]}
GOOD = {"first": [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]], "second": [[0.4, 0.6], [0.9, 0.1]]}
BAD = {
    "a model is missing": {"first": GOOD["first"]},
    "a model is not known": GOOD | {"third": [[1.0]]},
    "a shape is wrong": GOOD | {"second": [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]},
    "samples are missing": GOOD | {"second": [[0.4, 0.6]]},
    "a score is missing": GOOD | {"second": [[0.4, None], [0.9, 0.1]]},
    "a score is negative": GOOD | {"second": [[0.4, 0.6], [1.1, -0.1]]},
    "a score is too large for its type": GOOD | {"second": [[0.4, 0.6], [1e39, 0.1]]},
    "a score is a text": GOOD | {"second": [[0.4, "0.6"], [0.9, 0.1]]},
    "a row is too short": GOOD | {"second": [[0.4, 0.6], [0.9]]},
    "a table is too deep": GOOD | {"second": [[[0.4, 0.6]], [[0.9, 0.1]]]},
    "a table is a number": GOOD | {"second": 0.4},
    "a table is empty": GOOD | {"second": []},
    "a model's name has odd letters": GOOD | {'it\'s\r\n"third"': [[1.0]]},
    "a row has too much mass": GOOD | {"second": [[0.4, 0.6], [0.9, 0.9]]},
    "the mask is none": GOOD | {"answered": [[1, 2], [1, 1]]},
    "the mask has a gap": GOOD | {"answered": [[1, None], [1, 1]]},
    "the mask is too narrow": GOOD | {"answered": [[1], [1]]},
}


def write_head(path, **options):
    """Write a head of two models with different labels."""
    rule = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None)
    spaces = {name: LabelSpace(labels) for name, labels in LABELS.items()}
    return export_onnx(ws.Fusion(rule, kind="multiclass"), path, models=spaces, **options)


def refusal(head, inputs):
    """The words with which Python refuses inputs."""
    given = dict(inputs)
    answered = given.pop("answered", None)
    try:
        head(given, answered)
    except ws.InvalidInputError as error:
        return str(error)
    raise AssertionError("nothing was refused")
