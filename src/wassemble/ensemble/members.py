"""The models of a plan: what their labels stand for, and the kernel of each.

Labels are matched here, and kernels put in place; weights and scores are left to `plan`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import is_frame
from wassemble._checks import fail, option, option_or
from wassemble.inputs import Aliases
from wassemble.kernels import DenseKernel, Kernel, LabelledKernel, SparseKernel, as_kernel
from wassemble.kernels.builders.names import kernel_of_matching
from wassemble.labels import (
    LabelSpace,
    Matching,
    enumerate_names,
    fold_meanings,
    fold_name,
    put_in_order,
)
from wassemble.solvers import Rule

if TYPE_CHECKING:
    from wassemble.ensemble.fusion import Fusion


@dataclass(frozen=True)
class Member:
    """A model of the plan.

    Labels that stand for one target label are fused as one label, which has its name.
    """

    model: str
    labels: LabelSpace
    matching: Matching  # its labels in the target's, by name
    fused: LabelSpace  # its labels as they are fused
    groups: np.ndarray | None  # place in `fused` of each label; None where nothing changes
    other: str | None  # its label that stands for what it does not declare
    kernel: Kernel  # from `fused` to the target
    lost: np.ndarray  # labels as they are fused whose mass can go nowhere, as a mask
    declared: np.ndarray  # target labels that it can speak of, as a mask
    reached: np.ndarray  # target labels that the kernel can reach, as a mask
    origin: str | None = None  # of the kernel, in words; None where labels go by name alone
    notes: tuple[str, ...] = ()  # of the kernel

    def describe(self, place: int) -> str:
        """A label as it is fused, by the model's own names for it."""
        if self.groups is None:
            return self.labels[place]
        own = [self.labels[i] for i in np.flatnonzero(self.groups == place).tolist()]
        return own[0] if len(own) == 1 else f"{self.fused[place]} ({' + '.join(own)})"


def read_other(
    other: str | Mapping[str, str] | None, models: Sequence[tuple[str, LabelSpace]]
) -> dict[str, str]:
    """The label of each model that stands for what it does not declare, by model."""
    if other is None:
        return {}
    spaces = dict(models)
    if not isinstance(other, Mapping):
        by_model = {model: str(other) for model, labels in models if str(other) in labels}
        if not by_model:
            fail(f"{option('other')} must be a label of some model; none has {other!r}.")
        return by_model
    for model, name in other.items():
        if model not in spaces:
            fail(
                f"{option('other')} must be of the models {enumerate_names(spaces)}; got {model!r}."
            )
        if str(name) not in spaces[model]:
            fail(
                f"{option('other')} must be a label of its model; {model!r} has no {name!r}, but"
                f" {enumerate_names(spaces[model])}."
            )
    return {model: str(name) for model, name in other.items()}


def merge_labels(
    models: Sequence[tuple[str, LabelSpace]],
    aliases: Aliases,
    others: Mapping[str, str],
    *,
    fold: bool = False,
    further: Iterable[str] = (),
) -> LabelSpace:
    """Every label once: what aliases lead to, names that fold to one seen before as that one.

    Labels that stand for "none of the others" are no labels of the consensus.
    """
    names: dict[str, None] = {}
    for model, space in models:
        meanings = aliases.of_model(model)
        if fold:
            meanings = fold_meanings(meanings, space)
        for name in space:
            if name != others.get(model):
                names |= dict.fromkeys(meanings.get(name, [name]))
    names |= dict.fromkeys(further)
    if not names:
        fail("models must have labels besides the one for others; got none.")
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(fold_name(name) if fold else name, name)
    return LabelSpace.locate(first.values(), *(space for _, space in models))


