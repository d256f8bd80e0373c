"""Estimators in scikit-learn's manner: members in, one learned consensus out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.ensemble.decisions import apply_thresholds, choose_least_cost
from wassemble.ensemble.learning import (
    LearnedEnsemble,
    learn_ensemble,
    load_ensemble,
    save_ensemble,
)
from wassemble.inputs import Kind, Predictions
from wassemble.labels import LabelSpace

load_extra("sklearn", "learn", purpose="an estimator")

from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, cross_val_predict  # noqa: E402
from sklearn.utils.metadata_routing import (  # noqa: E402
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets, type_of_target  # noqa: E402
from sklearn.utils.validation import (  # noqa: E402
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

__all__ = ["CrossSpaceClassifier", "TableMember", "WassersteinClassifier", "WassersteinMultilabel"]


class TableMember(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A table of predictions as a fitted member: its samples are looked up by id.

    Parameters
    ----------
    predictions : Predictions

    Examples
    --------
    >>> table = Predictions("m", ["a", "b"], ["cat", "dog"], [[0.9, 0.1], [0.2, 0.8]])
    >>> TableMember(table).predict_proba([["b"]])
    array([[0.2, 0.8]])
    """

    def __init__(self, predictions: Predictions) -> None:
        self.predictions = predictions

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing to learn: the answers are there."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        """The labels of the table."""
        return np.array(list(self.predictions.labels), dtype=object)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Scores of the samples whose ids are in ``X``; nan where there are none."""
        place = {str(s): row for row, s in enumerate(self.predictions.samples.tolist())}
        ids = np.asarray(X, dtype=object).reshape(len(X), -1)[:, 0]
        rows = np.array([place.get(str(sample), -1) for sample in ids], dtype=np.int64)
        if (rows < 0).all():
            fail(
                f"`X` must hold sample ids of {self.predictions.model!r}; got none, such as"
                f" {str(ids[0])!r}."
            )
        scores = self.predictions.scores[rows].copy()
        scores[rows < 0] = np.nan
        return np.asarray(scores)

    def predict(self, X: Any) -> np.ndarray:
        """Best label of each sample."""
        return self.classes_[np.nan_to_num(self.predict_proba(X)).argmax(axis=1)]


