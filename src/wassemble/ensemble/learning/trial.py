"""What an ensemble learns from: models on the same samples, and the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wassemble._arrays import is_frame, is_series
from wassemble._checks import check_count, fail, option
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.label_overlap import find_truth_twins, find_twins, tell_twins
from wassemble.ensemble.members import merge_labels, read_other
from wassemble.ensemble.tables import align_samples, common_kind, warn_of_inputs
from wassemble.inputs import Aliases, Kind, Predictions
from wassemble.inputs.predictions.overlap import check_samples, check_truth_samples
from wassemble.inputs.predictions.truth import (
    list_names,
    read_known,
    read_known_weight,
    read_labels,
    say_column,
    show_ids,
)
from wassemble.labels import LabelSpace, enumerate_names, name_of, put_in_order
from wassemble.metrics import Measure, PairedBootstrap
from wassemble.metrics.arguments import read_sample_weight


@dataclass(frozen=True, eq=False)
class Trial:
    """Models on the same samples in the same order, with the truth of each.

    Attributes
    ----------
    kind : {"multiclass", "multilabel"}
        What the models give.
    truth : array of shape (n_samples,) or (n_samples, n_target)
        Multi-class: place of the true label. Multi-label: 1 for present, 0 for absent, nan
        where nobody knows.
    sample_weight : array of shape (n_samples,), or None
    groups : array of shape (n_samples,), or None
        Samples of one group stand and fall together.
    aliases : Aliases
        Target labels that labels of models stand for.
    other : mapping of model name to label name
        Labels that stand for every target label that a model does not declare.
    normalize : bool
        Whether rows were divided by their sums, as those of new samples then are.
    """

    models: list[Predictions]
    target: LabelSpace
    kind: Kind
    truth: np.ndarray
    sample_weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    aliases: Aliases = field(default_factory=Aliases)
    other: Mapping[str, str] = field(default_factory=dict)
    normalize: bool = False

    def fusion(self, kernel: Any, **options: Any) -> Fusion:
        """A fusion of such models to the target labels."""
        same = ("target", "kind", "aliases", "other", "normalize")
        return Fusion(kernel=kernel, **{name: getattr(self, name) for name in same}, **options)

    @property
    def is_ordered(self) -> bool:
        """Whether one of several target labels is true, and they lie on a line."""
        return self.task == "multiclass" and self.target.positions is not None

    def in_order(self) -> Trial:
        """The same with target labels on a line; multi-class."""
        first = self.models[0]
        own = merge_labels([(first.model, first.labels)], self.aliases, self.other)
        spaces = [model.labels for model in self.models]
        target = put_in_order(self.target, None if first.is_hard else own, spaces)
        return replace(self, target=target, truth=target.places(self.target)[self.truth])

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.truth)

    @property
    def n_numbers(self) -> int:
        """Scores of all models times target labels: what a regression for each label takes in."""
        n_scores = sum(len(model.labels) for model in self.models)
        return self.n_samples * n_scores * len(self.target)

    @property
    def repeats_labels(self) -> bool:
        """Whether most samples share their true label with another, or have any number of them.

        If not, what labels mean cannot be learned: the label of a sample is hardly ever met
        in others, and a rule that believes in labels that it never met looks right out of fold.
        """
        return self.truth.ndim == 2 or bool((np.bincount(self.truth)[self.truth] > 1).mean() >= 0.5)

    @property
    def names(self) -> list[str]:
        """Names of the models."""
        return [model.model for model in self.models]

    @property
    def task(self) -> Kind:
        """What is wanted of the consensus: one label, or any number of them.

        The models may be of another kind: scores of attributes lead to one animal.
        """
        return "multiclass" if self.truth.ndim == 1 else "multilabel"

    @property
    def is_reached_by_name(self) -> np.ndarray:
        """Which target labels some model declares."""
        matchings = [
            model.labels.match(self.target, aliases=self.aliases.of_model(model.model))
            for model in self.models
        ]
        return np.any([matching.declared for matching in matchings], axis=0)

    @property
    def true_labels(self) -> list[str]:
        """The labels that are true of some sample."""
        if self.truth.ndim == 1:
            places = np.unique(self.truth)
        else:
            places = np.flatnonzero((self.truth == 1).any(axis=0))
        return [self.target[place] for place in places.tolist()]

    @property
    def strange_labels(self) -> list[str]:
        """The true labels, if no model declares any of them."""
        true = self.true_labels
        return [] if self.is_reached_by_name[self.target.places(true)].any() else true

    @property
    def unknown_labels(self) -> list[tuple[str, int]]:
        """True labels that no model declares, with the number of their samples."""
        if self.truth.ndim > 1:
            return []
        counts = np.bincount(self.truth, minlength=len(self.target)) * ~self.is_reached_by_name
        return [(self.target[i], int(counts[i])) for i in np.flatnonzero(counts).tolist()]

    @property
    def labels_seen_once(self) -> list[str]:
        """Labels that are true of one sample alone."""
        if self.truth.ndim == 1:
            counts = np.bincount(self.truth, minlength=len(self.target))
        else:
            counts = np.nansum(self.truth, axis=0)
        return [self.target[place] for place in np.flatnonzero(counts == 1).tolist()]

    def find_copies(self) -> list[list[str]]:
        """Names of models that give the same labels the same scores."""
        alike: dict[Any, list[str]] = {}
        for model in self.models:
            same = model.labels.names, np.ascontiguousarray(model.scores).tobytes()
            alike.setdefault(same, []).append(model.model)
        return [names for names in alike.values() if len(names) > 1]

    def take(self, rows: np.ndarray) -> Trial:
        """The samples ``rows``."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        groups = None if self.groups is None else self.groups[rows]
        models = [model.take(rows) for model in self.models]
        truth = self.truth[rows]
        return replace(self, models=models, truth=truth, sample_weight=weight, groups=groups)

    def bootstrap(
        self, measure: Measure, seed: int, n_resamples: int | None = None
    ) -> PairedBootstrap:
        """The same resamples of the samples for every rule."""
        return PairedBootstrap(
            measure,
            self.truth,
            sample_weight=self.sample_weight,
            groups=self.groups,
            n_resamples=n_resamples,
            seed=seed,
        )

    @property
    def usual_n_folds(self) -> int:
        """As many folds as a true label usually has samples, but 2 to 5.

        With more, what is fitted on the others has seen less of the true label than of any
        other, and looks worse than it will be.
        """
        usual = 5
        if self.task == "multiclass":
            counts = np.unique(self.truth, return_counts=True)[1]
            usual = int(min(usual, np.median(counts)))
        return max(2, min(usual, self.n_samples))

    def folds(self, n_folds: int, seed: int) -> np.ndarray:
        """Number of the fold of each sample; true labels are spread evenly over the folds.

        Samples of one group lie in one fold, unless labels have too few groups for that: then
        folds would be without some of them.
        """
        n_folds = check_count(n_folds, "n_folds", at_least=2)
        if self.n_samples < n_folds:
            fail(
                f"there must be at least {n_folds} samples for as many folds; got {self.n_samples}."
            )
        key = self.truth if self.truth.ndim == 1 else _rarest(self.truth)
        unit = np.arange(self.n_samples)
        if self.groups is not None and _has_groups(key, self.groups, n_folds):
            _, first, unit = np.unique(self.groups, return_index=True, return_inverse=True)
            key = key[first]
        order = np.random.default_rng(seed).permutation(len(key))
        # Samples of one label lie together, and are dealt out one by one.
        order = order[np.argsort(key[order], kind="stable")]
        fold = np.empty(len(key), dtype=np.int64)
        fold[order] = np.arange(len(key)) % n_folds
        return np.asarray(fold[unit])


