"""Arrays that remember how they were made: rules run on them once and leave a graph.

A `Node` is an array of the array API without numbers. The library's own text, which asks
`namespace` for its functions, takes it like any other array; nothing here knows of rules. What
becomes of a graph is left to `onnx_file` and `torch_module`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from wassemble._checks import fail

Kind: TypeAlias = str
"""Of numbers: "float", of whichever width the graph is written in; "int" or "bool"."""

Size: TypeAlias = int | None
"""Of an axis; None for samples, of which there may be any number."""


class Node:
    """A step of a computation, and the array that it gives.

    Attributes
    ----------
    step : str
        One of the keys of `onnx_file.OPERATORS`, "input" or "constant".
    inputs : tuple of Node
    options : dict
        What else the step needs to know.
    shape : tuple of int or None
    kind : {"float", "int", "bool"}
    """

    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __init__(
        self, step: str, inputs: Sequence[Node], shape: Sequence[Size], kind: Kind, **options: Any
    ) -> None:
        self.step, self.inputs, self.options = step, tuple(inputs), options
        self.shape: tuple[Size, ...] = tuple(shape)
        self.kind = kind

    @staticmethod
    def take_in(name: str, n_columns: int) -> Node:
        """A table of numbers to come, ``(n_samples, n_columns)``."""
        return Node("input", (), (None, n_columns), "float", name=name)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> Kind:
        """The kind, which is all that is known of it."""
        return self.kind

    @property
    def T(self) -> Node:
        """The transposed table."""
        return _permute(self, (1, 0))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return NAMESPACE

    def __bool__(self) -> bool:
        raise TypeError("a graph has no numbers yet: nothing can depend on them")

    def __iter__(self) -> Iterator[Node]:
        return (self[place] for place in range(self.shape[0] or 0))

    def __len__(self) -> int:
        return self.shape[0] or 0

    def __getitem__(self, key: Any) -> Node:
        return _index(self, key if isinstance(key, tuple) else (key,))

    def __invert__(self) -> Node:
        return Node("not", (self,), self.shape, "bool")

    def __neg__(self) -> Node:
        return _apply("negate", self)

    def __abs__(self) -> Node:
        return _apply("abs", self)

    def __add__(self, other: Any) -> Node:
        return _apply("add", self, other)

    def __sub__(self, other: Any) -> Node:
        return _apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Node:
        return _apply("subtract", other, self)

    def __mul__(self, other: Any) -> Node:
        return _multiply(self, other)

    def __truediv__(self, other: Any) -> Node:
        return _apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Node:
        return _apply("divide", other, self)

    def __gt__(self, other: Any) -> Node:
        return _apply("greater", self, other, kind="bool")

    def __ge__(self, other: Any) -> Node:
        return _apply("at least", self, other, kind="bool")

    def __lt__(self, other: Any) -> Node:
        return _apply("less", self, other, kind="bool")

    def __le__(self, other: Any) -> Node:
        return _apply("at most", self, other, kind="bool")

    def __eq__(self, other: Any) -> Node:  # type: ignore[override]
        return _apply("equal", self, other, kind="bool")

    def __and__(self, other: Any) -> Node:
        return _join_flags("and", self, other)

    def __or__(self, other: Any) -> Node:
        return _join_flags("or", self, other)

    __radd__, __rmul__, __rand__, __ror__ = __add__, __mul__, __and__, __or__
    __hash__ = object.__hash__  # by identity, as every step is its own

    def __matmul__(self, other: Any) -> Node:
        return NAMESPACE.matmul(self, other)

    def __pow__(self, exponent: float) -> Node:
        if exponent == 0:  # also of 0
            return self * 0.0 + 1.0
        if exponent == 0.5:
            return NAMESPACE.sqrt(self)
        # A logarithm and an exponential are far faster than powers, in every runtime.
        return self if exponent == 1 else NAMESPACE.exp(NAMESPACE.log(self) * exponent)


def _constant(value: Any) -> Node:
    """``value`` as a node."""
    if isinstance(value, Node):
        return value
    array = np.asarray(value)
    kind = {"b": "bool", "i": "int", "u": "int", "f": "float"}[array.dtype.kind]
    return Node("constant", (), array.shape, kind, value=array)


def _as_float(node: Node) -> Node:
    """True is 1."""
    if node.kind == "float":
        return node
    if node.step == "constant":
        return _constant(node.options["value"].astype(np.float64))
    return Node("to float", (node,), node.shape, "float")


def _broadcast(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    """The shape of several arrays together; samples may be any number."""
    n_axes = max(map(len, shapes))
    padded = [(1,) * (n_axes - len(shape)) + shape for shape in shapes]
    return tuple(_join(sizes) for sizes in zip(*padded, strict=True))


def _join(sizes: Sequence[Size]) -> Size:
    longer = {size for size in sizes if size != 1}
    if len(longer) > 1:
        fail(f"axes must have one length; got {sizes}.")
    return longer.pop() if longer else 1


def _apply(step: str, *values: Any, kind: Kind = "float") -> Node:
    """A step that goes entry by entry over numbers."""
    nodes = [_as_float(_constant(value)) for value in values]
    return Node(step, nodes, _broadcast([node.shape for node in nodes]), kind)


def _multiply(node: Node, other: Any) -> Node:
    """A product; two numbers in a row are one."""
    first, *rest = node.inputs if node.step == "multiply" else (node,)
    if rest and rest[0].step == "constant" and rest[0].ndim == 0 and isinstance(other, float):
        return _apply("multiply", first, rest[0].options["value"] * other)
    return _apply("multiply", node, other)


def _log(values: Any) -> Node:
    """A logarithm; that of an exponential is what went in."""
    node = _constant(values)
    return node.inputs[0] if node.step == "exp" else _apply("log", node)


def _join_flags(step: str, *values: Any) -> Node:
    nodes = [_constant(value) for value in values]
    return Node(step, nodes, _broadcast([node.shape for node in nodes]), "bool")


def _where(condition: Any, first: Any, second: Any) -> Node:
    nodes = [_constant(first), _constant(second)]
    if any(node.kind != "int" for node in nodes):
        nodes = [_as_float(node) for node in nodes]
    nodes = [_constant(condition), *nodes]
    return Node("where", nodes, _broadcast([node.shape for node in nodes]), nodes[1].kind)


def _reduction(step: str) -> Callable[..., Node]:
    def make(values: Any, axis: int, keepdims: bool = False) -> Node:
        node = _as_float(_constant(values))
        place = axis % node.ndim
        kept: list[Size] = [1] if keepdims else []
        shape = (*node.shape[:place], *kept, *node.shape[place + 1 :])
        return Node(step, (node,), shape, "float", axis=place, keepdims=keepdims)

    return make


def _any(values: Any, axis: int) -> Node:
    return NAMESPACE.max(values, axis=axis) > 0


def _matmul(left: Any, right: Any) -> Node:
    nodes = [_as_float(_constant(left)), _as_float(_constant(right))]
    lead = _broadcast([node.shape[:-2] for node in nodes])
    return Node("matmul", nodes, (*lead, *nodes[0].shape[-2:-1], nodes[1].shape[-1]), "float")


def _concat(values: Sequence[Any], axis: int = 0) -> Node:
    nodes = [_constant(value) for value in values]
    if len(nodes) == 1:
        return nodes[0]
    place = axis % nodes[0].ndim
    others = [[size for i, size in enumerate(node.shape) if i != place] for node in nodes]
    shape = [_join(sizes) for sizes in zip(*others, strict=True)]
    own = [node.shape[place] for node in nodes]
    shape.insert(place, None if None in own else sum(own))  # type: ignore[arg-type]
    return Node("concat", nodes, shape, nodes[0].kind, axis=place)


def _stack(values: Sequence[Any], axis: int = 0) -> Node:
    """Arrays along a new axis, which is not the last; the pieces of one array are that array."""
    nodes = [_constant(value) for value in values]
    whole, cut = _find_whole(nodes)
    if whole is not None:
        order = [place for place in range(whole.ndim) if place != cut]
        order.insert(axis, cut)
        return whole if order == sorted(order) else _permute(whole, order)
    shape = [-1 if size is None else size for size in nodes[0].shape]
    place = range(len(shape))[axis]
    # Not a new axis for each of them: two steps serve any number of arrays.
    return _reshape(_concat(nodes, place), (*shape[:place], len(nodes), *shape[place:]))


def _find_whole(nodes: Sequence[Node]) -> tuple[Node | None, int]:
    """The array of which these are all pieces along one axis, in order; and that axis."""
    if any(node.step != "take" or node.inputs[1].ndim for node in nodes):
        return None, 0
    (whole, _), cut = nodes[0].inputs, nodes[0].options["axis"]
    places = [int(node.inputs[1].options["value"]) for node in nodes]
    same = all(node.inputs[0] is whole and node.options["axis"] == cut for node in nodes)
    return (whole, cut) if same and places == list(range(whole.shape[cut] or 0)) else (None, 0)


def _new_axis(node: Node, axis: int) -> Node:
    shape = list(node.shape)
    shape.insert(axis, 1)
    return Node("new axis", (node,), shape, node.kind, axis=axis)


def _take(values: Any, places: Any, axis: int) -> Node:
    """Entries at ``places``, an int or an array of them with any number of axes."""
    node, index = _constant(values), np.asarray(places, dtype=np.int64)
    axis %= node.ndim
    if np.array_equal(index, np.arange(node.shape[axis] or 0)):
        return node
    shape = (*node.shape[:axis], *index.shape, *node.shape[axis + 1 :])
    return Node("take", (node, _constant(index)), shape, node.kind, axis=axis)


def _permute(values: Any, order: Sequence[int]) -> Node:
    node = _constant(values)
    shape = [node.shape[axis] for axis in order]
    return Node("transpose", (node,), shape, node.kind, order=tuple(order))


def _reshape(values: Any, shape: Sequence[int]) -> Node:
    """The same numbers in another shape; one of its sizes may be -1, whatever is left."""
    node = _constant(values)
    known = [size for size in shape if size != -1]
    rest = None if None in node.shape else math.prod(node.shape) // math.prod(known)  # type: ignore[arg-type]
    sizes = [rest if size == -1 else size for size in shape]
    return Node("reshape", (node,), sizes, node.kind, sizes=tuple(shape))


def _sort(values: Any, axis: int = -1) -> Node:
    node = _as_float(_constant(values))
    return Node("sort", (node,), node.shape, "float", axis=axis % node.ndim)


def _argsort(values: Any, axis: int = -1) -> Node:
    node = _as_float(_constant(values))
    return Node("argsort", (node,), node.shape, "int", axis=axis % node.ndim)


def _take_along(values: Any, places: Node, axis: int) -> Node:
    """Entries at ``places``, which has the shape of ``values`` but along ``axis``."""
    node = _constant(values)
    return Node("take along", (node, places), places.shape, node.kind, axis=axis % node.ndim)


def _cumulative_sum(values: Any, axis: int, dtype: Any = None) -> Node:
    node = _as_float(_constant(values))
    return Node("cumulative sum", (node,), node.shape, "float", axis=axis % node.ndim)


def _diff(values: Node, axis: int = -1, prepend: Any = None, append: Any = None) -> Node:
    """Differences along the last axis."""
    row = _concat([each for each in (prepend, values, append) if each is not None], -1)
    return row[..., 1:] - row[..., :-1]


def _clip(values: Any, low: float | None, high: float | None) -> Node:
    values = values if low is None else NAMESPACE.maximum(values, low)
    return values if high is None else NAMESPACE.minimum(values, high)


def _argmax(values: Any, axis: int) -> Node:
    node = _constant(values)
    place = axis % node.ndim
    return Node(
        "argmax", (node,), (*node.shape[:place], *node.shape[place + 1 :]), "int", axis=axis
    )


def _zeros_like(values: Any, dtype: Any = None) -> Node:
    node = _as_float(_constant(values)) * 0.0
    return node > 0 if dtype is bool else node


def _index(node: Node, keys: tuple[Any, ...]) -> Node:
    """Basic indexing: whole axes, new axes and single places."""
    if Ellipsis in keys:
        place = keys.index(Ellipsis)
        n_whole = node.ndim - sum(key is not None and key is not Ellipsis for key in keys)
        keys = (*keys[:place], *[slice(None)] * n_whole, *keys[place + 1 :])
    axis = 0
    for key in keys:
        if key is None:
            node = _new_axis(node, axis)
        elif isinstance(key, slice) and key == slice(None):
            pass
        elif isinstance(key, slice) and node.shape[axis] is not None:
            node = _take(node, np.arange(node.shape[axis] or 0)[key], axis)
        elif isinstance(key, int) and node.shape[axis] is not None:
            node = _take(node, range(node.shape[axis] or 0)[key], axis)
            continue
        else:
            raise TypeError(f"a graph knows places along axes of fixed length; got {key!r}")
        axis += 1
    return node


NAMESPACE: Any = SimpleNamespace(
    __name__=__name__,
    abs=partial(_apply, "abs"),
    any=_any,
    argmax=_argmax,
    argsort=_argsort,
    astype=lambda values, dtype, copy=True: _as_float(_constant(values)),
    clip=_clip,
    concat=_concat,
    cumulative_sum=_cumulative_sum,
    diff=_diff,
    exp=partial(_apply, "exp"),
    expm1=lambda values: NAMESPACE.exp(values) - 1.0,
    float64="float",
    inf=np.inf,
    isnan=partial(_apply, "is nan", kind="bool"),
    log=_log,
    log1p=lambda values: NAMESPACE.log(values + 1.0),
    matmul=_matmul,
    max=_reduction("max"),
    maximum=partial(_apply, "maximum"),
    min=_reduction("min"),
    minimum=partial(_apply, "minimum"),
    permute_dims=_permute,
    reshape=_reshape,
    round=partial(_apply, "round"),
    sort=_sort,
    sqrt=partial(_apply, "sqrt"),
    stack=_stack,
    sum=_reduction("sum"),
    take=_take,
    take_along_axis=_take_along,
    where=_where,
    zeros_like=_zeros_like,
)


def steps_to(outputs: Sequence[Node]) -> list[Node]:
    """The nodes that ``outputs`` need, each after what it is made of."""
    found: dict[Node, None] = {}
    waiting: list[tuple[Node, bool]] = [(node, False) for node in reversed(outputs)]
    while waiting:  # by hand: hundreds of sweeps are deeper than Python's stack
        node, is_ready = waiting.pop()
        if is_ready:
            found[node] = None
        elif node not in found:
            waiting.append((node, True))
            waiting += [(each, False) for each in reversed(node.inputs)]
    return list(found)