class _Ensemble(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the three estimators share: members, their answers, and learning from them."""

    members: Sequence[Any]
    metric: Any
    kernels: Mapping[str, Any] | None
    cv: Any
    n_folds: int | None
    time_budget: float | None
    random_state: Any
    learned_: LearnedEnsemble
    members_: list[Any]
    member_labels_: list[LabelSpace]
    names_: list[str]
    target_: LabelSpace

    # -- members ---------------------------------------------------------------------

    def _named_members(self) -> list[tuple[str, Any]]:
        if not self.members:
            fail("`members` must name at least one model; got none.")
        named = []
        for place, member in enumerate(self.members):
            if isinstance(member, Predictions):
                named.append((member.model, TableMember(member)))
            elif isinstance(member, tuple):
                name, given = member
                is_table = isinstance(given, Predictions)
                named.append((name, TableMember(given) if is_table else given))
            else:
                named.append((f"{type(member).__name__.lower()}-{place + 1}", member))
        names = [name for name, _ in named]
        if len(set(names)) < len(names):
            fail(f"members must have different names; got {', '.join(names)}.")
        return named

    def _fit_members(self, X: Any, y: Any, sample_weight: Any) -> list[np.ndarray]:
        """Fit the members; answers of each to samples that it was not fitted on."""
        named = self._named_members()
        routed = self._routed(named, sample_weight)
        splits = self._splits(X, y)
        self.members_, answers = [], []
        for name, member in named:
            if isinstance(member, FrozenEstimator | TableMember):
                self.members_.append(member)
                answers.append(self._answers(member, X))
                continue
            options = routed[name]
            method = _method(member)
            unseen = cross_val_predict(
                clone(member), X, y, cv=splits, method=method, params=options or None
            )
            self.members_.append(clone(member).fit(X, y, **options))
            answers.append(self._read_answers(self.members_[-1], unseen, method))
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
            found = process_routing(self, "fit", sample_weight=sample_weight)
            return {name: dict(found[name].fit) for name, _ in named}
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

    def _predictions(self, tables: Sequence[np.ndarray], kind: Kind) -> list[Predictions]:
        n_samples = len(tables[0])
        return [
            Predictions(name, range(n_samples), labels, table, kind=kind)
            for name, labels, table in zip(self.names_, self.member_labels_, tables, strict=True)
        ]

    def _learn(self, tables: Sequence[np.ndarray], truth: Any, sample_weight: Any) -> None:
        self.learned_ = learn_ensemble(
            self._predictions(tables, self._kind),
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

    _kind: Kind = "multiclass"

    def _seed(self) -> int:
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31))
        return 0 if state is None else int(state)

    def _consensus(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "learned_")
        tables = [self._answers(member, X) for member in self.members_]
        return self.learned_.predict(self._predictions(tables, self._kind)).scores

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
        members = [m for _, m in self._named_members()] if self.members else []
        if members and all(hasattr(member, "__sklearn_tags__") for member in members):
            own = [member.__sklearn_tags__().input_tags for member in members]
            tags.input_tags.sparse = all(each.sparse for each in own)
            tags.input_tags.allow_nan = all(each.allow_nan for each in own)
        return tags

    def save(self, folder: str | Path) -> None:
        """Write what was learned, without the members, into a folder: JSON and npz."""
        check_is_fitted(self, "learned_")
        save_ensemble(self.learned_, folder)

    def load(self, folder: str | Path) -> Self:
        """Take over what `save` wrote; the members of this estimator must be fitted."""
        learned = load_ensemble(folder)
        named = self._named_members()
        names = [name for name, _ in learned.fitted.models]
        if [name for name, _ in named] != names:
            fail(f"members must be those that were saved, {', '.join(names)}.")
        for name, member in named:
            if not isinstance(member, TableMember):
                try:
                    check_is_fitted(member)
                except Exception:
                    fail(f"member {name!r} must be fitted: what was saved holds no members.")
        self.members_ = [member for _, member in named]
        self.names_ = names
        self.member_labels_ = [labels for _, labels in learned.fitted.models]
        self.learned_ = learned
        self.target_ = learned.target
        self._load_classes()
        return self

    def _load_classes(self) -> None:
        """What else `fit` would have set."""


def _method(member: Any) -> str:
    found = [m for m in ("predict_proba", "decision_function", "predict") if hasattr(member, m)]
    if not found:
        fail(f"a member must have predict_proba, decision_function or predict; got {member!r}.")
    return found[0]


def _names(values: Any) -> list[str]:
    return [str(value) for value in values]


class WassersteinClassifier(ClassifierMixin, _Ensemble):  # type: ignore[misc]
    """One classifier from several, by the rule that wins on the data.

    Parameters
    ----------
    members : list of (name, estimator), estimators or Predictions
        Unfitted ones are fitted inside, and learned from by their answers to samples that
        they did not see. ``FrozenEstimator(model)`` takes a fitted model as it is: ``fit``
        then wants samples that it was not fitted on. `Predictions` are looked up by the
        sample ids in ``X``.
    metric, kernels, n_folds, time_budget
        As in `learn_ensemble`; kernels are between class names.
    cost : array of shape (n_classes, n_classes), optional
        Of answering a class (column) when the truth is another (row): `predict` answers the
        class of least expected cost.
    cv : int
        Folds for members that are fitted inside.
    random_state : int or None

    Attributes
    ----------
    learned_ : LearnedEnsemble
        What was chosen and why; ``learned_.report`` says it in words.
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("linear", LogisticRegression(max_iter=500)), ("bayes", GaussianNB())]
    >>> model = WassersteinClassifier(members, time_budget=1.0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        members: Sequence[Any],
        *,
        metric: Any = None,
        kernels: Mapping[str, Any] | None = None,
        cost: Any = None,
        cv: int = 5,
        n_folds: int | None = None,
        time_budget: float | None = 30.0,
        random_state: int | None = None,
    ) -> None:
        self.members = members
        self.metric = metric
        self.kernels = kernels
        self.cost = cost
        self.cv = cv
        self.n_folds = n_folds
        self.time_budget = time_budget
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit members and learn how to fuse them."""
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        tables = self._fit_members(X, y, sample_weight)
        self.target_ = LabelSpace(_names(self.classes_))
        self.member_labels_ = [
            LabelSpace(_names(getattr(member, "classes_", self.classes_)))
            for member in self.members_
        ]
        self._learn(tables, _names(y), sample_weight)
        return self

    def _read_answers(self, member: Any, answers: Any, method: str) -> np.ndarray:
        table = np.asarray(answers)
        if method == "decision_function":
            return softmax(np.column_stack([-table, table]) if table.ndim == 1 else table, axis=1)
        if table.ndim == 2:
            return table
        classes = getattr(member, "classes_", self.classes_)
        return (table[:, None] == np.asarray(classes)[None, :]).astype(float)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Histogram over ``classes_`` of each sample."""
        scores = self._consensus(X)
        sums = scores.sum(axis=1, keepdims=True)
        return np.where(sums > 0, scores / np.where(sums > 0, sums, 1), 1 / scores.shape[1])

    def predict(self, X: Any) -> np.ndarray:
        """Best class, or that of least expected cost."""
        found = self.predict_proba(X)
        places = found.argmax(axis=1) if self.cost is None else choose_least_cost(found, self.cost)
        return self.classes_[places]

    def _load_classes(self) -> None:
        own = getattr(self.members_[0], "classes_", None)
        names = list(self.target_)
        same = own is not None and _names(own) == names
        self.classes_ = np.asarray(own) if same else np.array(names, dtype=object)


