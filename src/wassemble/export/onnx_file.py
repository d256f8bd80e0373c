"""A graph as an ONNX model: standard operators alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.export.graph import Node, steps_to
from wassemble.labels import enumerate_names

OPSET = 18
"""Version of the standard operators; every runtime since 2023 has them."""
_IR_VERSION = 8

OPERATORS = {
    "abs": "Abs",
    "add": "Add",
    "and": "And",
    "argmax": "ArgMax",
    "argsort": "TopK",
    "at least": "GreaterOrEqual",
    "at most": "LessOrEqual",
    "concat": "Concat",
    "cumulative sum": "CumSum",
    "divide": "Div",
    "equal": "Equal",
    "exp": "Exp",
    "greater": "Greater",
    "is nan": "IsNaN",
    "less": "Less",
    "log": "Log",
    "matmul": "MatMul",
    "max": "ReduceMax",
    "maximum": "Max",
    "min": "ReduceMin",
    "minimum": "Min",
    "multiply": "Mul",
    "negate": "Neg",
    "new axis": "Unsqueeze",
    "not": "Not",
    "or": "Or",
    "reshape": "Reshape",
    "round": "Round",
    "sort": "TopK",
    "sqrt": "Sqrt",
    "subtract": "Sub",
    "sum": "ReduceSum",
    "take": "Gather",
    "take along": "GatherElements",
    "to float": "Cast",
    "transpose": "Transpose",
    "where": "Where",
}
"""ONNX's name of each step."""


# What a file has besides: its ends, and maxima with one number.
_MORE_OPERATORS = {"Clip", "Identity"}


class OutOfRange(Exception):  # noqa: N818  # not an error of the user's
    """A constant does not fit into the floating type."""


def load_onnx() -> Any:
    """The package that writes and checks ONNX."""
    return load_extra("onnx", "onnx", purpose="ONNX files")


def to_onnx(
    outputs: Mapping[str, Node],
    *,
    inputs: Sequence[Node],
    dtype: Any,
    inner: Any,
    metadata: Mapping[str, str],
) -> bytes:
    """The graph of ``outputs`` as an ONNX file.

    Parameters
    ----------
    outputs, inputs
        Ends of the graph; inputs have names of their own.
    dtype, inner : float32 or float64
        Of inputs and outputs, and in which everything is computed.
    metadata : dict
        Texts that the file carries.
    """
    return _Writer(dtype, inner).write(outputs, inputs, metadata)