def _has_groups(key: np.ndarray, groups: np.ndarray, n_folds: int) -> bool:
    """Whether the samples of a label usually lie in as many groups as there are folds."""
    numbers = np.unique(groups, return_inverse=True)[1]
    pairs = np.unique(np.stack([key, numbers]), axis=1)
    return bool(np.median(np.unique(pairs[0], return_counts=True)[1]) >= n_folds)


def _rarest(truth: np.ndarray) -> np.ndarray:
    """The rarest label that each sample has, -1 for none."""
    counts = np.nansum(truth, axis=0)
    rare = np.where(truth == 1, counts, np.inf)
    return np.where(np.isfinite(rare.min(axis=1)), rare.argmin(axis=1), -1)


def read_trial(
    models: Sequence[Predictions],
    truth: Any,
    *,
    target: LabelSpace | None = None,
    kind: Kind | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    aliases: Any = None,
    other: str | Mapping[str, str] | None = None,
    fold: bool = False,
    normalize: bool = False,
    first: Predictions | None = None,
) -> Trial:
    """Models and truth, matched by sample id and label name.

    Parameters
    ----------
    models : sequence of Predictions
    truth : mapping of sample id to label, sequence of labels, Predictions, frame or array
        Multi-class: a label name for each sample; whole numbers are names too. Multi-label: a
        list of names for each, or a table of 0 and 1 (`Predictions` with nan where nobody
        knows, or an array along the samples of the first model and the target labels). A
        sequence goes along with the samples of the first model; a pandas Series is read by
        its index, and a data frame by its ids, long or wide.
    sample_weight : array along the samples of the first model, or Series by id, optional
    groups : mapping of sample id to group, Series, Predictions or sequence, optional
        A sequence goes along with the samples of the first model.
    target : LabelSpace, optional
        Labels of the consensus; those of the models and of the truth if not given.
    aliases, other
        What labels of models stand for; see `Fusion`.
    fold : bool
        Match names without regard to case, underscores, hyphens and repeated spaces, and
        numbers by their value: 2, 2.0 and 02.
    normalize : bool
        Whether rows were divided by their sums; see `Fusion`.
    first : Predictions, optional
        The model that a truth or weights without ids go along with, if not the first.
    """
    own_kind, _ = common_kind(list(models), kind)
    aligned = align_samples(models)
    samples = [str(sample) for sample in aligned[0].samples.tolist()]
    first = models[0] if first is None else first
    place = {sample: row for row, sample in enumerate(samples)}
    along = [place[str(sample)] for sample in first.samples.tolist()]
    spaces = [(model.model, model.labels) for model in models]
    meanings, others = Aliases.of(aliases), read_other(other, spaces)
    meanings.check_models(dict(spaces))
    known = read_known(truth, aligned[0].samples)
    if fold:
        meanings = meanings.with_folded(spaces, list_names(known) if target is None else target)
        known = known if target is None else _fold_truth(known, target)
    meant = [merge_labels([space], meanings, others) for space in spaces]
    warn_of_inputs(_check_inputs(models, known, meant))
    if target is None:
        named = list_names(known)
        _refuse_places(truth, named, merge_labels(spaces, meanings, others))
        target = merge_labels(spaces, meanings, others, further=named)
    if isinstance(known, Predictions):
        table = {str(s): row for s, row in zip(known.samples, known.scores, strict=True)}
        places = known.labels.match(target).places
        _check_known([known.labels[i] for i in np.flatnonzero(places < 0).tolist()], target)
        rows = [i for i, sample in enumerate(samples) if sample in table]
        values = np.full((len(rows), len(target)), np.nan)
        listed = [table[samples[i]] for i in rows]
        values[:, places] = np.array(listed).reshape(len(rows), len(known.labels))
        if known.is_hard:  # a list of true labels: what it does not name is not there
            values = np.nan_to_num(values)
        if own_kind == "multiclass" or (known.is_hard and (values.sum(axis=1) == 1).all()):
            values = _one_true(values, [samples[i] for i in rows], known)
    elif isinstance(known, Mapping):
        rows = [i for i, sample in enumerate(samples) if known.get(sample) is not None]
        values = _read_names([known[samples[i]] for i in rows], target)
    elif isinstance(known, np.ndarray):
        values, rows = known, along
        if values.shape != (len(along), len(target)):
            fail(
                f"`truth` must have shape (n_samples, n_target) = {(len(along), len(target))}, a"
                f" row for each sample of the first model, {first.model!r}; got {values.shape}.",
                hint="a data frame with sample ids may know other samples",
            )
    else:
        if len(known) != len(along):
            fail(
                f"`truth` must name the label of each of the {len(along):,} samples of the first"
                f" model, {first.model!r}; got {len(known):,}.",
                hint="a dict of sample id to label may know fewer, or those of other models",
            )
        rows = [row for row, value in zip(along, known, strict=True) if value is not None]
        values = _read_names([value for value in known if value is not None], target)
    _check_some(rows, samples)
    weight = _read_weight(sample_weight, aligned[0].samples, rows, first, along)
    grouped = _read_groups(groups, samples, rows, first, along)
    kept = np.array(rows, dtype=np.int64)
    models = [model.take(kept) for model in aligned]
    return Trial(models, target, own_kind, values, weight, grouped, meanings, others, normalize)


