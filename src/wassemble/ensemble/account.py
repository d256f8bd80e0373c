"""What a fusion did with names, samples and what was not reported: its account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wassemble.ensemble.completion import describe_rule
from wassemble.ensemble.label_overlap import find_others
from wassemble.ensemble.members import Member
from wassemble.ensemble.plan import NO_ANSWER, Chunk, FusionPlan, Ready
from wassemble.ensemble.reported import Reported
from wassemble.errors import option, option_or, tell_count
from wassemble.inputs import Predictions
from wassemble.inputs.predictions.value import SUM_SLACK, Origin
from wassemble.kernels.builders.spaces import UNJOINED
from wassemble.labels import enumerate_names
from wassemble.solvers import USUAL_RULE, Barycenter, Status

# Labels of a model that are named.
_N_FIRST = 5
# Target labels beyond which no mean is taken to compare the consensus with.
_MOST_LABELS_OF_MEAN = 20_000
# Relative difference of two scores that is rounding.
_TIE = 1e-9
# Share of the samples that makes one doubt whether models are cut into the same parts.
_MANY_MISSING = 0.1

# What holds a consensus against the truth, in Python.
JUDGES = "metrics.accuracy, learn_ensemble"
# A largest score beyond it is no rounded probability: scores are on another scale.
_SCALE = 1.5

# What is said of samples without a consensus.
_SILENCE = "no model answered, or none with a target label; left empty"


def no_mass_remedy() -> str:
    """What helps where models are sure of different labels."""
    usual = option_or("rule=Barycenter(Unbalanced(2, epsilon=0.3))", mass_penalty=..., epsilon=...)
    return (
        "a kernel that joins more labels lets their mass meet, and"
        f" {usual}, the default, lets no model rule out a label"
    )


@dataclass
class ModelAccount:
    """One model: what it brought, and what of it found no place."""

    model: str
    n_labels: int
    n_matched: int
    aliased: list[tuple[str, str]]
    folded: list[tuple[str, str]]
    merged: list[tuple[list[str], str]]  # labels that are fused as one, and its name
    unmatched: list[str]
    lost_labels: list[str]  # their mass can go nowhere
    other: str | None  # its label for everything that it does not declare
    is_hard: bool = False
    file: str | None = None
    id_column: str | None = None
    ids: str | None = None  # where they were, in words
    first_labels: list[str] = field(default_factory=list)
    astray: list[tuple[str, str]] = field(default_factory=list)  # aliases to no target label
    n_answered: int = 0
    n_partial: int = 0  # answers with scores that were not reported
    n_rounded: int = 0  # histograms of two decimals, whose sum is off by more than usual
    unobserved_mass: float = 0.0  # summed over samples
    lost_mass: float = 0.0  # summed over samples: "none of these", on labels that go nowhere


@dataclass
class FusionAccount:
    """Counts, gathered chunk by chunk; `to_dict` for machines, `lines` for people."""

    plan: FusionPlan
    kind_is_detected: bool
    models: list[ModelAccount]
    n_samples: int = 0
    ends: Counter[int] = field(default_factory=Counter)
    least_mass: float = np.inf
    most_mass: float = 0.0
    n_tied: int = 0  # samples with several best labels
    n_compared: int = 0  # samples with a best label, by the consensus and by the mean
    n_same_as_mean: int = 0  # those on which both have the same, or one of several, in first place
    reported: list[Reported] = field(default_factory=list, repr=False)  # by each model
    # What was fused to which consensus, where the mean was not yet compared with it.
    pending: list[tuple[Ready, np.ndarray]] = field(default_factory=list, repr=False)
    is_learned: bool = False  # what labels stand for was learned, and is not up for a change
    is_by_part: bool = False  # all samples of each part, matched within it alone
    warnings: list[str] = field(default_factory=list)  # what looks as if it was not meant

    @classmethod
    def of(cls, plan: FusionPlan, *, kind_is_detected: bool) -> FusionAccount:
        """An account with nothing counted yet."""
        models = [
            ModelAccount(
                member.model,
                len(member.labels),
                len(member.labels) - len(member.matching.unmatched),
                list(member.matching.aliased),
                list(member.matching.folded),
                _merged(member),
                list(member.matching.unmatched),
                [member.describe(i) for i in np.flatnonzero(member.lost).tolist()],
                member.other,
                first_labels=list(member.labels[:_N_FIRST]),
                astray=list(member.matching.astray),
            )
            for member in plan.members
        ]
        account = cls(plan, kind_is_detected, models, reported=[Reported() for _ in models])
        kernels = account.kernels
        if kernels and all(UNJOINED in kernel["notes"] for kernel in kernels):
            origins = dict.fromkeys(kernel["origin"] for kernel in kernels)
            account.warnings.append(
                f"the kernel ({'; '.join(origins)}) joins no two labels of different names: it"
                " does nothing that their names do not"
            )
        account._note_unreached()
        return account

    def _note_unreached(self) -> None:
        """Warn of target labels that nothing leads to; where none is reached is told elsewhere."""
        reached = np.any([member.reached for member in self.plan.members], axis=0)
        unreached = [self.plan.target.names[i] for i in np.flatnonzero(~reached).tolist()]
        if unreached and reached.any():
            one = len(unreached) == 1
            self.warnings.append(
                f"the target {'label' if one else 'labels'} {enumerate_names(unreached)} cannot be"
                f" reached from any label of any model, and {'is' if one else 'are'} 0 everywhere;"
                f" {option('aliases')} or a kernel says what leads there, or leave"
                f" {'it' if one else 'them'} out of {option('target')}"
            )

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """Kernels that were given or made: of which models, from what, and what was noted."""
        by_origin: dict[Any, list[str]] = {}
        for member in self.plan.members:
            if member.origin is not None:
                by_origin.setdefault((member.origin, member.notes), []).append(member.model)
        return [
            {"models": models, "origin": origin, "notes": list(notes)}
            for (origin, notes), models in by_origin.items()
        ]

    def read_from(self, origins: Sequence[Origin]) -> None:
        """Note where each model was read from, and what looked odd there."""
        for model, reported, origin in zip(self.models, self.reported, origins, strict=True):
            model.file, model.id_column, model.ids = origin.file, origin.id_column, origin.ids
            reported.is_wide = origin.is_wide
            self.warnings += [f"{model.model}: {doubt}" for doubt in origin.doubts]

    @property
    def id_column(self) -> str | None:
        """The name of the ids of the first model that has one."""
        return next((m.id_column for m in self.models if m.id_column is not None), None)

    def add(self, predictions: list[Predictions], chunk: Chunk) -> None:
        """Count a chunk."""
        self.n_samples += len(chunk.statuses)
        self.ends.update(count_ends(chunk.statuses))
        mass = chunk.mass[chunk.statuses != NO_ANSWER]
        self.least_mass = min(self.least_mass, float(mass.min(initial=np.inf)))
        self.most_mass = max(self.most_mass, float(mass.max(initial=0)))
        if self.plan.kind == "multiclass":
            best = chunk.scores.max(axis=1, keepdims=True)
            self.n_tied += int((((chunk.scores == best) & (best > 0)).sum(axis=1) > 1).sum())
        if self._has_rival and not self._is_vast:
            self.pending.append((chunk.ready, chunk.scores))
        for model, lost_mass in zip(self.models, chunk.ready.lost_mass, strict=True):
            model.lost_mass += float(lost_mass)
        self._count_answers(predictions, chunk.ready.answered)

    @property
    def _has_rival(self) -> bool:
        """Whether a mean of several models would give one best label as well."""
        is_of_classes = self.plan.kind == "multiclass"
        return self.plan.rule.transports and is_of_classes and len(self.models) > 1

    @property
    def _is_vast(self) -> bool:
        """Whether there are too many labels for that mean to cost little."""
        return len(self.plan.target) > _MOST_LABELS_OF_MEAN

    def compare(self) -> None:
        """Count on how many samples the mean gives the same label; done at the latest when told."""
        for ready, scores in self.pending:
            has_best = scores.max(axis=1) > 0  # nan where nobody answered
            both = _best_labels(scores) & _best_labels(self.plan.take_mean(ready))
            self.n_compared += int(has_best.sum())
            self.n_same_as_mean += int((both.any(axis=1) & has_best).sum())
        self.pending.clear()

    def add_inputs(self, predictions: Sequence[Predictions]) -> None:
        """Count what models answered, on the same samples, without fusing it."""
        self.n_samples += predictions[0].n_samples
        self._count_answers(predictions, [given.answered for given in predictions])

    def _count_answers(self, predictions: Sequence[Predictions], answered: Any) -> None:
        kind = self.plan.kind
        each = zip(self.models, self.reported, predictions, answered, strict=True)
        for model, reported, given, rows in each:
            model.is_hard |= given.is_hard
            model.n_answered += int(rows.sum())
            told = given if given.kind == kind else given.replace(kind=kind)
            left = told.unobserved_mass
            missing = np.isnan(given.scores)
            if kind == "multilabel" or (missing.any() and not reported.is_full):
                reported.add(given.scores, missing, rows)
            else:  # without a call, for most tables are like this
                reported.is_full |= bool(rows.any())
            partial = (missing.any(axis=1) | (left > 0)) & rows
            model.n_partial += int(partial.sum())
            if kind == "multiclass" and not given.is_hard:
                off = np.abs(np.nansum(given.scores, axis=1, dtype=np.float64) - 1) > SUM_SLACK
                model.n_rounded += int((off & ~partial & rows).sum())
            model.unobserved_mass += float(left[partial].sum())

    def note_counted(self) -> None:
        """Warn of what only counting shows, once all is counted."""
        self._note_silent()
        self._note_scales()
        self._note_empty()

    def _note_empty(self) -> None:
        """Warn of labels that a wide table declares by a column without a score."""
        for member, model, reported in zip(
            self.plan.members, self.models, self.reported, strict=True
        ):
            if not reported.is_wide or reported.is_full:
                continue
            empty = [member.labels[i] for i in reported.find_empty()]
            if empty:
                self.warnings.append(
                    f"{model.model}: the {'column' if len(empty) == 1 else 'columns'}"
                    f" {enumerate_names(empty)} never {'has' if len(empty) == 1 else 'have'} a"
                    " score, which counts as an answer to a label that the model knows; if it does"
                    f" not, leave the column out, or {option('labels')} lists the others"
                )

    def _note_scales(self) -> None:
        """Warn of scores of labels that are on several scales, of which the larger one decides."""
        if self.plan.kind != "multilabel":
            return
        largest = {m.model: r.largest for m, r in zip(self.models, self.reported, strict=True)}
        high = {model: top for model, top in largest.items() if top > _SCALE}
        low = {model: top for model, top in largest.items() if 0 < top <= _SCALE}
        if high and low:
            self.warnings.append(
                f"scores go up to {_tell_tops(high)}, but to {_tell_tops(low)}: on several scales,"
                " the larger scores outweigh the others; bring all models to one scale, such as"
                " percentages divided by 100"
            )

    def _note_silent(self) -> None:
        """Warn of models that answered nothing."""
        self.warnings += [
            f"{model.model!r} answered none of {tell_count(self.n_samples, 'sample')} and has no"
            " say: its table has no rows, or its scores are all missing or 0"
            for model in self.models
            if self._n_missing(model) == self.n_samples > 0
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        self.compare()
        plan = self.plan
        return {
            "kind": plan.kind,
            "kind_is_detected": self.kind_is_detected,
            "n_samples": self.n_samples,
            "n_target_labels": len(plan.target),
            "rule": plan.rule.to_dict(),
            "label_aware_weights": plan.is_label_aware,
            "leftover": plan.leftover if plan.is_label_aware else None,
            "weights": {
                m.model: float(w)
                for m, w in zip(
                    plan.members, np.atleast_2d(plan.weights.T).mean(axis=0), strict=True
                )
            },
            "kernels": self.kernels,
            "unobserved": describe_rule(plan.unobserved, plan.kind),
            "n_without_answer": self.ends.get(NO_ANSWER, 0),
            "ends": {
                Status(code).name.lower(): count
                for code, count in sorted(self.ends.items())
                if code != NO_ANSWER
            },
            "n_tied": self.n_tied,
            "n_same_as_mean": self.n_same_as_mean if self.n_compared else None,
            "n_compared_with_mean": self.n_compared if self.n_compared else None,
            "consensus_mass": [self.least_mass, self.most_mass] if self.most_mass else None,
            "warnings": self.warnings,
            "models": [vars(model) for model in self.models],
        }

    def lines(self, *, judges: str = JUDGES) -> list[str]:
        """What a person should know, one thing a line; the expected is not said.

        ``judges`` are what a caller can hold a consensus against the truth with.
        """
        plan = self.plan
        said = [_describe_rule(plan), *self._tell_kernels(), self._kind_line()]
        if plan.weights.ndim == 2:
            said.append("weights per model and label, as given")
        elif plan.is_label_aware:
            has_leftover = any((m.reached & ~m.declared).any() for m in plan.members)
            said.append(
                "models declare different labels: one that does not declare a label has no say"
                " on it" + f", or {plan.leftover:.0%} where its kernel reaches it" * has_leftover
            )
        said += self._tell_models()
        if any(m.n_partial for m in self.models):
            said.append(f"unobserved scores: {describe_rule(plan.unobserved, plan.kind)}")
        many = _MANY_MISSING * self.n_samples
        lacking = [m.model for m in self.models if self._n_missing(m) > many]
        if self.is_by_part and len(lacking) > 1:
            said.append(
                f"{enumerate_names(lacking)} lack many samples: are they cut into the same parts?"
                " Samples are matched within parts of the same name"
            )
        said += tell_ends(self.ends, plan.rule.fine_ends)
        if self.n_tied:
            said.append(
                f"{self.n_tied:,} of {self.n_samples:,} samples have several labels in first place:"
                " --top lists the first of them"
            )
        if plan.kind == "multilabel" and plan.rule.flattening < 1:
            said.append(
                "scores on which all models agree are raised to the power"
                f" {plan.rule.flattening:.3g}: scores of labels have no mass of 1 by which to take"
                " this back"
            )
        if plan.kind == "multiclass" and self.most_mass:
            if plan.rule.flattening < 1:
                said.append(
                    f"each consensus was raised to the power {1 / plan.rule.flattening:.3g}, which"
                    " takes back the flattening of the rule, and divided by its mass"
                )
            elif self.least_mass < 0.99 or self.most_mass > 1.01:
                said.append(
                    f"each consensus was divided by its mass ({self.least_mass:.3g} to"
                    f" {self.most_mass:.3g})"
                )
        said += self._tell_mean(judges)
        return said + [f"warning: {warning}" for warning in self.warnings]

    def _tell_mean(self, judges: str) -> list[str]:
        """How often a plain mean says the same: without the truth, all that can be known of it."""
        self.compare()
        plan = self.plan
        mean = "label-aware arithmetic mean" if plan.is_label_aware else "arithmetic mean"
        if self._has_rival and self._is_vast:
            return [
                f"not compared with the {mean}: that takes long for {len(plan.target):,} labels"
            ]
        if not self.n_compared:
            return []
        n_others = self.n_compared - self.n_same_as_mean
        if not n_others:
            return [
                f"the {mean} gives the same label on all {tell_count(self.n_compared, 'sample')}"
            ]
        return [
            f"the {mean} gives the same label on {self.n_same_as_mean:,} of"
            f" {tell_count(self.n_compared, 'sample')}; only the truth can tell which is better on"
            f" the other {n_others:,} ({judges})"
        ]

    def _tell_kernels(self) -> list[str]:
        """What each kernel is from, and the labels that it knows nothing of."""
        told = []
        for kernel in self.kernels:
            is_shared = len(kernel["models"]) == len(self.models)
            whose = "" if is_shared else f" of {enumerate_names(kernel['models'])}"
            told.append("; ".join([f"kernel{whose}: {kernel['origin']}", *kernel["notes"]]))
        return told

    def input_lines(self) -> list[str]:
        """The lines about what was read alone, without warnings."""
        return ([] if self.is_learned else [self._kind_line()]) + self._tell_models()

    def _kind_line(self) -> str:
        how = "detected from the row sums" if self.kind_is_detected else "as declared"
        return f"{self.plan.kind}, {how}"

    def _tell_models(self) -> list[str]:
        """How models were read, and what became of their labels and answers."""
        aliases = self.plan.aliases
        spaces = {member.model: member.labels for member in self.plan.members}
        said = []
        if strangers := aliases.strangers(spaces):
            said.append(f"aliases of models that are not here: {enumerate_names(strangers)}")
        if unused := aliases.unused(spaces, fold=self.plan.fold):
            said.append(f"aliases of labels that no model has: {enumerate_names(unused)}")
        said += [_reading(model) for model in self.models if model.ids is not None]
        for model in self.models:
            said += [f"{model.model}: {note}" for note in self._notes(model)]
        return said

    def _notes(self, model: ModelAccount) -> list[str]:
        notes = []
        merged = {name for names, _ in model.merged for name in names}
        aliased = [pair for pair in model.aliased if pair[0] not in merged]
        folded = [pair for pair in model.folded if pair[0] not in merged]
        if aliased:
            notes.append(f"by alias {_pairs(aliased)}")
        if model.astray:
            notes.append(f"left aside, for they lead to no target label: {_pairs(model.astray)}")
        if folded:
            notes.append(f"by folded name {_pairs(folded)}")
        how = "added up" if self.plan.kind == "multiclass" else "the largest of their scores"
        notes += [
            f"{enumerate_names(names)} are one label, {name!r}: {how}"
            for names, name in model.merged
        ]
        if model.other is not None:
            notes.append(f"{model.other!r} stands for every label that it does not declare")
        if model.unmatched:
            notes.append(
                f"{len(model.unmatched)} of {model.n_labels} labels are not target labels by"
                f" name: {enumerate_names(model.unmatched)}"
            )
        if model.lost_labels:
            notes.append(self._tell_lost(model))
        notes += self._suggest_other(model)
        missing = self._n_missing(model)
        if 0 < missing < self.n_samples:
            notes.append(f"no answer for {missing:,} of {self.n_samples:,} samples")
        if model.is_hard:
            notes.append(self._tell_hard())
        if model.n_rounded:
            notes.append(
                f"{tell_count(model.n_rounded, 'row')} of scores with two decimals sum to 1 only"
                " but for rounding: taken as histograms, each divided by its sum"
            )
        if model.n_partial and not model.is_hard:
            share = model.unobserved_mass / model.n_partial
            verb, whose = ("was", "its") if model.n_partial == 1 else ("were", "their")
            notes.append(
                f"{tell_count(model.n_partial, 'answer')} {verb} partial"
                + (f", {share:.1%} of {whose} mass unobserved" if share else "")
            )
        return notes

    def _tell_hard(self) -> str:
        if not self.ends:  # nothing was fused
            return "hard labels, without scores"
        plan = self.plan
        is_sure = plan.kind == "multilabel" or plan.unobserved == "renormalize"
        return f"hard labels, taken with confidence {1 if is_sure else plan.hard_confidence:g}"

    def _tell_lost(self, model: ModelAccount) -> str:
        """What became of labels that lead nowhere."""
        many = f"{len(model.lost_labels)} of {model.n_labels} labels lead to no target label"
        if self.plan.kind == "multilabel":
            return f"{many} and were left out"
        if not self.ends:  # nothing was fused
            return many
        share = model.lost_mass / max(model.n_answered, 1)
        return (
            f"{many}; {share:.1%} of its mass is there, and its say on a sample is less by that"
            " sample's share"
        )

    def _suggest_other(self, model: ModelAccount) -> list[str]:
        """Labels that look like "none of these", and the way to say so."""
        if model.other is not None or self.plan.kind == "multilabel" or self.is_learned:
            return []
        spaces = {member.model: member.labels for member in self.plan.members}
        if len({frozenset(labels) for labels in spaces.values()}) == 1:
            return []  # whatever it means, it means the same to all
        names = find_others(spaces[model.model])
        return [
            f"if {name!r} means that none of its other labels fits, say so:"
            f" {option('other', {model.model: name})}"
            for name in names
        ]

    def _n_missing(self, model: ModelAccount) -> int:
        return self.n_samples - model.n_answered


def _tell_tops(tops: dict[str, float]) -> str:
    """Largest scores, each with its model."""
    told = [f"{top:.4g} ({model!r})" for model, top in tops.items()]
    more = f" and of {len(told) - _N_FIRST} more" if len(told) > _N_FIRST else ""
    return ", ".join(told[:_N_FIRST]) + more


def _merged(member: Member) -> list[tuple[list[str], str]]:
    """Labels that are fused as one, with the name they have then."""
    if member.groups is None:
        return []
    own: list[list[str]] = [[] for _ in member.fused]
    for name, group in zip(member.labels, member.groups.tolist(), strict=True):
        own[group].append(name)
    return [(names, member.fused[g]) for g, names in enumerate(own) if len(names) > 1]


def _reading(model: ModelAccount) -> str:
    more = ", ..." if model.n_labels > len(model.first_labels) else ""
    return (
        f"{model.file or model.model}: {model.ids}; {model.n_labels:,} labels:"
        f" {', '.join(model.first_labels)}{more}"
    )


def _pairs(pairs: list[tuple[str, str]]) -> str:
    return enumerate_names([f"{a} -> {b}" for a, b in pairs], at_most=4)


def _describe_rule(plan: FusionPlan) -> str:
    """How models are fused, and what a score of 0 does."""
    rule = plan.rule
    if not isinstance(rule, Barycenter):
        return f"rule: {rule}"
    if rule.is_balanced:
        return f"rule: barycenter, {rule.mass}: a label that one model rules out may be lost"
    usual = " (the default)" if rule == USUAL_RULE else ""
    return f"rule: barycenter, {rule.mass}{usual}: no model rules out a label by itself"


def _best_labels(scores: np.ndarray) -> np.ndarray:
    """Labels in first place of each sample, those that tie but for rounding included."""
    return scores >= scores.max(axis=1, keepdims=True) * (1 - _TIE)


def count_ends(statuses: np.ndarray) -> Counter[int]:
    """How many samples ended in which way, by code."""
    counts = np.bincount(statuses.astype(np.intp) - NO_ANSWER).tolist()
    return Counter({code: n for code, n in enumerate(counts, NO_ANSWER) if n})


def tell_ends(ends: Counter[int], fine: Container[int], what: str = "samples") -> list[str]:
    """How many samples ended otherwise than ``fine``, codes of `Status`; a sentence for each."""
    told = []
    for code, count in sorted(ends.items()):
        if code not in fine:
            message = _SILENCE if code == NO_ANSWER else Status(code).message
            remedy = f"; {no_mass_remedy()}" if code == Status.NO_MASS else ""
            told.append(f"{count:,} of {ends.total():,} {what}: {message}{remedy}")
    return told
