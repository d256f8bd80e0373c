"""Label sets by name: look-up, union, and matching one set to another.

Knows nothing of predictions or kernels. Nothing is matched by guess: names match if they
are equal, through the aliases that were given, or folded if that was asked for.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from wassemble._checks import fail, option, option_or

Meanings = Mapping[str, str | Mapping[str, float]]
"""What label names stand for: one target label, or several with the share of each."""

# Above this, a float64 no longer holds every whole number.
_LARGEST_WHOLE = 2**53
# A number as it may be written in several ways: sign, digits, and digits after the point. One with
# an exponent may as well be a code, such as 1e5.
_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*))?|([+-]?)\.([0-9]+)")
# Positions beyond it have distances whose squares no float64 holds.
_FARTHEST = 1e150


class LabelSpace(tuple[str, ...]):
    """An ordered set of label names: a tuple that finds its entries fast.

    Parameters
    ----------
    names : iterable of str or int
        Each once, none empty. Whole numbers are kept as text; see `read_name`.
    positions : iterable of float, optional
        Where each label lies on a line, as grades do: finite, each once, in any order. Spaces of
        the same names are equal wherever their labels lie.

    Examples
    --------
    >>> space = LabelSpace(["cat", "dog"])
    >>> space.place("dog"), "cow" in space
    (1, False)
    >>> LabelSpace(range(3)).names
    ('0', '1', '2')
    >>> LabelSpace(["low", "high", "middle"], positions=[0, 10, 4]).distances().tolist()
    [[0.0, 10.0, 4.0], [10.0, 0.0, 6.0], [4.0, 6.0, 0.0]]
    """

    names: tuple[str, ...]
    positions: tuple[float, ...] | None
    _places: dict[str, int]

    def __new__(cls, names: Iterable[Any], *, positions: Iterable[float] | None = None) -> Self:
        """Read and check the names; a label space is as it is."""
        if type(names) is cls and positions is None:
            return names
        if isinstance(names, str) or not isinstance(names, Iterable):
            kind = "text" if isinstance(names, str) else type(names).__name__
            fail(f"label names must come as a list; got one {kind}, {names!r}.")
        read = tuple(
            name if type(name) is str and name else read_name(name, f" at {place}")
            for place, name in enumerate(names)
        )
        if not read:
            fail("a label space must have at least one label; got none.")
        check_readable(read, "a label name")
        places = {name: place for place, name in enumerate(read)}
        if len(places) < len(read):
            twice = [name for name, count in Counter(read).items() if count > 1]
            fail(f"label names must differ; got more than once: {enumerate_names(twice)}.")
        space = super().__new__(cls, read)
        space.names, space._places = read, places
        space.positions = None if positions is None else _read_positions(positions, read)
        return space

    @staticmethod
    def union(*spaces: Iterable[str]) -> LabelSpace:
        """Every name of the spaces, in the order of first appearance, where they are located."""
        return LabelSpace.locate(dict.fromkeys(chain(*spaces)), *spaces)

    @staticmethod
    def locate(names: Iterable[str], *spaces: Iterable[str]) -> LabelSpace:
        """The names at the positions that ``spaces`` have, if they have one for each.

        Spaces must agree about names that they share. Different names at one position are not on
        a line together.

        Examples
        --------
        >>> grades = LabelSpace(["low", "middle", "high"], positions=[0, 4, 10])
        >>> LabelSpace.locate(["high", "low"], grades).positions
        (10.0, 0.0)
        """
        space = LabelSpace(names)
        known: dict[str, float] = {}
        for each in spaces:
            for name, position in _list_positions(each):
                if known.setdefault(name, position) != position:
                    fail(
                        f"label sets must agree about where {name!r} lies on the line; got"
                        f" {known[name]:g} and {position:g}.",
                        hint="`kernels.from_scales` joins labels by where they lie, whatever their"
                        " names",
                    )
        if not known:
            return space
        found = [known[name] for name in space if name in known]
        is_line = len(set(found)) == len(space)
        return LabelSpace(space.names, positions=found) if is_line else space

    def on_line(self) -> LabelSpace:
        """The same with positions: its own, or one step from each label to the next."""
        if self.positions is not None:
            return self
        return LabelSpace(self.names, positions=range(len(self)))

    def distances(self) -> np.ndarray:
        """How far labels are from each other on the line, ``(n_labels, n_labels)``."""
        positions = np.array(self.on_line().positions)
        return np.abs(positions[:, None] - positions)

    def to_json(self) -> Any:
        """The names as a list, or with their positions."""
        if self.positions is None:
            return list(self.names)
        return {"names": list(self.names), "positions": list(self.positions)}

    @staticmethod
    def from_json(entries: Any) -> LabelSpace:
        """What `to_json` wrote down."""
        if not isinstance(entries, Mapping):
            return LabelSpace(entries)
        if set(entries) != {"names", "positions"}:
            fail(f"labels must have names and positions; got {enumerate_names(entries)}.")
        return LabelSpace(entries["names"], positions=entries["positions"])

    def place(self, name: str | int) -> int:
        """Place of ``name``, counted from 0."""
        place = self._places.get(name_of(name) or "")
        if place is None:
            near = difflib.get_close_matches(str(name), self.names, n=3)
            hint = f"near it: {enumerate_names(near)}" if near else None
            fail(
                f"the label must be one of {enumerate_names(self.names)}; got {name!r}.", hint=hint
            )
        return place

    def places(self, names: Iterable[str | int]) -> np.ndarray:
        """Places of ``names``."""
        known = self._places
        found = [
            known[name] if isinstance(name, str) and name in known else self.place(name)
            for name in names
        ]
        return np.array(found, dtype=np.int64)

    def match(
        self, target: LabelSpace, *, aliases: Meanings | None = None, fold: bool = False
    ) -> Matching:
        """Where each label is found in ``target``.

        Parameters
        ----------
        target : LabelSpace
        aliases : mapping of str to str, or of str to {str: share}, optional
            The target label that a name stands for, whatever its spelling, or several of
            them. Aliases of names that do not occur, or that lead to no label of ``target``, are
            left aside, so that one table serves several models and tasks.
        fold : bool
            Match what is left by names without regard to case, underscores, hyphens and
            repeated spaces, and numbers by their value.
        """
        meanings = {read_name(name): _goals(meant) for name, meant in (aliases or {}).items()}
        by_folded = target._folded() if fold else {}
        if fold:
            meanings = fold_meanings(meanings, self.names)
        places = np.full(len(self), -1, dtype=np.int64)
        aliased: list[tuple[str, str]] = []
        folded: list[tuple[str, str]] = []
        astray: list[tuple[str, str]] = []
        shared: dict[int, dict[int, float]] = {}
        for place, name in enumerate(self.names):
            if name in meanings:
                goals = {
                    goal if goal in target else by_folded.get(fold_name(goal), [goal])[0]: share
                    for goal, share in meanings[name].items()
                }
                astray += [(name, goal) for goal in goals if goal not in target]
                goals = {goal: share for goal, share in goals.items() if goal in target}
                aliased += [(name, goal) for goal in goals]
                if len(goals) == 1:
                    places[place] = target._places[next(iter(goals))]
                elif goals:
                    total = sum(goals.values())
                    shared[place] = {target._places[g]: s / total for g, s in goals.items()}
            elif name in target:
                places[place] = target._places[name]
            elif fold and fold_name(name) in by_folded:
                twins = by_folded[fold_name(name)]
                if len(twins) > 1:
                    fail(
                        f"folded names must point to one target label; got {name!r} for"
                        f" {enumerate_names(twins)}.",
                        hint="an alias says which one is meant",
                    )
                places[place] = target._places[twins[0]]
                folded.append((name, twins[0]))
        by_alias, by_folding = tuple(aliased), tuple(folded)
        return Matching(self, target, places, by_alias, by_folding, shared, tuple(astray))

    def _folded(self) -> dict[str, list[str]]:
        by_folded: dict[str, list[str]] = {}
        for name in self.names:
            by_folded.setdefault(fold_name(name), []).append(name)
        return by_folded

    def __contains__(self, name: object) -> bool:
        return name_of(name) in self._places

    def __repr__(self) -> str:
        return f"LabelSpace({len(self)} labels: {enumerate_names(self.names)})"


@dataclass(frozen=True, eq=False)
class Matching:
    """Which labels of one space are which labels of another."""

    source: LabelSpace
    target: LabelSpace
    places: np.ndarray  # place in `target` of each label that stands for one of it, else -1
    aliased: tuple[tuple[str, str], ...]  # source and target names that aliases matched
    folded: tuple[tuple[str, str], ...]  # and those that match only when folded
    # Labels that stand for several: place in `source` to {place in `target`: share}, summing to 1.
    shared: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    astray: tuple[tuple[str, str], ...] = ()  # source names, and what aliases say that is no target

    @cached_property
    def unmatched(self) -> tuple[str, ...]:
        """Names of ``source`` that were not found."""
        places = np.flatnonzero(self.places < 0).tolist()
        return tuple(self.source.names[i] for i in places if i not in self.shared)

    @cached_property
    def declared(self) -> np.ndarray:
        """Which labels of ``target`` were found in ``source``, as a mask."""
        mask = np.zeros(len(self.target), dtype=bool)
        mask[self.places[self.places >= 0]] = True
        for shares in self.shared.values():
            mask[list(shares)] = True
        return mask

    def with_complement(self, name: str) -> Matching:
        """The same with ``name`` standing for every target label that no other one stands for.

        Where there is none it leads nowhere.
        """
        place = self.source.place(name)
        others = self.without(place)
        left = np.flatnonzero(~others.declared).tolist()
        if not left:
            return others
        shares = {goal: 1 / len(left) for goal in left}
        return replace(others, shared={**others.shared, place: shares})

    def without(self, place: int) -> Matching:
        """The same with the label at ``place`` of ``source`` matched to nothing."""
        name = self.source[place]
        places = self.places.copy()
        places[place] = -1
        aliased, folded = (
            tuple(pair for pair in pairs if pair[0] != name)
            for pairs in (self.aliased, self.folded)
        )
        shared = {at: shares for at, shares in self.shared.items() if at != place}
        return replace(self, places=places, aliased=aliased, folded=folded, shared=shared)

    def to_sparse(self) -> sp.csr_array:
        """Shares of target labels, ``(n_source, n_target)``: each row sums to 1, or to 0."""
        entries = [(i, j, 1.0) for i, j in enumerate(self.places.tolist()) if j >= 0]
        entries += [(i, j, s) for i, shares in self.shared.items() for j, s in shares.items()]
        i, j, shares = zip(*entries, strict=True) if entries else ((), (), ())
        size = (len(self.source), len(self.target))
        return sp.csr_array((np.array(shares, dtype=np.float64), (i, j)), shape=size)


def _goals(meant: Any) -> dict[str, float]:
    """Target labels that a name stands for, with the share of each."""
    if not isinstance(meant, Mapping):
        return {read_name(meant): 1.0}
    return {read_name(goal): share for goal, share in meant.items()}


def read_name(value: Any, where: str = "") -> str:
    """A label name as text: whole numbers are named by their digits, True and False as such.

    A whole number may be stored as a float, as pandas does in columns with gaps.

    Examples
    --------
    >>> read_name("cat"), read_name(2), read_name(2.0), read_name(True)
    ('cat', '2', '2', 'True')
    """
    text = name_of(value)
    if not text:
        fail(
            "a label name must be a text that is not empty, or a whole number; got"
            f" {value!r}{where}."
        )
    return text


def name_of(value: object) -> str | None:
    """What `read_name` makes of a value; None of what is no name."""
    if isinstance(value, str | bool | np.bool_ | int | np.integer):
        return str(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        is_whole = abs(number) <= _LARGEST_WHOLE and number.is_integer()
        return str(int(number)) if is_whole else None
    return None


def _read_positions(positions: Any, names: Sequence[str]) -> tuple[float, ...]:
    """Where labels lie, checked."""
    given = [positions] if isinstance(positions, str) else positions
    try:
        read = tuple(float(position) for position in given)
    except (TypeError, ValueError):
        fail(f"`positions` must be numbers, one for each label; got {positions!r}.")
    if len(read) != len(names):
        fail(f"`positions` must be one for each of the {len(names)} labels; got {len(read)}.")
    first: dict[float, str] = {}
    for name, position in zip(names, read, strict=True):
        if not math.isfinite(position):
            fail(f"`positions` must be finite; got {position} for {name!r}.")
        if abs(position) > _FARTHEST:
            fail(
                "`positions` must be at most 1e150 from 0, or the squares of their distances are no"
                f" numbers; got {position:g} for {name!r}.",
                hint="give them in a larger unit: only proportions of distances matter",
            )
        if first.setdefault(position, name) != name:
            fail(
                f"`positions` must differ; got {position:g} for {first[position]!r} and {name!r}.",
                hint=f"{option('fold', True)} takes them for one label"
                if fold_name(name) == fold_name(first[position])
                else None,
            )
    return read


def _list_positions(space: Iterable[str]) -> Iterable[tuple[str, float]]:
    """The names of a space with their positions, if it has any."""
    positions = space.positions if isinstance(space, LabelSpace) else None
    return () if positions is None else zip(space, positions, strict=True)


def put_in_order(
    labels: LabelSpace, first: LabelSpace | None, spaces: Iterable[LabelSpace] = ()
) -> LabelSpace:
    """Labels on a line: at their positions, else where numbers lie, or in the order of ``first``.

    Of names that are no numbers, ``first`` must have all: where others belong, nobody said. It is
    None for a list of answers, which names labels as they come. ``spaces`` are those of the models:
    none may have positions that do not serve for all labels.

    Examples
    --------
    >>> grades = put_in_order(LabelSpace(["1", "2", "10", "3"]), LabelSpace(["1", "2", "10"]))
    >>> grades.names, grades.positions
    (('1', '2', '3', '10'), (1.0, 2.0, 3.0, 10.0))
    """
    if labels.positions is not None:
        return labels
    if any(space.positions is not None for space in spaces):
        fail(
            "positions on the line must be known of all labels, and differ; they are of some.",
            hint=f"give all labels their positions by {_say_target()}",
        )
    if are_numbers(labels):
        return at_numbers(sorted(labels, key=float))
    if lost := [name for name in labels if first is None or name not in first]:
        fail(
            "the order of all labels must be known; the first model gives no place to"
            f" {enumerate_names(lost)}.",
            hint=f"name all labels, from the lowest to the highest, by {_say_target()}",
        )
    return labels.on_line()


def _say_target() -> str:
    return option_or("`target`", target="FILE, a text file with one a line")


def at_numbers(labels: Iterable[str]) -> LabelSpace:
    """Names that are all numbers, each where its number lies."""
    names = list(labels)
    return LabelSpace(names, positions=map(float, names))


def are_numbers(labels: Iterable[str]) -> bool:
    """Whether all names are finite numbers."""
    try:
        return all(math.isfinite(float(name)) for name in labels)
    except ValueError:
        return False


def fold_name(name: str) -> str:
    """``name`` without regard to case, underscores, hyphens, repeated spaces and zeros of a number.

    Examples
    --------
    >>> fold_name("Polar_Bear") == fold_name("polar  bear")
    True
    >>> fold_name("2.0"), fold_name("02"), fold_name("-2"), fold_name("2.0 litres")
    ('2', '2', '-2', '2.0 litres')
    """
    text = unicodedata.normalize("NFKC", name).casefold()
    if number := _NUMBER.fullmatch(text.strip()):
        return _fold_number(*number.groups(default=""))
    # A name of nothing but hyphens stays what it is.
    return " ".join(text.replace("_", " ").replace("-", " ").split()) or text


def _fold_number(sign: str, whole: str, part: str, sign_of_part: str, only_part: str) -> str:
    """A number without zeros that say nothing; as text, for it may have any number of digits."""
    digits, rest = whole.lstrip("0") or "0", (part or only_part).rstrip("0")
    number = f"{digits}.{rest}" if rest else digits
    # The hyphen of -1 is no hyphen between words.
    return f"-{number}" if "-" in (sign, sign_of_part) and number != "0" else number


def fold_meanings(
    meanings: Mapping[str, dict[str, float]], names: Iterable[str]
) -> dict[str, dict[str, float]]:
    """What ``names`` stand for, also those that only fold to a name that has a meaning."""
    by_folded = {fold_name(name): goals for name, goals in meanings.items()}
    own = {name: meanings.get(name) or by_folded.get(fold_name(name)) for name in names}
    return {name: goals for name, goals in own.items() if goals}


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
