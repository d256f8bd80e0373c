"""`match_models`: which of the models that are given is which of those that were learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from wassemble._checks import fail
from wassemble.inputs import Aliases, Predictions
from wassemble.inputs.aliases import merge_scores
from wassemble.labels import LabelSpace, enumerate_names

__all__ = ["Matched", "match_models"]

Names = dict[str, str]


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
    remedy: Callable[[Names], str] | None = None,
    aliases: Aliases | None = None,
) -> Matched:
    """The models that were learned from, by name, or by label sets where these are unique.

    Parameters
    ----------
    learned : sequence of (str, LabelSpace)
        Names and labels of the models that were learned from.
    given : sequence of Predictions, or dict of them by name
    remedy : callable, optional
        From pairs of a learned and a given name to what a caller would write to say them.
    aliases : Aliases, optional
        For labels that were not learned from: the learned label that each stands for.
    """
    models, labels = _by_name(given), dict(learned)
    if aliases:
        aliases.check_models({name: model.labels for name, model in models.items()})
        everything = LabelSpace.union(*labels.values())
        models = {
            name: _rename(model, aliases.of_model(name), labels.get(name, everything))
            for name, model in models.items()
        }
    pairs = {name: name for name in labels if name in models}
    missing = [name for name in labels if name not in pairs]
    strange = [name for name in models if name not in pairs]
    by_labels: Names = {}
    if missing and len(missing) == len(strange):
        by_labels = _by_labels(missing, strange, labels, models, remedy or _python_remedy)
    elif missing:
        had = f" and {enumerate_names(strange)} was not" if strange else ""
        fail(
            "every model that was learned from must be there; "
            f"{', '.join(missing)} is missing{had}.",
            hint=f"learned from: {', '.join(labels)}",
        )
    elif strange:
        fail(
            f"every model must be one that was learned from; got {enumerate_names(strange)}.",
            hint=f"learned from: {', '.join(labels)}",
        )
    pairs |= by_labels
    return Matched([_as_learned(models[pairs[n]], n, own) for n, own in learned], by_labels)


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
    return model._with(labels=LabelSpace(names), scores=scores)


def _by_name(given: Sequence[Predictions] | Mapping[str, Predictions]) -> dict[str, Predictions]:
    if isinstance(given, Mapping):
        return dict(given)
    counts = Counter(model.model for model in given)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        fail(f"models must have different names; got {enumerate_names(twice)} more than once.")
    return {model.model: model for model in given}


def _by_labels(
    missing: Sequence[str],
    strange: Sequence[str],
    labels: Mapping[str, LabelSpace],
    models: Mapping[str, Predictions],
    remedy: Callable[[Names], str],
) -> Names:
    wanted = {name: frozenset(labels[name]) for name in missing}
    found = {name: frozenset(models[name].labels) for name in strange}
    if Counter(wanted.values()) != Counter(found.values()):
        fail(
            f"every model that was learned from must be there; {', '.join(missing)} is missing, and"
            f" neither names nor labels say which of {', '.join(strange)} it is.",
            hint=f"say it: {remedy(_likely(missing, strange))}",
        )
    if len(set(wanted.values())) < len(missing):
        fail(
            f"models must be told apart by their names; {', '.join(missing)} were learned from, and"
            f" {', '.join(strange)} do not say by their labels which is which.",
            hint=f"say it: {remedy(_likely(missing, strange))}",
        )
    by_set = {own: name for name, own in found.items()}
    return {name: by_set[own] for name, own in wanted.items()}


def _likely(missing: Sequence[str], strange: Sequence[str]) -> Names:
    """The most similar names as pairs, to show how it would be said."""
    ranked = sorted(
        ((name, other) for name in missing for other in strange),
        key=lambda pair: -SequenceMatcher(None, *pair).ratio(),
    )
    pairs: Names = {}
    for name, other in ranked:
        if name not in pairs and other not in pairs.values():
            pairs[name] = other
    return {name: pairs[name] for name in missing}


def _python_remedy(pairs: Names) -> str:
    return "{" + ", ".join(f'"{name}": {given}' for name, given in pairs.items()) + "}"


def _as_learned(model: Predictions, name: str, labels: LabelSpace) -> Predictions:
    """The model under its name and with its labels in the order that was learned from."""
    if model.labels == labels:
        return model._with(model=name)
    lacks = [label for label in labels if label not in model.labels]
    strange = [label for label in model.labels if label not in labels]
    if lacks or strange:
        what = f"it lacks {enumerate_names(lacks)}" if lacks else ""
        what += " and " if lacks and strange else ""
        what += f"it has {enumerate_names(strange)} besides" if strange else ""
        fail(
            f"the labels of {model.model!r} must be those that were learned from; {what}.",
            hint="labels=... declares those that a model could have answered" if lacks else None,
        )
    places = model.labels.positions(labels)
    return model._with(model=name, labels=labels, scores=model.scores[:, places])