def make_members(
    fusion: Fusion, models: Sequence[tuple[str, LabelSpace]]
) -> tuple[LabelSpace, list[Member]]:
    """The target labels, and each model with its kernel; models that can share one do."""
    kernel, aliases, fold = fusion.kernel, fusion.aliases, fusion.fold
    aliases.check_models(dict(models))
    others = read_other(fusion.other, models)
    each = _kernel_of_each(kernel, models)
    target = cast("LabelSpace | None", fusion.target)
    if target is None:
        merged = merge_labels(models, aliases, others, fold=fold)
        # Kernels that lead elsewhere say by it what the consensus is over.
        target = _find_kernel_target(each, merged)
        if target is merged and fusion.rule.label_order != "any":
            first = merge_labels(models[:1], aliases, others, fold=fold)
            target = _put_in_order(fusion.rule, merged, first, [space for _, space in models])
    elif target.positions is None and fusion.rule.label_order != "any":
        target = LabelSpace.locate(target, *[space for _, space in models])
    _refuse_nameless(kernel, models)
    # Kernels that know every label of some model: they were made for that one.
    serving = {
        id(given)
        for (_, labels), given in zip(models, each, strict=True)
        if isinstance(given, LabelledKernel) and all(name in given.source for name in labels)
    }
    shared: dict[Any, _Read] = {}
    members = []
    for (model, labels), given in zip(models, each, strict=True):
        meanings = aliases.of_model(model)
        matching = labels.match(target, aliases=meanings, fold=fold)
        other = others.get(model)
        if other is not None:
            matching = matching.with_complement(other)
        fused, groups = _merge_matched(matching)
        # What aliases say of a label is said of no other model.
        told = sorted((name, tuple(m.items())) for name, m in meanings.items())
        key = (id(given), labels, labels.positions, tuple(told), other)
        if key not in shared:
            shared[key] = _read_kernel(
                given, model, matching, fused, groups, is_of_others=id(given) in serving
            )
        read = shared[key]
        if read.keeps_labels:
            fused, groups = labels, None
        members.append(Member(model, labels, matching, fused, groups, other, *read[1:]))
    _refuse_astray(members, target)
    return target, members


def _put_in_order(
    rule: Rule, merged: LabelSpace, first: LabelSpace, spaces: Sequence[LabelSpace]
) -> LabelSpace:
    """Labels as a rule must have them that knows where each lies: on a line, or in a tree."""
    if rule.label_order == "given":
        fail(
            f"{option('target')} must name the labels that the rule was made for, in their order;"
            " got none.",
            hint="Fusion(tree_barycenter(labels, edges), target=labels)",
        )
    if len(merged) == 1:
        column = option_or('its name "label"', label_column=merged[0])
        fail(
            f"labels on a line must be at least two; got {merged[0]!r} alone.",
            hint=f"{column} says that the column holds answers, not scores",
        )
    return put_in_order(merged, first, spaces)


def _refuse_astray(members: Sequence[Member], target: LabelSpace) -> None:
    """Refuse aliases that all lead to no target label: one table may serve several tasks."""
    astray = [pair for member in members for pair in member.matching.astray]
    if not astray or any(member.matching.aliased for member in members):
        return
    name, goal = astray[0]
    near = difflib.get_close_matches(goal, target.names, n=3)
    fail(
        f"some alias must name a target label; got {name!r} -> {goal!r}, which is none.",
        hint=f"near it: {enumerate_names(near)}" if near else None,
    )


def _refuse_nameless(kernel: Any, models: Sequence[tuple[str, LabelSpace]]) -> None:
    """Refuse kernels without names where their order could mean something else."""
    each = list(kernel.values()) if isinstance(kernel, Mapping) else [kernel]
    if _is_one_per_model(kernel):
        each = list(kernel)
    is_nameless = any(
        k is not None and not (isinstance(k, LabelledKernel) or is_frame(k)) and not _builds(k)
        for k in each
    )
    first, labels = models[0]
    for model, own in models[1:]:
        if is_nameless and own != labels and (set(own) == set(labels) or len(each) == 1):
            fail(
                "a kernel without names must go with models that have the same labels in the same"
                f" order; got {enumerate_names(labels)} for {first!r}, and"
                f" {enumerate_names(own)} for {model!r}.",
                hint="LabelledKernel(kernel, source, target) gives it names",
            )


