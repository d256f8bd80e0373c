"""Classes from members that speak of other labels; unseen classes too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wassemble._arrays import is_frame
from wassemble.ensemble.estimators.base import names_of
from wassemble.ensemble.estimators.classifier import WassersteinClassifier
from wassemble.ensemble.estimators.members import TableMember
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
        self._keep(locals())

    def _read_classes(self, seen: np.ndarray) -> None:
        named = dict(zip(names_of(seen), seen, strict=True))
        self.target_ = self._list_classes(list(named))
        self.classes_ = np.array([named.get(name, name) for name in self.target_])

    def _list_classes(self, seen: list[str]) -> LabelSpace:
        if self.classes is not None:
            return LabelSpace(names_of(self.classes))
        for given in (self.kernels or {}).values():
            first = next(iter(given.values())) if isinstance(given, Mapping) else given
            if is_frame(first):
                first = LabelledKernel(first)
            if isinstance(first, LabelledKernel):
                return LabelSpace.union(first.target, seen)
        return LabelSpace(seen)

    def _labels_of(self, member: Any, table: np.ndarray) -> LabelSpace:
        if isinstance(member, TableMember):
            return member.predictions.labels
        if self.labels is not None:
            return LabelSpace(self.labels)
        own = getattr(member, "classes_", None)
        if own is not None and np.ndim(own) == 1 and len(own) == table.shape[1]:
            return LabelSpace(names_of(own))
        return LabelSpace(names_of(range(table.shape[1])))
