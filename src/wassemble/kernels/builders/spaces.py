"""What every builder does with names: notes, labels left out."""

from collections.abc import Mapping, Sequence

import numpy as np

from wassemble._checks import fail
from wassemble.kernels.base import Kernel
from wassemble.labels import LabelSpace, enumerate_names

# The note of a kernel that does no more than names do.
UNJOINED = "it joins no two labels of different names"


def count_names(names: Sequence[str], what: str) -> str:
    """A note: how many labels, what about them, and the first of them.

    Examples
    --------
    >>> count_names(["okapi"], "without a word vector")
    "1 label without a word vector: 'okapi'"
    """
    labels = "label" if len(names) == 1 else "labels"
    return f"{len(names):,} {labels} {what}: {enumerate_names(names)}"


def note_labels(space: LabelSpace, mask: np.ndarray, what: str) -> list[str]:
    """A note on the labels under the mask, if there are any."""
    names = [space[place] for place in np.flatnonzero(mask).tolist()]
    return [count_names(names, what)] if names else []


def find_nodes(
    space: LabelSpace, known: LabelSpace, nodes: Mapping[str, str] | None, *, what: str
) -> tuple[np.ndarray, np.ndarray]:
    """Places of the labels that are a node, and the place of each one's node among ``known``.

    ``nodes`` has the nodes of labels that go by another name; ``what`` words where nodes are.
    """
    nodes = {} if nodes is None else nodes
    wrong = [(label, nodes[label]) for label in space if nodes.get(label, known[0]) not in known]
    if wrong:
        label, node = wrong[0]
        fail(
            f"`nodes` must map labels to nodes of {what}; got {label!r} -> {node!r}, which is none."
        )
    named = [(place, nodes.get(label, label)) for place, label in enumerate(space)]
    pairs = [(place, known.place(node)) for place, node in named if node in known]
    if not pairs:
        fail(
            f"{what} must have some label as a node; it has none of {enumerate_names(space)}.",
            hint="`nodes` maps labels to nodes that have another name",
        )
    places, ends = np.array(pairs, dtype=np.int64).T
    return places, ends


def note_left_out(*sides: tuple[LabelSpace, np.ndarray], what: str) -> list[str]:
    """A note on the labels of the spaces that are not at the places given with them, if any."""
    left_out: dict[str, None] = {}
    for space, places in sides:
        inside = set(places.tolist())
        left_out |= dict.fromkeys(name for i, name in enumerate(space) if i not in inside)
    return [count_names(list(left_out), f"outside of {what}")] if left_out else []


def note_unjoined(kernel: Kernel, source: LabelSpace, target: LabelSpace) -> list[str]:
    """A note on a kernel that joins labels to those of their own name alone, or to none."""
    own = source.match(target).places
    if kernel.is_sparse:
        pairs = kernel.to_sparse().tocoo()
        rows, columns = pairs.row[pairs.data != 0], pairs.col[pairs.data != 0]
    elif kernel.keeps_logs:
        rows, columns = np.nonzero(~np.isneginf(kernel.to_log_dense()))
    else:
        rows, columns = np.nonzero(kernel.to_dense())
    return [] if (columns != own[rows]).any() else [UNJOINED]


def expand_kernel(
    kernel: Kernel, source: LabelSpace, target: LabelSpace, rows: np.ndarray, columns: np.ndarray
) -> Kernel:
    """The kernel of all labels from that of the source ``rows`` and target ``columns``.

    The other source labels are joined to the target label of their own name alone, if
    there is one, as closely as a label can be: similarity 1.
    """
    if len(rows) == len(source) and len(columns) == len(target):
        return kernel
    left_out = np.setdiff1d(np.arange(len(source)), rows)
    own = source.match(target).places[left_out]
    left_out, own = left_out[own >= 0], own[own >= 0]
    return kernel.embed((len(source), len(target)), rows, columns, (left_out, own))