def _is_one_per_model(kernel: Any) -> bool:
    """Whether it is a list of kernels, not one that is written as a list of rows."""
    return isinstance(kernel, list | tuple) and all(
        isinstance(each, Kernel | LabelledKernel) or is_frame(each) for each in kernel
    )


def _builds(kernel: Any) -> bool:
    """Whether it is a function from label spaces to a kernel."""
    return callable(kernel) and not isinstance(kernel, Kernel)


def _merge_matched(matching: Matching) -> tuple[LabelSpace, np.ndarray | None]:
    """Labels with those that stand for one target label as one, and where each label went."""
    labels, target = matching.source, matching.target
    if not matching.aliased and not matching.folded:
        return labels, None
    names: dict[str, int] = {}
    groups = np.empty(len(labels), dtype=np.int64)
    for place, goal in enumerate(matching.places.tolist()):
        if goal >= 0:
            groups[place] = names.setdefault(target[goal], len(names))
    for place in np.flatnonzero(matching.places < 0).tolist():
        name = labels[place]
        while name in names:  # it stands for several labels, one of which has its name
            name = f"any {name}"
        groups[place] = names.setdefault(name, len(names))
    return LabelSpace.locate(names, labels), groups


def _find_kernel_target(each: Sequence[Any], merged: LabelSpace) -> LabelSpace:
    """The target labels of kernels that all bring some, unless they know those of the models."""
    if not all(isinstance(given, LabelledKernel) for given in each):
        return merged
    if all(name in given.target for given in each for name in merged):
        return merged
    return LabelSpace(dict.fromkeys(name for given in each for name in given.target))


def _kernel_of_each(kernel: Any, models: Sequence[tuple[str, LabelSpace]]) -> list[Any]:
    """What was given as the kernel of each model; data frames with their names."""
    if kernel is None:
        return [None] * len(models)
    each = _one_of_each(kernel, models)
    frames = {id(given): LabelledKernel(given) for given in each if is_frame(given)}
    return [frames.get(id(given), given) for given in each]


def _one_of_each(kernel: Any, models: Sequence[tuple[str, LabelSpace]]) -> Sequence[Any]:
    names = [name for name, _ in models]
    if isinstance(kernel, Mapping):
        kernel = {str(name): given for name, given in kernel.items()}
        if set(kernel) != set(names):
            strange = [name for name in kernel if name not in names]
            left_out = [name for name in names if name not in kernel]
            got = [f"none for {enumerate_names(left_out)}"] if left_out else []
            got += [f"{enumerate_names(strange)} besides"] if strange else []
            fail(
                f"{option('kernel')} must hold one kernel for each of {enumerate_names(names)}; got"
                f" {' and '.join(got)}."
            )
        return [kernel[name] for name in names]
    if _is_one_per_model(kernel):
        if len(kernel) != len(models):
            fail(
                f"{option('kernel')} must be one for all or one per model, {len(models)}; got"
                f" {len(kernel)}."
            )
        return kernel
    return [kernel] * len(models)


class _Read(NamedTuple):
    """What a `Member` has of its kernel, from `kernel` on."""

    keeps_labels: bool  # it is from the model's own labels, not from those fused
    kernel: Kernel
    lost: np.ndarray
    declared: np.ndarray
    reached: np.ndarray
    origin: str | None
    notes: tuple[str, ...]