def _check_some(rows: list[int], samples: list[str]) -> None:
    if not samples:
        fail("the models must have some sample to learn from; got tables without rows.")
    if not rows:
        fail(
            "the truth must be known for some sample; got none.",
            hint=f"sample ids are such as {show_ids(samples)}",
        )


def _read_weight(
    given: Any, samples: np.ndarray, rows: list[int], first: Predictions, along: list[int]
) -> np.ndarray | None:
    """Weights of ``rows``, by id or along with the first model, whose rows are ``along``."""
    if given is None:
        return None
    if is_series(given):
        return read_sample_weight(read_known_weight(given, samples), len(samples))[rows]
    by_row = dict(zip(along, read_sample_weight(given, len(along)), strict=True))
    without = [samples[row] for row in rows if row not in by_row]
    if without:
        fail(
            "`sample_weight` must hold the weight of each sample; got none for"
            f" {show_ids(without)}, which the first model, {first.model!r}, does not have.",
            hint="a pandas Series goes by sample ids",
        )
    return np.array([by_row[row] for row in rows])


def _read_groups(
    given: Any, samples: list[str], rows: list[int], first: Predictions, along: list[int]
) -> np.ndarray | None:
    """Groups of ``rows``, by id or along with the first model, whose rows are ``along``."""
    if given is None:
        return None
    if is_series(given):
        given = dict(zip(given.index, given, strict=True))
    if isinstance(given, Predictions):
        best = np.nan_to_num(given.scores).argmax(axis=1)
        given = {sample: given.labels[i] for sample, i in zip(given.samples, best, strict=True)}
    if isinstance(given, Mapping):
        by_id = {str(sample): str(group) for sample, group in given.items()}
    elif len(given) == len(along):
        by_id = {samples[row]: str(group) for row, group in zip(along, given, strict=True)}
    else:
        fail(
            f"`groups` must hold one group for each of the {len(along):,} samples of the first"
            f" model, {first.model!r}; got {len(given):,}.",
            hint="a dict of sample id to group goes by ids",
        )
    without = [samples[row] for row in rows if samples[row] not in by_id]
    if without:
        fail(
            f"{option('groups')} must hold the group of each sample; got none for"
            f" {show_ids(without)}."
        )
    return np.array([by_id[samples[row]] for row in rows])


