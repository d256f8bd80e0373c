"""A graph as a torch module: for pipelines in torch, on any device, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from wassemble._checks import Count, Number, OneOf
from wassemble._extras import load_extra
from wassemble.export.design import Design
from wassemble.export.graph import Node, steps_to
from wassemble.export.head import (
    Arithmetic,
    choose_arithmetic,
    describe,
    prepare,
    settle_sweeps,
)
from wassemble.export.onnx_file import narrow


def export_torch(
    what: Any,
    *,
    models: Any = None,
    samples: Sequence[Any] | Mapping[str, Any] | None = None,
    dtype: Literal["float32", "float64"] = "float32",
    gaps: bool | None = None,
    abstentions: bool = True,
    tolerance: float = 1e-5,
    max_sweeps: int = 300,
) -> Any:
    """A fusion as a `torch.nn.Module`, which `torch.export` takes.

    Parameters are those of `export_onnx`.

    Returns
    -------
    module : torch.nn.Module
        Called with one tensor of shape (n_samples, n_labels) per model, in the order of
        ``module.about["models"]``, and with who answered, it gives a dict: ``scores`` and
        ``label``. Nothing of what goes in is checked.
    """
    OneOf(("float32", "float64"))(dtype, "dtype")
    Number(above=0)(tolerance, "tolerance")
    Count()(max_sweeps, "max_sweeps")
    design, inputs = prepare(what, models, samples, gaps=gaps, abstentions=abstentions)
    design = settle_sweeps(design, inputs, tolerance / 2, max_sweeps)

    def run(how: Arithmetic) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
        module = _make_module(design, dtype, how)
        return lambda given: _run_on_arrays(module, given)

    how, gap = choose_arithmetic(design, inputs, dtype, tolerance, run)
    module = _make_module(design, dtype, how)
    said = {"arithmetic": how.describe(design.rule), "gap": gap}
    module.about = describe(design, dtype, tolerance) | said
    return module


def _run_on_arrays(module: Any, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    torch = _load_torch()
    with torch.no_grad():
        found = module(*(torch.from_numpy(array) for array in given.values()))
    return {name: tensor.numpy() for name, tensor in found.items()}


def _load_torch() -> Any:
    return load_extra("torch", "torch", purpose="a head in torch")


def _make_module(design: Design, dtype: str, how: Arithmetic) -> Any:
    inputs, outputs = design.draw(exact=how.exact)
    torch = _load_torch()
    inner, outer = (getattr(torch, str(np.dtype(each))) for each in (how.inner, dtype))
    functions = _functions(torch, inner)
    steps = steps_to([*inputs, *outputs.values()])
    places = {node: place for place, node in enumerate(steps)}

    class TorchHead(torch.nn.Module):  # type: ignore[misc, name-defined]
        """A fusion, unrolled."""

        about: dict[str, Any]

        def __init__(self) -> None:
            super().__init__()
            for place, node in enumerate(steps):
                if node.step == "constant":
                    value = _to_constant(node, how.inner)
                    self.register_buffer(f"constant_{place}", torch.from_numpy(value))

        def forward(self, *tensors: Any) -> dict[str, Any]:
            found: list[Any] = []
            given = dict(zip(inputs, tensors, strict=True))
            for place, node in enumerate(steps):
                if node.step == "constant":
                    found.append(getattr(self, f"constant_{place}"))
                elif node.step == "input":
                    found.append(given[node].to(inner))
                else:
                    own = [found[places[each]] for each in node.inputs]
                    found.append(functions[node.step](*own, **node.options))
            ends = {name: found[places[node]] for name, node in outputs.items()}
            return {name: e.to(outer) if e.is_floating_point() else e for name, e in ends.items()}

    return TorchHead()


def _to_constant(node: Node, inner: Any) -> np.ndarray:
    value = node.options["value"]
    value = narrow(value, inner) if node.kind == "float" else value
    return np.array(value, dtype=np.int64 if node.kind == "int" else None, order="C")


def _functions(torch: Any, inner: Any) -> dict[str, Callable[..., Any]]:
    """What torch does at each step."""

    def take(values: Any, places: Any, axis: int) -> Any:
        picked = values.index_select(axis, places.reshape(-1))
        return picked.reshape(*values.shape[:axis], *places.shape, *values.shape[axis + 1 :])

    def reduce(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda values, axis, keepdims: function(values, dim=axis, keepdim=keepdims)

    return {
        "abs": torch.abs,
        "add": torch.add,
        "and": torch.logical_and,
        "argmax": lambda values, axis: torch.argmax(values, dim=axis),
        "argsort": lambda values, axis: torch.argsort(values, dim=axis),
        "at least": torch.ge,
        "at most": torch.le,
        "concat": lambda *values, axis: torch.cat(values, dim=axis),
        "cumulative sum": lambda values, axis: torch.cumsum(values, dim=axis),
        "divide": torch.div,
        "equal": torch.eq,
        "exp": torch.exp,
        "greater": torch.gt,
        "is nan": torch.isnan,
        "less": torch.lt,
        "log": torch.log,
        "matmul": torch.matmul,
        "max": reduce(torch.amax),
        "maximum": torch.maximum,
        "min": reduce(torch.amin),
        "minimum": torch.minimum,
        "multiply": torch.mul,
        "negate": torch.neg,
        "new axis": lambda values, axis: values.unsqueeze(axis),
        "not": torch.logical_not,
        "or": torch.logical_or,
        "reshape": lambda values, sizes: values.reshape(sizes),
        "round": torch.round,
        "sort": lambda values, axis: torch.sort(values, dim=axis).values,
        "sqrt": torch.sqrt,
        "subtract": torch.sub,
        "sum": reduce(torch.sum),
        "take": take,
        "take along": lambda values, places, axis: torch.take_along_dim(values, places, dim=axis),
        "to float": lambda values: values.to(inner),
        "transpose": lambda values, order: values.permute(order),
        "where": torch.where,
    }
