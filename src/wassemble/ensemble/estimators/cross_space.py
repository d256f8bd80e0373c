"""Classes from members that speak of other labels; unseen classes too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from wassemble._arrays import is_frame
from wassemble.ensemble.estimators.base import names_of
from wassemble.ensemble.estimators.classifier import WassersteinClassifier
from wassemble.ensemble.estimators.table_member import TableMember
from wassemble.inputs import Kind
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace

__all__ = ["CrossSpaceClassifier"]


class CrossSpaceClassifier(WassersteinClassifier):
    """Classes from members that speak of other labels: attributes, or other classes.

    Parameters
    ----------
    members : list
        Each gives scores for its own labels: Predictions, or fitted models in a
        ``FrozenEstimator`` whose ``predict_proba`` gives one score per label.
    kernels : dict of name to LabelledKernel or data frame
        From the members' labels to the classes, such as `kernels.from_attributes`.
    classes : list of str, optional
        All classes that may be answered, also those without a sample in ``fit``
        (zero-shot); the kernels' target labels if not given.
    labels : list of str, optional
        Names of the labels that models other than Predictions give.
    metric, cost, cv, n_folds, time_budget, random_state, n_jobs
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
        n_jobs: int | None = None,
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
            n_jobs=n_jobs,
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
        classes = np.unique(y)
        seen = dict(zip(names_of(classes), classes, strict=True))
        self.classes_ = np.array([seen.get(name, name) for name in self.target_])
        self.member_labels_ = [
            self._labels_of(m, t) for m, t in zip(self.members_, tables, strict=True)
        ]
        self._learn(tables, names_of(y), sample_weight)
        return self

    def _read_classes(self, y: np.ndarray) -> LabelSpace:
        if self.classes is not None:
            return LabelSpace(names_of(self.classes))
        named = names_of(np.unique(y))
        for given in (self.kernels or {}).values():
            first = next(iter(given.values())) if isinstance(given, Mapping) else given
            if is_frame(first):
                first = LabelledKernel(first)
            if isinstance(first, LabelledKernel):
                return LabelSpace.union(first.target, named)
        return LabelSpace(named)

    def _labels_of(self, member: Any, table: np.ndarray) -> LabelSpace:
        if isinstance(member, TableMember):
            return member.predictions.labels
        if self.labels is not None:
            return LabelSpace(self.labels)
        own = getattr(member, "classes_", None)
        if own is not None and np.ndim(own) == 1 and len(own) == table.shape[1]:
            return LabelSpace(names_of(own))
        return LabelSpace(names_of(range(table.shape[1])))
