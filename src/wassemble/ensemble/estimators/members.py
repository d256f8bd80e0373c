"""Members by name, with parameters of their own: as in scikit-learn's VotingClassifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sklearn.base import BaseEstimator

from wassemble._checks import fail
from wassemble.ensemble.estimators.table_member import TableMember
from wassemble.inputs import Predictions
from wassemble.labels import enumerate_names

__all__ = ["DROP", "NamedMembers"]

# Stands in the place of a member that is left out.
DROP = "drop"


class NamedMembers(BaseEstimator):  # type: ignore[misc]
    """An estimator whose members, and their parameters, are parameters of its own."""

    members: Sequence[Any]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with ``deep``, members by name and their own, such as ``tree__max_depth``."""
        own = dict(super().get_params(deep=deep))
        if not deep:
            return own
        found = {}
        for name, member in self._all_members():
            found[name] = member
            if hasattr(member, "get_params") and not isinstance(member, type):
                nested = member.get_params(deep=True)
                found |= {f"{name}__{key}": value for key, value in nested.items()}
        return found | own

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
