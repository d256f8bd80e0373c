"""`match_models`: which of the models that are given is which of those that were learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from wassemble._checks import fail, option
from wassemble.inputs import Aliases, Predictions
from wassemble.inputs.predictions.aliases import merge_scores
from wassemble.labels import LabelSpace, enumerate_names

Names = dict[str, str]
# From each learned name with the given one, None where it is not told, and the given names that
# are left, to what a caller would write.
Remedy = Callable[[Mapping[str, str | None], Sequence[str]], str]


@dataclass(frozen=True)
class Matched:
    """Models that were given, as those that were learned from.

    Attributes
    ----------
    models : list of Predictions
        In the order in which they were learned from, under the names and with the order of
        labels that they had then.
    by_labels : dict
        Names that were told by label sets: the learned one, and the one given.
    """

    models: list[Predictions]
    by_labels: Names

    def __str__(self) -> str:
        told = ", ".join(f"{given} is {name}" for name, given in self.by_labels.items())
        return f"models told apart by their labels: {told}"


def match_models(
    learned: Sequence[tuple[str, LabelSpace]],
    given: Sequence[Predictions] | Mapping[str, Predictions],
    *,
    remedy: Remedy | None = None,
    aliases: Aliases | None = None,
    fold: bool = False,
) -> Matched:
    """The models that were learned from, by name, or by label sets where these are unique.

    Parameters
    ----------
    learned : sequence of (str, LabelSpace)
        Names and labels of the models that were learned from.
    given : sequence of Predictions, or dict of them by name
    remedy : callable, optional
        What a caller would write to say which is which: from each learned name with the given
        one, None where neither name nor labels tell, and the given names that are left.
    aliases : Aliases, optional
        For labels that were not learned from: the learned label that each stands for.
    fold : bool
        Labels that were not learned from stand for those that are the same but for case,
        underscores, hyphens, repeated spaces and the way a number is written.
    """
    models, labels = _by_name(given), dict(learned)
    if aliases or fold:
        meanings = aliases or Aliases()
        meanings.check_models({name: model.labels for name, model in models.items()})
        everything = LabelSpace.union(*labels.values())
        for name, model in models.items():
            known = labels.get(name, everything)
            models[name] = _rename(model, _meanings_of(model, name, meanings, known, fold), known)
    told: Names = {name: name for name in labels if name in models}
    by_labels = _by_labels(
        {name: own for name, own in labels.items() if name not in told},
        {name: model.labels for name, model in models.items() if name not in told},
    )
    told |= by_labels
    missing = [name for name in labels if name not in told]
    strange = [name for name in models if name not in told.values()]
    if missing or strange:
        _refuse({name: told.get(name) for name in labels}, missing, strange, remedy or _in_python)
    return Matched([_as_learned(models[told[n]], n, own) for n, own in learned], by_labels)


def _meanings_of(
    model: Predictions, name: str, aliases: Aliases, known: LabelSpace, fold: bool
) -> Mapping[str, Mapping[str, float]]:
    """What labels of a model stand for: by alias, else by a ``known`` one that folds alike."""
    if not fold:
        return aliases.of_model(name)
    folded = dict(model.labels.match(known, fold=True).folded)
    return {own: {goal: 1.0} for own, goal in folded.items()} | dict(aliases.of_model(name))


def _rename(
    model: Predictions, meanings: Mapping[str, Mapping[str, float]], known: LabelSpace
) -> Predictions:
    """The model with labels that were not learned from under the names of those that were."""
    names: dict[str, int] = {}
    groups = []
    for label in model.labels:
        goals = [label] if label in known or label not in meanings else list(meanings[label])
        if len(goals) > 1 or (goals != [label] and goals[0] not in known):
            fail(
                "an alias for a learned ensemble must name one label that was learned from; got"
                f" {label!r} -> {enumerate_names(goals)}.",
                hint=f"learned from: {enumerate_names(known)}",
            )
        groups.append(names.setdefault(goals[0], len(names)))
    if list(names) == list(model.labels):
        return model
    scores = merge_scores(model.scores, np.array(groups), model.kind)
    return model.replace(labels=LabelSpace(names), scores=scores)


def _by_name(given: Sequence[Predictions] | Mapping[str, Predictions]) -> dict[str, Predictions]:
    if isinstance(given, Mapping):
        return dict(given)
    counts = Counter(model.model for model in given)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        fail(f"models must have different names; got more than once: {enumerate_names(twice)}.")
    return {model.model: model for model in given}


def _by_labels(wanted: Mapping[str, LabelSpace], given: Mapping[str, LabelSpace]) -> Names:
    """Pairs of a learned and a given name that alone have their set of labels."""
    there = _by_set(given)
    alone = {own: names[0] for own, names in _by_set(wanted).items() if len(names) == 1}
    return {name: there[own][0] for own, name in alone.items() if len(there.get(own, [])) == 1}


def _by_set(models: Mapping[str, LabelSpace]) -> dict[frozenset[str], list[str]]:
    by_set: dict[frozenset[str], list[str]] = {}
    for name, labels in models.items():
        by_set.setdefault(frozenset(labels), []).append(name)
    return by_set


def _refuse(
    told: Mapping[str, str | None], missing: Sequence[str], strange: Sequence[str], remedy: Remedy
) -> NoReturn:
    """Say which models are missing, are too many, or could be one or another."""
    if not missing:
        fail(
            f"every model must be one that was learned from; got {enumerate_names(strange)}.",
            hint=f"learned from: {', '.join(told)}",
        )
    must = "every model that was learned from must be there;"
    if not strange:
        fail(
            f"{must} {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing.",
            hint=f"learned from: {', '.join(told)}",
        )
    fail(
        f"{must} neither names nor labels tell which model is which: {', '.join(missing)} (learned"
        f" from), {enumerate_names(strange)} (given).",
        hint=remedy(told, strange),
    )


def _in_python(told: Mapping[str, str | None], candidates: Sequence[str]) -> str:
    keys = ", ".join(f'"{name}": ...' for name in told)
    known = [f"{given!r} is {name}" for name, given in told.items() if given not in (None, name)]
    missing = " or ".join(name for name, given in told.items() if given is None)
    known.append(f"{' and '.join(repr(each) for each in candidates)} may be {missing}")
    return f"{{{keys}}}, where {', '.join(known)}"


def _as_learned(model: Predictions, name: str, labels: LabelSpace) -> Predictions:
    """The model under its name and with its labels in the order that was learned from."""
    if model.labels == labels:
        return model.replace(model=name)
    lacks = [label for label in labels if label not in model.labels]
    strange = [label for label in model.labels if label not in labels]
    if lacks or strange:
        what = f"it lacks {enumerate_names(lacks)}" if lacks else ""
        what += " and " if lacks and strange else ""
        what += f"it has {enumerate_names(strange)} besides" if strange else ""
        fail(
            f"the labels of {model.model!r} must be those that were learned from; {what}.",
            hint=f"{option('labels', ...)} declares those that a model could have answered"
            if lacks
            else None,
        )
    places = model.labels.places(labels)
    return model.replace(model=name, labels=labels, scores=model.scores[:, places])
