"""Any number of labels for each sample."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target

from wassemble._checks import fail
from wassemble.ensemble.decisions import apply_thresholds
from wassemble.ensemble.estimators.base import MemberEnsemble, names_of
from wassemble.ensemble.estimators.members import TableMember
from wassemble.inputs import Kind
from wassemble.labels import LabelSpace


class WassersteinMultilabel(ClassifierMixin, MemberEnsemble):  # type: ignore[misc]
    """One multi-label classifier from several, by the rule that wins on the data.

    ``y`` is a table of 0 and 1, (n_samples, n_labels). `predict_proba` gives scores,
    `predict` decides by thresholds that were learned for each label. Of a single label, ``y``
    may be any two classes, and the answers are those of a classifier of these two.

    Parameters
    ----------
    members, metric, kernels, cv, n_folds, time_budget, random_state, n_jobs
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
        n_jobs: int | None = None,
    ) -> None:
        self._keep(locals())

    def _labels_of(self, member: Any, table: np.ndarray) -> LabelSpace:
        return member.predictions.labels if isinstance(member, TableMember) else self.target_

    def _read_truth(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        y = np.asarray(y)
        if kind == "multilabel-indicator" and np.isin(y, (0, 1)).all():
            names = names_of(range(y.shape[1])) if self.labels is None else list(self.labels)
            self.classes_ = np.array(names, dtype=object)
            present = y
        elif kind == "binary":
            y = y.ravel()
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                fail("`y` must hold two classes, with and without the label; got one class.")
            names = names_of(self.classes_[1:]) if self.labels is None else list(self.labels)
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
        decided = np.asarray(apply_thresholds(scores, self.learned_.thresholds)).astype(int)
        return self.classes_[decided[:, 0]] if len(self.target_) == 1 else decided

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