def _read_kernel(
    given: Any,
    model: str,
    matching: Matching,
    fused: LabelSpace,
    groups: np.ndarray | None,
    *,
    is_of_others: bool,
) -> _Read:
    labels, target = matching.source, matching.target
    by_fused = matching if groups is None else _match_fused(matching, fused, groups)
    by_name = given is None
    if isinstance(given, LabelledKernel):
        if all(name in given.source for name in labels):
            # A kernel that knows the model's own labels speaks of them.
            declared = given.declared
            if declared is not None:
                declared = declared[given.target.places(target)]
            kernel, about = given.align(labels, target), (given.origin, given.notes)
            return _look_into(kernel, declared, None, *about, keeps_labels=True)
        strange = [name for name in fused if name not in given.source]
        # Target labels already, of a kernel that was made for others.
        by_name = bool(strange) and is_of_others and bool((by_fused.places >= 0).all())
        if not by_name and any(
            place not in by_fused.shared for place in fused.places(strange).tolist()
        ):
            fail(
                f"the kernel must know every label of {model!r}; it lacks"
                f" {enumerate_names(strange)}.",
                hint=f"{option('aliases')} says which target labels they stand for; or give each"
                f" model its own kernel, {option_or('{model: kernel}', kernel='MODEL=FILE')}",
            )
    if by_name:
        if labels.positions is not None:
            LabelSpace.locate(target, target, labels)  # which refuses two positions of one name
        return _look_into(kernel_of_matching(by_fused), matching.declared, matching.declared)
    if isinstance(given, LabelledKernel) or _builds(given):
        kernel, made = _add_shared_rows(given, by_fused)
        return _look_into(kernel, None, None, *(() if made is None else (made.origin, made.notes)))
    kernel = as_kernel(given)
    if kernel.shape != (len(labels), len(target)):
        fail(
            f"the kernel of {model!r} must go from its {len(labels)} labels to the"
            f" {len(target)} target labels; got shape {kernel.shape}.",
            hint="a LabelledKernel brings its names and is put in order by them",
        )
    return _look_into(kernel, None, None, f"a {type(kernel).__name__}", keeps_labels=True)


def _look_into(
    kernel: Kernel,
    declared: np.ndarray | None,
    reached: np.ndarray | None,
    origin: str | None = None,
    notes: tuple[str, ...] = (),
    *,
    keeps_labels: bool = False,
) -> _Read:
    """A kernel, and what it reaches: where a model can speak, unless it is ``declared``."""
    reached = _leads(kernel.T) if reached is None else reached
    declared = reached if declared is None else declared
    return _Read(keeps_labels, kernel, ~_leads(kernel), declared, reached, origin, notes)


def _match_fused(matching: Matching, fused: LabelSpace, groups: np.ndarray) -> Matching:
    """The matching of the labels as they are fused."""
    places = np.full(len(fused), -1, dtype=np.int64)
    places[groups] = matching.places
    shared = {int(groups[place]): shares for place, shares in matching.shared.items()}
    return Matching(fused, matching.target, places, (), (), shared)


def _add_shared_rows(given: Any, matching: Matching) -> tuple[Kernel, LabelledKernel | None]:
    """The kernel, with labels that stand for several where the matching says; what it is from."""
    fused, target, shared = matching.source, matching.target, matching.shared
    rest = [name for place, name in enumerate(fused) if place not in shared]
    if not rest:
        return kernel_of_matching(matching), None
    own = LabelSpace.locate(rest, fused)
    made = given if isinstance(given, LabelledKernel) else given(own, target)
    if not isinstance(made, LabelledKernel):
        made = LabelledKernel(made) if is_frame(made) else LabelledKernel(made, rest, target)
    kernel = made.align(rest, target)
    if not shared:
        return kernel, made
    rows = matching.to_sparse()[sorted(shared)]
    order = np.argsort([*(i for i in range(len(fused)) if i not in shared), *sorted(shared)])
    if kernel.is_sparse:
        return SparseKernel(sp.vstack([kernel.to_sparse(), rows], format="csr")[order]), made
    return DenseKernel(np.vstack([np.asarray(kernel.to_dense()), rows.toarray()])[order]), made


def _leads(kernel: Kernel) -> np.ndarray:
    """Source labels that lead to some target label, in some sample, as a mask."""
    return np.asarray(np.atleast_2d(kernel.leads_somewhere).any(axis=0))
