"""One label for each sample: over the members' own classes, or from labels of other kinds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from wassemble._arrays import is_frame
from wassemble.ensemble.decisions import choose_least_cost
from wassemble.ensemble.estimators.base import MemberEnsemble, names_of
from wassemble.ensemble.estimators.members import TableMember
from wassemble.inputs import Kind
from wassemble.inputs.formats.named_tables import read_named_table
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace


class WassersteinClassifier(ClassifierMixin, MemberEnsemble):  # type: ignore[misc]
    """One classifier from several, by the rule that wins on the data.

    Parameters
    ----------
    members : list of (name, estimator), estimators or Predictions
        Unfitted ones are fitted inside, and learned from by their answers to samples that
        they did not see. ``FrozenEstimator(model)`` takes a fitted model as it is: ``fit``
        then wants samples that it was not fitted on. `Predictions` are looked up by the
        sample ids in ``X``. Members and their parameters are parameters of the ensemble:
        ``set_params(tree__max_depth=3)``, and ``set_params(tree="drop")`` leaves one out.
    metric, kernels, n_folds, time_budget
        As in `learn_ensemble`; kernels are between class names.
    cost : array of shape (n_classes, n_classes), or data frame by class names, optional
        Of answering a class (column) when the truth is another (row): `predict` answers the
        class of least expected cost.
    cv : int
        Folds for members that are fitted inside.
    random_state : int or None
    n_jobs : int or None
        How many members are fitted at the same time, as in scikit-learn; -1 for one per
        processor.

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
        n_jobs: int | None = None,
    ) -> None:
        self._keep(locals())

    def _read_truth(self, y: Any) -> tuple[np.ndarray, list[str]]:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self._read_classes(np.unique(y))
        return y, names_of(y)

    def _read_classes(self, seen: np.ndarray) -> None:
        """Set the classes and their names, from those that are in ``y``."""
        self.classes_ = seen
        self.target_ = LabelSpace(names_of(seen))

    def _labels_of(self, member: Any, table: np.ndarray) -> LabelSpace:
        return LabelSpace(names_of(getattr(member, "classes_", self.classes_)))

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
        histograms = self.predict_proba(X)
        if self.cost is None:
            return self.classes_[histograms.argmax(axis=1)]
        cost = self.cost
        if is_frame(cost):
            titles = "class that is true", "class that is answered"
            table = read_named_table(cost, "cost")
            cost = table.ordered(self.target_, self.target_, titles=titles)
        return self.classes_[choose_least_cost(histograms, cost)]

    def _load_classes(self) -> None:
        own = getattr(self.members_[0], "classes_", None)
        names = list(self.target_)
        same = own is not None and names_of(own) == names
        self.classes_ = np.asarray(own) if same else np.array(names, dtype=object)


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