def _refuse_places(truth: Any, named: list[str], labels: LabelSpace) -> None:
    """Refuse whole numbers as names of labels where the models have no such labels."""
    given = truth.values() if isinstance(truth, Mapping) else truth
    if isinstance(given, Predictions) or is_frame(given) or getattr(given, "ndim", 1) > 1:
        return
    first = next((each for each in given if each is not None), "")
    is_number = not isinstance(first, str) and name_of(first) is not None
    if is_number and not any(name in labels for name in named):
        fail(
            f"the truth must name labels; got whole numbers ({show_ids(named)}), and labels are"
            f" such as {show_ids(labels)}.",
            hint=f"`[labels[i] for i in truth]` names them if they are places; {option('target')}"
            " lists the labels if these numbers are their names",
        )


def _fold_truth(known: Any, target: LabelSpace) -> Any:
    """The truth with the target's way to write its labels; what `read_known` returned."""
    names = list_names(known)
    if not names:
        return known
    pairs = dict(LabelSpace(names).match(target, fold=True).folded)
    if isinstance(known, Predictions):
        return known.replace(labels=LabelSpace(pairs.get(name, name) for name in names))

    def rename(value: Any) -> Any:
        if isinstance(value, str):
            return pairs.get(value, value)
        return value and [pairs.get(name, name) for name in value]

    if isinstance(known, Mapping):
        return {sample: rename(value) for sample, value in known.items()}
    return [rename(value) for value in known]


def _check_inputs(
    models: Sequence[Predictions], known: Any, spaces: Sequence[LabelSpace]
) -> list[str]:
    """What looks as if it was not meant; a truth of other samples is an error.

    ``spaces`` are the labels that those of each model stand for.
    """
    said = [f"{model.model}: {doubt}" for model in models for doubt in model.origin.doubts]
    said += check_samples(models, allow_disjoint=None)
    if isinstance(known, Predictions):
        said += check_truth_samples(known.samples.tolist(), models)
    elif isinstance(known, Mapping):
        told = [sample for sample, value in known.items() if value is not None]
        said += check_truth_samples(told, models)
    twins = find_truth_twins(list_names(known), spaces)
    return said + [tell_twins(twins)] * bool(twins)


def _read_names(values: list[Any], target: LabelSpace) -> np.ndarray:
    """One name for each sample, or a list of them for each."""
    strange = {name for value in values for name in read_labels(value) if name not in target}
    _check_known(sorted(strange), target)
    if values and all(isinstance(value, str) for value in values):
        return target.places(values)
    table = np.zeros((len(values), len(target)))
    for row, value in enumerate(values):
        table[row, target.places(read_labels(value))] = 1
    return table


def _one_true(values: np.ndarray, samples: list[str], known: Predictions) -> np.ndarray:
    present = np.nan_to_num(values) > 0
    wrong = present.sum(axis=1) != 1
    if wrong.any():
        row = int(np.argmax(wrong))
        is_alone = not known.is_hard and len(known.labels) == 1
        several = f"{option('kind', 'multilabel')} takes any number of true labels"
        fail(
            "a multi-class truth must have one true label for each sample; got"
            f" {present[row].sum() or 'none'} for {samples[row]!r}.",
            hint=say_column(known, known.labels[0]) if is_alone else several,
        )
    return present.argmax(axis=1)


def _check_known(strange: list[str], target: LabelSpace) -> None:
    if strange:
        twins = f"{option('fold', True)} if they are only written otherwise; else "
        fail(
            f"the truth must be among the {len(target):,} target labels, for a consensus gives no"
            f" other; got {enumerate_names(strange)}.",
            hint=f"{twins if find_twins(strange, target) else ''}leave the samples of these labels"
            " out of the truth, or learn with a target that has them",
        )