class WassersteinMultilabel(ClassifierMixin, _Ensemble):  # type: ignore[misc]
    """One multi-label classifier from several, by the rule that wins on the data.

    ``y`` is a table of 0 and 1, (n_samples, n_labels). `predict_proba` gives scores,
    `predict` decides by thresholds that were learned for each label. Of a single label, ``y``
    may be any two classes, and the answers are those of a classifier of these two.

    Parameters
    ----------
    members, metric, kernels, cv, n_folds, time_budget, random_state
        As in `WassersteinClassifier`; members give a score for every label.
    labels : list of str, optional
        Names of the labels, for kernels; their numbers if not given.
    """

    _kind: Kind = "multilabel"

    def __init__(
        self,
        members: Sequence[Any],
        *,
        labels: Sequence[str] | None = None,
        metric: Any = None,
        kernels: Mapping[str, Any] | None = None,
        cv: int = 5,
        n_folds: int | None = None,
        time_budget: float | None = 30.0,
        random_state: int | None = None,
    ) -> None:
        self.members = members
        self.labels = labels
        self.metric = metric
        self.kernels = kernels
        self.cv = cv
        self.n_folds = n_folds
        self.time_budget = time_budget
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit members and learn how to fuse them."""
        y, present = self._read_labels(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        tables = self._fit_members(X, y, sample_weight)
        self.member_labels_ = [
            member.predictions.labels if isinstance(member, TableMember) else self.target_
            for member in self.members_
        ]
        self._learn(tables, present, sample_weight)
        return self

    def _read_labels(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """``y`` for the members, and which label each sample has; sets the names."""
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        y = np.asarray(y)
        if kind == "multilabel-indicator" and np.isin(y, (0, 1)).all():
            names = _names(range(y.shape[1])) if self.labels is None else list(self.labels)
            self.classes_ = np.array(names, dtype=object)
            present = y
        elif kind == "binary":
            y = y.ravel()
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                fail("`y` must hold two classes, with and without the label; got one class.")
            names = _names(self.classes_[1:]) if self.labels is None else list(self.labels)
            present = y[:, None] == self.classes_[1]
        else:
            fail(
                f"`y` must be a table of 0 and 1, (n_samples, n_labels); got {kind} of shape"
                f" {y.shape}.",
                hint="Only binary classification is supported if there is a single label",
            )
        if len(names) != present.shape[1]:
            fail(
                f"`labels` must name each of the {present.shape[1]} columns of y; got {len(names)}."
            )
        self.target_ = LabelSpace(names)
        return y, present.astype(np.float64)

    def _read_answers(self, member: Any, answers: Any, method: str) -> np.ndarray:
        if isinstance(answers, list):  # a column for each of the one or two classes of a label
            return np.column_stack(
                [
                    np.asarray(columns)[:, -1] * classes[-1]
                    for columns, classes in zip(answers, member.classes_, strict=True)
                ]
            )
        table = np.asarray(answers)
        if method == "decision_function":
            table = expit(table)
        elif table.ndim == 1:
            table = table == member.classes_[1]
        if len(self.target_) == 1:
            table = table.reshape(len(table), -1)[:, -1:]
        return table.astype(float)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Scores of each label; of a single one, without and with it."""
        scores = self._consensus(X)
        return np.hstack([1 - scores, scores]) if len(self.target_) == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """0 and 1 for each label, by the thresholds that were learned."""
        scores = self._consensus(X)
        assert self.learned_.thresholds is not None
        found = np.asarray(apply_thresholds(scores, self.learned_.thresholds)).astype(int)
        return self.classes_[found[:, 0]] if len(self.target_) == 1 else found

    def _load_classes(self) -> None:
        if len(self.target_) > 1:
            self.classes_ = np.array(list(self.target_), dtype=object)
            return
        own = getattr(self.members_[0], "classes_", ())
        self.classes_ = np.asarray(own) if len(own) == 2 else np.array([0, 1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags


class CrossSpaceClassifier(WassersteinClassifier):
    """Classes from members that speak of other labels: attributes, or other classes.

    Parameters
    ----------
    members : list
        Each gives scores for its own labels: Predictions, or fitted models in a
        ``FrozenEstimator`` whose ``predict_proba`` gives one score per label.
    kernels : dict of name to LabelledKernel
        From the members' labels to the classes, such as `kernel_from_attributes`.
    classes : list of str, optional
        All classes that may be answered, also those without a sample in ``fit``
        (zero-shot); the kernels' target labels if not given.
    labels : list of str, optional
        Names of the labels that models other than Predictions give.
    metric, cost, cv, n_folds, time_budget, random_state
        As in `WassersteinClassifier`.
    """

    _kind: Kind = "multilabel"

    def __init__(
        self,
        members: Sequence[Any],
        *,
        kernels: Mapping[str, Any] | None = None,
        classes: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        metric: Any = None,
        cost: Any = None,
        cv: int = 5,
        n_folds: int | None = None,
        time_budget: float | None = 30.0,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            members,
            metric=metric,
            kernels=kernels,
            cost=cost,
            cv=cv,
            n_folds=n_folds,
            time_budget=time_budget,
            random_state=random_state,
        )
        self.classes = classes
        self.labels = labels

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn how to get from the members' labels to the classes."""
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        tables = self._fit_members(X, y, sample_weight)
        self.target_ = self._read_classes(y)
        seen = {str(value): value for value in np.unique(y)}
        self.classes_ = np.array([seen.get(name, name) for name in self.target_])
        self.member_labels_ = [
            self._labels_of(m, t) for m, t in zip(self.members_, tables, strict=True)
        ]
        self._learn(tables, _names(y), sample_weight)
        return self

    def _read_classes(self, y: np.ndarray) -> LabelSpace:
        if self.classes is not None:
            return LabelSpace(_names(self.classes))
        named = _names(np.unique(y))
        for given in (self.kernels or {}).values():
            each = list(given.values()) if isinstance(given, Mapping) else [given]
            if hasattr(each[0], "target"):
                return LabelSpace.union(each[0].target, named)
        return LabelSpace(named)

    def _labels_of(self, member: Any, table: np.ndarray) -> LabelSpace:
        if isinstance(member, TableMember):
            return member.predictions.labels
        if self.labels is not None:
            return LabelSpace(self.labels)
        own = getattr(member, "classes_", None)
        if own is not None and np.ndim(own) == 1 and len(own) == table.shape[1]:
            return LabelSpace(_names(own))
        return LabelSpace(_names(range(table.shape[1])))
