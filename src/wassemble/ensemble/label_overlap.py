"""Whether labels that are matched by name meet at all; if they do not, what would help."""

import difflib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from wassemble._checks import fail, option, option_or
from wassemble.ensemble.plan import FusionPlan
from wassemble.kernels import from_scales
from wassemble.labels import LabelSpace, are_numbers, enumerate_names, fold_name

# Labels by which models usually say that none of the others fits.
_OTHER_NAMES = {
    *("background", "else", "misc", "miscellaneous", "n/a", "na", "none", "none of the above"),
    *("none of these", "other", "others", "rest", "unk", "unknown"),
}
# Larger label sets are vocabularies, in which such a name is a word like any other.
_N_OTHERS = 200

_N_SHOWN = 3
_N_COMPARED = 2000


def check_labels(
    plan: FusionPlan, models: Iterable[Any], kernel: Any = None, told: Container[str] = ()
) -> list[str]:
    """What there is to say of labels that do not meet; that no target label is met is an error.

    ``models`` are predictions, open files or data sets; a ``kernel`` may join labels of any names.
    Of the labels ``told`` it has been said that others differ from them only in how they are
    written.
    """
    if kernel is not None:
        return _check_joined(plan) + check_scales(kernel, models)
    declared = np.array([member.matching.declared for member in plan.members])
    names = [member.model for member in plan.members]
    twins = [t for t in _twins_of(plan, declared) if t[0] not in told and t[1] not in told]
    if not declared.any():
        _refuse_target(plan, twins)
    sentences = [tell_twins(twins)] if twins else []
    silent = [name for name, mask in zip(names, declared, strict=True) if not mask.any()]
    if silent:
        sentences.append(
            f"no label of {enumerate_names(silent)} is a target label, so it has no say;"
            f" {_remedy()}"
        )
    sentences += _tell_others(plan) + _tell_counts(plan) + _tell_scales(plan, models)
    groups = _groups(declared)
    if len(groups) > 1:
        one, other = (names[group[0]] for group in groups[:2])
        labels = [enumerate_names(plan.members[g[0]].labels, at_most=_N_SHOWN) for g in groups[:2]]
        sentences.append(
            f"{one!r} and {other!r} have no label in common: {labels[0]}, and {labels[1]}. By"
            f" name, nothing joins them; {_remedy()}"
        )
    return sentences


def _tell_counts(plan: FusionPlan) -> list[str]:
    """As many numbers in a row, from 0 in one model and from 1 in another, may be the same."""
    if plan.rule.label_order == "line":
        return []
    starts: dict[int, dict[int, str]] = {}  # by how many there are
    for member in plan.members:
        names = set(member.labels)
        for start in (0, 1):
            if names == {str(start + i) for i in range(len(names))}:
                starts.setdefault(len(names), {}).setdefault(start, member.model)
    return [
        f"labels of {models[0]!r} are the numbers 0 to {n - 1}, those of {models[1]!r} 1 to {n},"
        f" and equal numbers are taken for the same label; if {models[1]!r} counts the same labels"
        f" from 1, {_same()}"
        for n, models in starts.items()
        if n > 1 and len(models) == 2
    ]


def _tell_scales(plan: FusionPlan, models: Iterable[Any]) -> list[str]:
    """Grades that may be of several scales, though they are fused on one line by their names.

    A list of answers names the grades that occur: its ends say nothing.
    """
    if plan.rule.label_order != "line":
        return []
    ends: dict[tuple[float, float], str] = {}
    for model in models:
        if not model.is_hard and model.labels.positions is None and are_numbers(model.labels):
            numbers = [float(name) for name in model.labels]
            ends.setdefault((min(numbers), max(numbers)), model.model)
    if len(ends) < 2:
        return []
    told = ", ".join(f"{low:g} to {high:g} ({model})" for (low, high), model in ends.items())
    scales = option_or("kernel=from_scales", scales=True)
    return [f"grades from {told} are taken as one scale; {scales} joins scales from end to end"]


def _check_joined(plan: FusionPlan) -> list[str]:
    """What there is to say of names where a kernel joins labels.

    It takes votes from any label to any other, but two target labels stay two: what a model
    tells apart itself are two labels indeed, others may be one that was written in two ways.
    """
    target = list(plan.target)
    first = {fold_name(name): name for name in reversed(target)}
    twins = [(one, name) for name in target if (one := first[fold_name(name)]) != name]
    twins = [
        (one, name)
        for one, name in twins
        if not any(one in member.labels and name in member.labels for member in plan.members)
    ]
    return [tell_twins(twins)] if twins else []


def check_scales(kernel: Any, models: Iterable[Any]) -> list[str]:
    """What there is to say of scales whose grades are those that occur, as answers list them.

    Words must have an order that somebody chose. ``models`` as in `check_labels`.
    """
    sentences = []
    for model in models:
        own = kernel.get(model.model) if isinstance(kernel, Mapping) else kernel
        labels = model.labels
        if own is not from_scales or labels.positions is not None or not model.origin.labels_occur:
            continue
        names = option_or("`labels` of `read_predictions`", labels=f"{model.model}=FILE")
        if not are_numbers(labels):
            fail(
                f"grades of {model.model!r} must have an order; it lists answers, which name"
                f" {enumerate_names(labels)} in the order in which they occur.",
                hint=f"{names} names all grades, from the lowest to the highest",
            )
        low, high = (end(labels, key=float) for end in (min, max))
        sentences.append(
            f"{model.model}: its scale is taken to end at the grades that occur, {low} and {high};"
            f" {names} names all grades"
        )
    return sentences


