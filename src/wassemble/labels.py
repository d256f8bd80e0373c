"""Label sets by name: look-up, union, and matching one set to another.

Knows nothing of predictions or kernels. Nothing is matched by guess: names match if they
are equal, through the aliases that were given, or folded if that was asked for.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from wassemble._checks import fail

__all__ = ["LabelSpace", "Matching", "check_readable", "enumerate_names", "fold_name"]


class LabelSpace(Sequence[str]):
    """An ordered set of label names.

    Parameters
    ----------
    names : iterable of str
        Each once, none empty.

    Examples
    --------
    >>> space = LabelSpace(["cat", "dog"])
    >>> space.position("dog"), "cow" in space
    (1, False)
    """

    def __init__(self, names: Iterable[str]) -> None:
        if isinstance(names, str):
            fail(f"label names must come as a list; got one text, {names!r}.")
        self.names: tuple[str, ...] = tuple(names)
        if not self.names:
            fail("a label space must have at least one label; got none.")
        for place, name in enumerate(self.names):
            if not isinstance(name, str) or not name:
                fail(f"a label name must be a text that is not empty; got {name!r} at {place}.")
        check_readable(self.names, "a label name")
        self._positions = {name: place for place, name in enumerate(self.names)}
        if len(self._positions) < len(self.names):
            seen: set[str] = set()
            twice = [name for name in self.names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
            fail(
                f"label names must differ; got {enumerate_names(dict.fromkeys(twice))} more than"
                " once."
            )

    @staticmethod
    def union(*spaces: Iterable[str]) -> LabelSpace:
        """Every name of the spaces, in the order of first appearance."""
        return LabelSpace(dict.fromkeys(name for space in spaces for name in space))

    def position(self, name: str) -> int:
        """Place of ``name``, counted from 0."""
        place = self._positions.get(name)
        if place is None:
            near = difflib.get_close_matches(str(name), self.names, n=3)
            hint = f"near it: {enumerate_names(near)}" if near else None
            fail(
                f"the label must be one of {enumerate_names(self.names)}; got {name!r}.", hint=hint
            )
        return place

    def positions(self, names: Iterable[str]) -> np.ndarray:
        """Places of ``names``."""
        return np.array([self.position(name) for name in names], dtype=np.int64)

    def match(
        self,
        target: LabelSpace,
        *,
        aliases: Mapping[str, str] | None = None,
        fold: bool = False,
    ) -> Matching:
        """Where each label is found in ``target``.

        Parameters
        ----------
        target : LabelSpace
        aliases : mapping of str to str, optional
            For names that ``target`` does not have: the name they go by there. Aliases of
            names that do not occur are ignored, so that one table serves several models.
        fold : bool
            Match what is left by names without regard to case, underscores, hyphens and
            repeated spaces.
        """
        aliases = {} if aliases is None else aliases
        by_folded = target._folded() if fold else {}
        positions = np.full(len(self), -1, dtype=np.int64)
        aliased, folded = [], []
        for place, name in enumerate(self.names):
            if name in target:
                positions[place] = target._positions[name]
            elif name in aliases:
                alias = aliases[name]
                if alias not in target:
                    fail(
                        f"an alias must name a target label; got {name!r} -> {alias!r}, which is"
                        " none."
                    )
                positions[place] = target._positions[alias]
                aliased.append((name, alias))
            elif fold and fold_name(name) in by_folded:
                found = by_folded[fold_name(name)]
                if len(found) > 1:
                    fail(
                        f"folded names must point to one target label; got {name!r} for"
                        f" {enumerate_names(found)}.",
                        hint="an alias says which one is meant",
                    )
                positions[place] = target._positions[found[0]]
                folded.append((name, found[0]))
        return Matching(self, target, positions, tuple(aliased), tuple(folded))

    def _folded(self) -> dict[str, list[str]]:
        by_folded: dict[str, list[str]] = {}
        for name in self.names:
            by_folded.setdefault(fold_name(name), []).append(name)
        return by_folded

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        return self.names[place]

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelSpace) and self.names == other.names

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"LabelSpace({len(self)} labels: {enumerate_names(self.names)})"


@dataclass(frozen=True, eq=False)
class Matching:
    """Which labels of one space are which labels of another.

    Attributes
    ----------
    positions : array of shape (n_source,)
        Place in ``target`` of each label of ``source``, -1 where there is none.
    aliased, folded : tuples of (source name, target name)
        What was not matched letter by letter.
    """

    source: LabelSpace
    target: LabelSpace
    positions: np.ndarray
    aliased: tuple[tuple[str, str], ...]
    folded: tuple[tuple[str, str], ...]

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Names of ``source`` that were not found."""
        return tuple(self.source.names[i] for i in np.flatnonzero(self.positions < 0))

    @property
    def declared(self) -> np.ndarray:
        """Which labels of ``target`` were found in ``source``, as a mask."""
        mask = np.zeros(len(self.target), dtype=bool)
        mask[self.positions[self.positions >= 0]] = True
        return mask


def fold_name(name: str) -> str:
    """``name`` without regard to case, underscores, hyphens and repeated spaces.

    Examples
    --------
    >>> fold_name("Polar_Bear") == fold_name("polar  bear")
    True
    """
    text = unicodedata.normalize("NFKC", name).casefold()
    # A name of nothing but hyphens stays what it is.
    return " ".join(text.replace("_", " ").replace("-", " ").split()) or text


def check_readable(names: Sequence[str], what: str) -> None:
    """Refuse half characters, as JSON may escape them: no file and no page can hold them."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        if len(names) == 1:
            fail(f"{what} must be readable text; got {names[0]!r}.")
        for name in names:
            check_readable([name], what)


def enumerate_names(names: Iterable[str], *, at_most: int = 6) -> str:
    """Names in a row, for a message; the rest is counted.

    Examples
    --------
    >>> enumerate_names(["cat", "dog", "cow"], at_most=2)
    "'cat', 'dog' and 1 more"
    """
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:at_most])
    more = len(names) - at_most
    return f"{shown} and {more:,} more" if more > 0 else shown
