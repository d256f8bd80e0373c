"""What every estimator does: fit members, learn from their answers, save and load."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, cross_val_predict
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter

from wassemble._checks import fail
from wassemble.ensemble.estimators.members import NamedMembers, TableMember
from wassemble.ensemble.learning import LearnedEnsemble, learn_ensemble
from wassemble.inputs import Kind, Predictions
from wassemble.labels import LabelSpace, name_of


class MemberEnsemble(TransformerMixin, NamedMembers):  # type: ignore[misc]
    """What the three estimators share: members, their answers, and learning from them."""

    metric: Any
    kernels: Mapping[str, Any] | None
    cv: Any
    n_folds: int | None
    time_budget: float | None
    random_state: Any
    n_jobs: int | None
    cost: Any
    labels: Sequence[str] | None
    classes: Sequence[str] | None
    learned_: LearnedEnsemble
    classes_: np.ndarray
    members_: list[Any]
    member_labels_: list[LabelSpace]
    names_: list[str]
    target_: LabelSpace

    _kind: Kind = "multiclass"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit members and learn how to fuse them."""
        y, truth = self._read_truth(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        tables = self._fit_members(X, y, sample_weight)
        self.member_labels_ = [
            self._labels_of(m, t) for m, t in zip(self.members_, tables, strict=True)
        ]
        self.learned_ = learn_ensemble(
            self._predictions(tables),
            truth,
            metric=self.metric,
            kernels=self.kernels,
            target=self.target_,
            kind=self._kind,
            sample_weight=sample_weight,
            n_folds=self.n_folds,
            time_budget=self.time_budget,
            seed=self._seed(),
        )
        return self

    def _read_truth(self, y: Any) -> tuple[np.ndarray, Any]:
        """``y`` for the members, and the truth to learn from; sets the classes and their names."""
        raise NotImplementedError

    def _labels_of(self, member: Any, table: np.ndarray) -> LabelSpace:
        """The labels that a fitted member speaks of; ``table`` has its answers."""
        raise NotImplementedError

    # -- members ---------------------------------------------------------------------

    def _fit_members(self, X: Any, y: Any, sample_weight: Any) -> list[np.ndarray]:
        """Fit the members; answers of each to samples that it was not fitted on."""
        named = self._named_members()
        routed = self._routed(named, sample_weight)
        folds = list(self._splits(X, y).split(X, y))  # the same for every member
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_member)(member, X, y, folds, routed[name]) for name, member in named
        )
        self.members_ = [member for member, _ in fitted]
        answers = [
            self._answers(member, X)
            if unseen is None
            else self._read_answers(member, unseen, _method(member))
            for member, unseen in fitted
        ]
        self.names_ = [name for name, _ in named]
        first = self.members_[0]
        if hasattr(first, "n_features_in_"):
            self.n_features_in_ = first.n_features_in_
        if hasattr(first, "feature_names_in_"):
            self.feature_names_in_ = first.feature_names_in_
        return answers

    def _routed(self, named: list[tuple[str, Any]], sample_weight: Any) -> dict[str, Any]:
        from sklearn import get_config

        if sample_weight is None:
            return {name: {} for name, _ in named}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight)
            return {name: dict(routed[name].fit) for name, _ in named}
        return {
            name: {"sample_weight": sample_weight}
            if has_fit_parameter(member, "sample_weight")
            else {}
            for name, member in named
        }

    def _splits(self, X: Any, y: Any) -> Any:
        """Folds for the members; every class is in every fold where it can be."""
        if not isinstance(self.cv, int):
            return check_cv(self.cv, y, classifier=True)
        if type_of_target(y) in ("binary", "multiclass"):
            _, counts = np.unique(y, return_counts=True)
            n_splits = min(self.cv, int(counts.min()))
            if n_splits >= 2:
                return StratifiedKFold(n_splits, shuffle=True, random_state=self.random_state)
        n_splits = max(2, min(self.cv, len(y)))
        return KFold(n_splits, shuffle=True, random_state=self.random_state)

    def _answers(self, member: Any, X: Any) -> np.ndarray:
        method = _method(member)
        return self._read_answers(member, getattr(member, method)(X), method)

    def _read_answers(self, member: Any, answers: Any, method: str) -> np.ndarray:
        """Answers of a fitted member as scores, ``(n_samples, n_labels)``."""
        raise NotImplementedError

    def _predictions(self, tables: Sequence[np.ndarray]) -> list[Predictions]:
        return [
            Predictions(name, range(len(table)), labels, table, kind=self._kind)
            for name, labels, table in zip(self.names_, self.member_labels_, tables, strict=True)
        ]

    def _seed(self) -> int:
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31))
        return 0 if state is None else int(state)

    def _consensus(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "learned_")
        tables = [self._answers(member, X) for member in self.members_]
        return self.learned_.predict(self._predictions(tables)).scores

    # -- scikit-learn's ways -----------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """The members' own answers side by side, ``(n_samples, sum of their labels)``."""
        check_is_fitted(self, "learned_")
        return np.hstack([self._answers(member, X) for member in self.members_])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`: member and label."""
        check_is_fitted(self, "learned_")
        return np.array(
            [
                f"{name}_{label}"
                for name, labels in zip(self.names_, self.member_labels_, strict=True)
                for label in labels
            ],
            dtype=object,
        )

    def get_metadata_routing(self) -> Any:
        """Who gets which metadata: members take part in `fit`."""
        router = MetadataRouter(owner=self).add_self_request(self)
        for name, member in self._named_members():
            mapping = MethodMapping().add(caller="fit", callee="fit")
            router.add(method_mapping=mapping, **{name: member})
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        members = [m for _, m in self._all_members() if not isinstance(m, Predictions | str)]
        if members and all(hasattr(member, "__sklearn_tags__") for member in members):
            own = [member.__sklearn_tags__().input_tags for member in members]
            tags.input_tags.sparse = all(each.sparse for each in own)
            tags.input_tags.allow_nan = all(each.allow_nan for each in own)
        return tags

    def save(self, folder: str | Path) -> None:
        """Write what was learned, without the members, into a folder: JSON and npz."""
        check_is_fitted(self, "learned_")
        self.learned_.save(folder)

    def load(self, folder: str | Path) -> Self:
        """Take over what `save` wrote; the members of this estimator must be fitted."""
        learned = LearnedEnsemble.load(folder)
        named = self._named_members()
        names = [name for name, _ in learned.models]
        if [name for name, _ in named] != names:
            fail(f"members must be those that were saved, {', '.join(names)}.")
        for name, member in named:
            if not isinstance(member, TableMember):
                try:
                    check_is_fitted(member)
                except (NotFittedError, TypeError):
                    fail(f"member {name!r} must be fitted: what was saved holds no members.")
        self.members_ = [member for _, member in named]
        self.names_ = names
        self.member_labels_ = [labels for _, labels in learned.models]
        self.learned_ = learned
        self.target_ = learned.target
        self._load_classes()
        return self

    def _load_classes(self) -> None:
        """What else `fit` would have set."""


def _fit_member(
    member: Any, X: Any, y: Any, folds: list[Any], options: dict[str, Any]
) -> tuple[Any, Any]:
    """A fitted member and its answers to samples that it did not see; None if it was fitted."""
    if isinstance(member, FrozenEstimator | TableMember):
        return member, None
    method = _method(member)
    unseen = cross_val_predict(clone(member), X, y, cv=folds, method=method, params=options or None)
    return clone(member).fit(X, y, **options), unseen


def _method(member: Any) -> str:
    methods = [m for m in ("predict_proba", "decision_function", "predict") if hasattr(member, m)]
    if not methods:
        fail(f"a member must have predict_proba, decision_function or predict; got {member!r}.")
    return methods[0]


def names_of(values: Any) -> list[str]:
    """Classes as label names."""
    return [name_of(value) or str(value) for value in values]