def _tell_others(plan: FusionPlan) -> list[str]:
    """Labels for "none of my labels" that are one target label, though they differ in meaning."""
    if len({member.labels.names for member in plan.members}) == 1:
        return []
    sentences = []
    for name in dict.fromkeys(
        name for member in plan.members for name in find_others(member.labels)
    ):
        if name not in plan.target:
            continue
        having = [m for m in plan.members if name in m.labels and m.other != name]
        if plan.kind == "multiclass" and len({frozenset(m.labels) for m in having}) > 1:
            models = enumerate_names(member.model for member in having)
            sentences.append(
                f"{name!r} of {models} became one label, though these models declare different"
                f" labels; {option('other', name)} makes it stand for what each of them does not"
                " declare"
            )
    return sentences


def find_others(labels: LabelSpace) -> list[str]:
    """Labels by which a model may mean that none of its other labels fits.

    Examples
    --------
    >>> find_others(LabelSpace(["cat", "Other"]))
    ['Other']
    """
    if len(labels) > _N_OTHERS:
        return []
    return [name for name in labels if fold_name(name) in _OTHER_NAMES]


def find_twins(ones: Iterable[str], others: Iterable[str]) -> list[tuple[str, str]]:
    """Names of two sets that differ only in how they are written, as `fold_name` forgets it.

    Examples
    --------
    >>> find_twins(["Polar_Bear", "cat"], ["polar bear", "cat"])
    [('Polar_Bear', 'polar bear')]
    """
    ones, others = list(ones), list(others)
    here, there = set(ones), set(others)
    lonely = [name for name in ones if name not in there]
    if not lonely:
        return []
    by_folded: dict[str, str] = {}
    for name in others:
        if name not in here:
            by_folded.setdefault(fold_name(name), name)
    return [(name, by_folded[f]) for name in lonely if (f := fold_name(name)) in by_folded]


def _twins_of(plan: FusionPlan, declared: np.ndarray) -> list[tuple[str, str]]:
    """Names that a plan keeps apart and that differ only in how they are written."""
    twins: dict[tuple[str, str], None] = {}
    spaces: list[Sequence[str]] = []
    for member, mask in zip(plan.members, declared, strict=True):
        twins |= dict.fromkeys(find_twins(member.matching.unmatched, plan.target))
        spaces.append([plan.target.names[i] for i in np.flatnonzero(mask).tolist()])
    for place, ones in enumerate(spaces):
        for others in spaces[:place]:
            if ones != others:
                twins |= dict.fromkeys(find_twins(others, ones))
    return list(twins)


def find_truth_twins(
    names: Iterable[str], spaces: Iterable[Sequence[str]]
) -> list[tuple[str, str]]:
    """True labels and labels of models, each with a space of its own, that are twins."""
    true = list(names)
    return list(dict.fromkeys(pair for space in spaces for pair in find_twins(true, space)))


def tell_strangers(true: Sequence[str], own: Sequence[str], who: str) -> tuple[str, str]:
    """That no true label is a label of ``who``, whose labels are ``own``; and what would help."""
    twins = find_twins(own, true)
    nearest = "; ".join(f"{b!r} (true) and {a!r}" for a, b in (twins or _nearest(true, own))[:3])
    said = (
        f"no true label is a label of {who}: got"
        f" {enumerate_names(true, at_most=_N_SHOWN)}, and labels of {who} are"
        f" {enumerate_names(own, at_most=_N_SHOWN)}."
    )
    return said + (f" Nearest names: {nearest}." if nearest else ""), _fold() if twins else _same()


def tell_twins(twins: Sequence[tuple[str, str]]) -> str:
    """That names which differ only in how they are written are different labels."""
    pairs = "; ".join(f"{a!r} and {b!r}" for a, b in twins[:_N_SHOWN])
    more = f" and {len(twins) - _N_SHOWN:,} more" if len(twins) > _N_SHOWN else ""
    return (
        "labels that differ only in case, spaces, hyphens, the way a number is written (1, 1.0, 01)"
        " or Unicode form are different labels:"
        f" {pairs}{more}. {_fold()}"
    )


def _refuse_target(plan: FusionPlan, twins: Sequence[tuple[str, str]]) -> None:
    own = LabelSpace.union(*(member.labels for member in plan.members))
    pairs = list(twins) or _nearest(plan.target, own)
    nearest = "; ".join(f"{b!r} (target) and {a!r}" for a, b in pairs[:_N_SHOWN])
    fail(
        f"the target labels must be labels of the models; none is: got"
        f" {enumerate_names(plan.target, at_most=_N_SHOWN)}, and the models have"
        f" {enumerate_names(own, at_most=_N_SHOWN)}."
        + (f" Nearest names: {nearest}." if nearest else ""),
        hint=_fold() if twins else _remedy(),
    )


def _nearest(target: Sequence[str], own: Sequence[str]) -> list[tuple[str, str]]:
    by_folded = {fold_name(name): name for name in own[:_N_COMPARED]}
    pairs = []
    for name in target[:100]:
        near = difflib.get_close_matches(fold_name(name), by_folded, n=1)
        if near:
            pairs.append((by_folded[near[0]], name))
    return pairs


def _groups(declared: np.ndarray) -> list[list[int]]:
    """Models that have a label in common, directly or through others; none without any."""
    some = np.flatnonzero(declared.any(axis=1))
    own = declared[some].astype(np.float32)
    n_groups, group = connected_components(own @ own.T > 0)
    return [some[group == place].tolist() for place in range(n_groups)]


def _same() -> str:
    return f"{option('aliases')} says which labels mean the same"


def _fold() -> str:
    both = option("fold", True), option("aliases")
    return "{} takes them for the same label, {} some of them".format(*both)


def _remedy() -> str:
    return f"{_same()}, and a kernel which are similar"
