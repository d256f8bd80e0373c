"""Members by name, with parameters of their own: as in scikit-learn's VotingClassifier.

A table of predictions can be a member too.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from wassemble._checks import fail
from wassemble.inputs import Predictions
from wassemble.labels import enumerate_names, name_of

# Stands in the place of a member that is left out.
DROP = "drop"


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
        # Whole numbers among features are floats.
        texts = [name_of(sample) or str(sample) for sample in ids]
        rows = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
        if (rows < 0).all():
            fail(
                f"`X` must hold sample ids of {self.predictions.model!r}; got none, such as"
                f" {str(ids[0])!r}."
            )
        scores = self.predictions.scores[rows].copy()
        scores[rows < 0] = np.nan
        return np.asarray(scores)

    def predict(self, X: Any) -> np.ndarray:
        """Best label of each sample; None where there are no scores."""
        scores = self.predict_proba(X)
        best = self.classes_[np.nan_to_num(scores).argmax(axis=1)]
        best[np.isnan(scores).all(axis=1)] = None  # a copy, by the index above
        return np.asarray(best)


class NamedMembers(BaseEstimator):  # type: ignore[misc]
    """An estimator whose members, and their parameters, are parameters of its own."""

    members: Sequence[Any]

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Keep the arguments of ``__init__``, its ``locals()``, as they are: parameters."""
        self.__dict__.update((name, value) for name, value in arguments.items() if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with ``deep``, members by name and their own, such as ``tree__max_depth``."""
        own = dict(super().get_params(deep=deep))
        if not deep:
            return own
        params = {}
        for name, member in self._all_members():
            params[name] = member
            if hasattr(member, "get_params") and not isinstance(member, type):
                nested = member.get_params(deep=True)
                params |= {f"{name}__{key}": value for key, value in nested.items()}
        return params | own

    def set_params(self, **params: Any) -> Self:
        """Set parameters, members by name, and theirs: ``set_params(tree__max_depth=3)``.

        ``set_params(tree="drop")`` leaves a member out.
        """
        if "members" in params:
            self.members = params.pop("members")
        replaced = {name: params.pop(name) for name, _ in self._all_members() if name in params}
        if replaced:
            self.members = [
                (name, replaced[name]) if name in replaced else member
                for member, (name, _) in zip(self.members, self._all_members(), strict=True)
            ]
        super().set_params(**params)
        return self

    def _all_members(self) -> list[tuple[str, Any]]:
        """Every member with its name, those dropped too; none if they are not as they must be."""
        if not isinstance(self.members, list | tuple):
            return []
        named = []
        for place, member in enumerate(self.members):
            if isinstance(member, Predictions):
                named.append((member.model, member))
            elif not isinstance(member, tuple | list):
                named.append((f"{type(member).__name__.lower()}-{place + 1}", member))
            elif len(member) == 2 and isinstance(member[0], str):
                named.append((member[0], member[1]))
            else:
                return []
        return named

    def _named_members(self) -> list[tuple[str, Any]]:
        """The members that take part, each with its name."""
        named = self._all_members()
        if not named:
            fail(
                "`members` must be a list of at least one model, or of pairs (name, model); got"
                f" {'none' if not self.members else repr(self.members)[:80]}."
            )
        names = [name for name, _ in named]
        if len(set(names)) < len(names):
            fail(f"members must have different names; got {', '.join(names)}.")
        own = super().get_params(deep=False)
        wrong = [name for name in names if "__" in name or name in own]
        if wrong:
            fail(
                "the name of a member must not be a parameter of the estimator, nor have '__' in"
                f" it; got {enumerate_names(wrong)}."
            )
        kept = [
            (name, TableMember(member) if isinstance(member, Predictions) else member)
            for name, member in named
            if not (isinstance(member, str) and member == DROP)
        ]
        if not kept:
            fail(f"at least one member must take part; got {DROP!r} for all of them.")
        return kept