class _Writer:
    """An ONNX file being written."""

    def __init__(self, dtype: Any, inner: Any) -> None:
        self._onnx = load_onnx()
        self._helper = self._onnx.helper
        self._dtype, self._inner = np.dtype(dtype), np.dtype(inner)
        self._nodes: list[Any] = []
        self._constants: dict[tuple[Any, ...], str] = {}
        self._initializers: list[Any] = []
        self._names: dict[Node, str] = {}
        self._prefix = "inner "

    def write(
        self, outputs: Mapping[str, Node], inputs: Sequence[Node], metadata: Mapping[str, str]
    ) -> bytes:
        # Models may have any name: ours start like none of theirs.
        while any(node.options["name"].startswith(self._prefix) for node in inputs):
            self._prefix += "_"
        for node in steps_to([*inputs, *outputs.values()]):
            self._names[node] = self._add(node)
        for name, node in outputs.items():
            self._end(name, node)
        graph = self._helper.make_graph(
            self._nodes,
            "wassemble head",
            [self._declare(node.options["name"], node) for node in inputs],
            [self._declare(name, node) for name, node in outputs.items()],
            self._initializers,
        )
        opset = self._helper.make_opsetid("", OPSET)
        model = self._helper.make_model(
            graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="wassemble"
        )
        self._helper.set_model_props(model, dict(metadata))
        self._onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())

    def _type(self, kind: str, width: np.dtype) -> int:
        dtype = {"float": width, "int": np.dtype(np.int64), "bool": np.dtype(bool)}[kind]
        return int(self._helper.np_dtype_to_tensor_dtype(dtype))

    def _declare(self, name: str, node: Node) -> Any:
        shape = ["n_samples" if size is None else size for size in node.shape]
        return self._helper.make_tensor_value_info(name, self._type(node.kind, self._dtype), shape)

    def _end(self, name: str, node: Node) -> None:
        if node.kind == "float" and self._inner != self._dtype:
            to = self._type("float", self._dtype)
            self._nodes.append(self._helper.make_node("Cast", [self._names[node]], [name], to=to))
        else:
            self._nodes.append(self._helper.make_node("Identity", [self._names[node]], [name]))

    def _add(self, node: Node) -> str:
        """Write a step down; the name of what it gives."""
        if node.step == "constant":
            return self._keep(node.options["value"])
        if node.step == "input":
            if self._inner == self._dtype:
                return str(node.options["name"])
            return self._emit("Cast", [node.options["name"]], to=self._type("float", self._inner))
        given, options = self._spell(node, [self._names[each] for each in node.inputs])
        operator = "Clip" if _has_bound(node) else OPERATORS[node.step]
        name = self._emit(operator, given, **options)
        return f"{name} places" if node.step == "argsort" else name

    def _spell(self, node: Node, given: list[str]) -> tuple[list[str], dict[str, Any]]:
        """What the operator takes and its attributes, where it has any."""
        options = node.options
        match node.step:
            case "sum" | "max" | "min":
                given = [*given, self._keep(np.array([options["axis"]]))]
                return given, {"keepdims": int(options["keepdims"])}
            case "new axis":
                return [*given, self._keep(np.array([options["axis"]]))], {}
            case "argmax":
                return given, {"axis": options["axis"], "keepdims": 0}
            case "cumulative sum":
                return [*given, self._keep(np.array(options["axis"]))], {}
            case "concat" | "take" | "take along":
                return given, {"axis": options["axis"]}
            case "reshape":
                return [*given, self._keep(np.array(options["sizes"]))], {}
            case "transpose":
                return given, {"perm": options["order"]}
            case "to float":
                return given, {"to": self._type("float", self._inner)}
            case "sort" | "argsort":
                all_of_them = np.array([node.shape[options["axis"]]])
                return [*given, self._keep(all_of_them)], {"largest": 0, "axis": options["axis"]}
        return given, {}

    def _emit(self, operator: str, given: Sequence[str], **options: Any) -> str:
        name = f"{self._prefix}step {len(self._nodes)}"
        names = [name, f"{name} places"] if operator == "TopK" else [name]
        self._nodes.append(self._helper.make_node(operator, list(given), names, **options))
        return name

    def _keep(self, value: np.ndarray) -> str:
        """Keep a constant, once; its name."""
        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        if array.dtype.kind == "f":
            array = narrow(array, self._inner)
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = self._constants[key] = f"{self._prefix}constant {len(self._constants)}"
            self._initializers.append(self._onnx.numpy_helper.from_array(array, name))
        return self._constants[key]


def _has_bound(node: Node) -> bool:
    """Whether it is a maximum with one number: Clip takes a third less time than Max."""
    bound = node.inputs[-1] if node.step == "maximum" else None
    return bound is not None and bound.step == "constant" and bound.ndim == 0


def narrow(array: np.ndarray, dtype: Any) -> np.ndarray:
    """``array`` as ``dtype``; `OutOfRange` if that loses a number to 0 or infinity."""
    with np.errstate(over="ignore", under="ignore"):
        narrowed = array.astype(dtype)
    lost = ((narrowed == 0) & (array != 0)) | (np.isinf(narrowed) & ~np.isinf(array))
    if lost.any():
        raise OutOfRange
    return narrowed


def check_parts(content: bytes, name: str) -> None:
    """Refuse what ONNX can hold and a head does not: loops, other files, operators of others."""
    onnx = load_onnx()
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # of protocol buffers, of which there are several versions
        fail(f"{name} must be an ONNX file: {error}.")
    known = {*OPERATORS.values(), *_MORE_OPERATORS}
    strange = {
        node.op_type for node in model.graph.node if node.domain or node.op_type not in known
    }
    if strange or model.functions or model.graph.sparse_initializer:
        fail(
            f"{name} must have no operators but those of heads; got"
            f" {enumerate_names(sorted(strange)) or 'functions'}."
        )
    if any(each.data_location == onnx.TensorProto.EXTERNAL for each in model.graph.initializer):
        fail(f"{name} must hold all its numbers itself; some are in other files.")


def read_model(content: bytes) -> Any:
    """An ONNX file as onnxruntime runs it."""
    runtime = load_extra("onnxruntime", "onnx", purpose="running ONNX files")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1  # steps are small, and requests come side by side
    # Planning which steps can share memory takes seconds where there are thousands of them, and
    # makes answers neither quicker nor smaller in memory.
    options.enable_mem_reuse = False
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class of its own for each failure
        fail(f"a head must be an ONNX file that onnxruntime takes: {error}.")
