"""Whether models speak of the same samples; if they do not, what keeps their ids apart.

Nothing is matched here: ids match if they are equal. What would make them equal is only
said, so that whoever made the files can put it right.
"""

import difflib
import heapq
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from wassemble._checks import fail, option
from wassemble.inputs.predictions.value import have_numbers
from wassemble.labels import enumerate_names

# Share of the smaller side below which an overlap is more likely a mistake than meant.
_SMALL = 0.5
# Share of the unmatched ids from which on twins among them are more likely a mistake than meant.
_MANY_TWINS = 0.2
# Ids in which a reason is looked for, and pairs that are compared letter by letter.
_N_SEARCHED = 100_000
_N_COMPARED = 200
_N_SHOWN = 3
# Ids of each part that are compared with those of all others.
_N_PICKED = 256

# What may keep ids apart, and an id without it.
_DIFFERENCES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("by spaces around them", str.strip),
    ("in case", str.casefold),
    ("in Unicode form", lambda text: unicodedata.normalize("NFKC", text)),
    ("by a decimal point", lambda text: re.sub(r"^(-?\d+)\.0*$", r"\1", text)),
    ("by zeros in front", lambda text: re.sub(r"(?<!\d)0+(?=\d)", "", text)),
    ("by the end of a file name", lambda text: re.sub(r"\.[A-Za-z]\w{0,4}$", "", text)),
    ("by the folder in front", lambda text: re.split(r"[/\\]", text)[-1]),
)


class Side(NamedTuple):
    """Some ids, and how a message calls them."""

    name: str
    ids: Sequence[str]


class _Seen(NamedTuple):
    """What is kept of a model when its file is closed."""

    model: str
    samples: np.ndarray
    labels: Sequence[str]


class SharedSamples:
    """How many samples each group of models has in common, and no other model has.

    ``counts`` is the number of samples by the models that have them, a bit for each.
    """

    def __init__(self, models: Sequence[str], counts: Mapping[int, int] | None = None) -> None:
        self.models = list(models)
        self.counts: Counter[int] = Counter(counts or {})

    def add(self, counts: Mapping[int, int]) -> None:
        """Count samples of another part."""
        self.counts.update(counts)

    def groups(self) -> list[int]:
        """Models that share samples, directly or through others, as bits; those without: none."""
        groups: list[int] = []
        for mask in self.counts:
            touched = [group for group in groups if group & mask]
            merged = mask
            for group in touched:
                merged |= group
            groups = [group for group in groups if not group & mask] + [merged]
        return sorted(groups, key=lambda group: group & -group)

    def share(self, model: int) -> tuple[int, int]:
        """Samples that a model shares with any other, of how many it could."""
        bit = 1 << model
        own = sum(n for mask, n in self.counts.items() if mask & bit)
        others = sum(n for mask, n in self.counts.items() if mask & ~bit)
        shared = sum(n for mask, n in self.counts.items() if mask & bit and mask & ~bit)
        return shared, min(own, others)

    def warnings(self, look_at: Callable[[int], str | None] = lambda model: None) -> list[str]:
        """A sentence for each model that shares few of its samples; ``look_at`` says why."""
        sentences = []
        for model, name in enumerate(self.models):
            shared, possible = self.share(model)
            if shared >= _SMALL * possible:
                continue
            why = look_at(model)
            sentences.append(
                f"{name!r} shares {shared:,} of {possible:,} samples with the other models; the"
                f" rest was fused without them{'' if why is None else '. ' + why}"
            )
            if len(self.models) == 2:  # the other one would say the same
                break
        return sentences


def count_shared(models: Sequence[Any]) -> SharedSamples:
    """Who has which samples; ``models`` have a name, ``model``, and ``samples``."""
    names = [each.model for each in models]
    first = models[0].samples
    if all(each.samples is first or np.array_equal(each.samples, first) for each in models):
        # Nothing is made of the ids: there may be many.
        return SharedSamples(names, {(1 << len(models)) - 1: len(first)} if len(first) else {})
    masks: dict[Any, int] = {}
    are_numbers = have_numbers(models)
    for place, each in enumerate(models):
        for sample in each.samples.tolist() if are_numbers else _texts(each.samples):
            masks[sample] = masks.get(sample, 0) | 1 << place
    return SharedSamples(names, Counter(masks.values()))


def check_samples(models: Sequence[Any], *, allow_disjoint: bool | None = False) -> list[str]:
    """What there is to say of models that share few samples; that they share none is an error.

    ``models`` are predictions, open files, or anything with ``model``, ``samples`` and
    ``labels``; ``allow_disjoint`` is None if nobody can say so.
    """
    if allow_disjoint:
        return []
    shared = count_shared(models)
    groups = shared.groups()
    if len(groups) > 1:
        _refuse_disjoint(models, groups, allow_disjoint)
    few = shared.warnings(lambda model: _compare(*_unmatched(models, model)))
    return few or _tell_twins(models, shared)


def _tell_twins(models: Sequence[Any], shared: SharedSamples) -> list[str]:
    """A sentence for each model whose unmatched ids are others' unmatched ids but for a detail."""
    sentences: list[str] = []
    for place, each in enumerate(models):
        bit = 1 << place
        if not shared.counts[bit] or all(mask & bit for mask in shared.counts):
            continue
        mine, others = _unmatched(models, place)
        possible = min(len(mine.ids), len(others.ids), _N_SEARCHED)
        for words, without in (*_DIFFERENCES, ("in several ways", _plain)):
            n_twins = _count_twins(mine.ids, others.ids, without)
            if n_twins < max(1, _MANY_TWINS * possible):
                continue
            shown = "; ".join(f"{a!r} and {b!r}" for a, b in _pairs(mine.ids, others.ids, without))
            sentences.append(
                f"{n_twins:,} samples of {each.model!r} look like samples of the other models, and"
                f" were fused without them. Their ids differ {words}: {shown}. Write them the same"
                f" way in all files; {_allow()}"
            )
            break
        if sentences and len(models) == 2:  # the other one would say the same
            break
    return sentences


def _count_twins(ones: Sequence[str], others: Sequence[str], without: Callable[[str], str]) -> int:
    """Ids that are like one id of the other side, and like no second one of either."""
    mine = Counter(without(text) for text in islice(ones, _N_SEARCHED))
    theirs = Counter(without(text) for text in islice(others, _N_SEARCHED))
    return sum(count == 1 and theirs[text] == 1 for text, count in mine.items())


def pick_ids(models: Sequence[Any]) -> list[str]:
    """Some of the samples' ids, the same ones wherever they occur: all if there are few."""
    first, *others = (each.samples for each in models)
    differing = [ids for ids in others if ids is not first and not np.array_equal(ids, first)]
    texts = {str(sample) for ids in (first, *differing) for sample in ids.tolist()}
    return heapq.nsmallest(_N_PICKED, texts, key=lambda text: zlib.crc32(text.encode()))


def tell_repeated(parts: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence if samples are in several parts; ``parts`` have some ids each, from `pick_ids`."""
    first_part: dict[str, str] = {}
    repeated: dict[str, tuple[str, str]] = {}
    for part, ids in parts.items():
        for sample in ids:
            if first_part.setdefault(sample, part) != part:
                repeated.setdefault(sample, (first_part[sample], part))
    if not repeated:
        return []
    sample, (one, other) = next(iter(repeated.items()))
    return [
        f"samples are in several parts, and so they are in the consensus: {sample!r}, for example,"
        f" is in {one} and in {other}; ids that count the rows of each part must be made unique"
    ]


def check_part_samples(
    parts: Iterable[Sequence[Any]], *, allow_disjoint: bool = False, n_parts: int = 5
) -> None:
    """Refuse models that have no sample in common in any of the first parts.

    ``parts`` are the models' part files, open one part after the other; no more are opened
    than it takes to find samples in common.
    """
    shared: SharedSamples | None = None
    if allow_disjoint:
        return
    for models in islice(parts, n_parts):
        if shared is None:
            shared = SharedSamples([each.model for each in models])
        shared.add(count_shared(models).counts)
        last = [_Seen(each.model, each.samples, each.labels) for each in models]
        if len(shared.groups()) == 1:
            return
    if shared is not None and len(groups := shared.groups()) > 1:
        _refuse_disjoint(last, groups, allow_disjoint, ", in parts of the same name")


def check_truth_samples(truth: Iterable[Any], models: Sequence[Any]) -> list[str]:
    """What there is to say of a truth that knows few of the models' samples; none is an error."""
    known = Side("the truth", [str(sample) for sample in truth])
    theirs = dict.fromkeys(sample for each in models for sample in _texts(each.samples))
    said = Side("the models", list(theirs))
    n_both = sum(sample in theirs for sample in known.ids)
    if not (known.ids and theirs):  # told by whoever needs some
        return []
    if n_both == 0:
        fail(
            "the truth must know some sample of the models; it knows none."
            f" {_compare(said, known) or _examples(said, known)}.",
            hint=f"ids must be the same, letter by letter; {option('id_column')} says which column"
            " holds them",
        )
    possible = min(len(known.ids), len(said.ids))
    if n_both >= _SMALL * possible:
        return []
    lonely = Side("the models", [s for s in said.ids if s not in set(known.ids)])
    unknown = Side("the truth", [s for s in known.ids if s not in theirs])
    why = _compare(lonely, unknown)
    return [
        f"the truth knows {n_both:,} of {possible:,} samples; the rest counts for nothing"
        + ("" if why is None else f". {why}")
    ]


def _refuse_disjoint(
    models: Sequence[Any], groups: Sequence[int], allow_disjoint: bool | None, where: str = ""
) -> None:
    apart = [[each for i, each in enumerate(models) if g >> i & 1] for g in groups[:2]]
    (one, *_), (other, *_) = apart
    names = [enumerate_names([each.model for each in some], at_most=3) for some in apart]
    _refuse_transposed(one, other)
    sides = Side(one.model, _texts(one.samples)), Side(other.model, _texts(other.samples))
    why = _compare(*sides) or _examples(*sides)
    hint = (
        f"write the ids the same way in all files, or name their column with {option('id_column')}"
    )
    counted = [np.array_equal(each.samples, np.arange(len(each.samples))) for each in (one, other)]
    if any(counted) and len(one.samples) == len(other.samples):
        hint += f"; if the rows are in the same order, {option('by_row', True)}"
    fail(
        f"models must have samples in common{where}; got none of {names[0]} and {names[1]}. {why}.",
        hint=hint if allow_disjoint is None else f"{hint}; {_allow()}",
    )


def common_row_ids(models: Sequence[Any]) -> np.ndarray:
    """Sample ids of the rows of all models: those that some have, else counted from 0.

    ``models`` are predictions or open files. Different numbers of rows are refused, and so
    are ids of two models that differ.
    """
    first, *others = models
    for other in others:
        if len(other.samples) != len(first.samples):
            fail(
                "models whose rows are matched by their order must have the same number of rows;"
                f" got {len(first.samples):,} of {first.model!r} and {len(other.samples):,} of"
                f" {other.model!r}."
            )
    named = [model for model in models if model.origin.has_ids]
    if not named:
        return np.arange(len(first.samples))
    for other in named[1:]:
        ones, theirs = named[0].samples.astype(str), other.samples.astype(str)
        wrong = np.flatnonzero(ones != theirs)
        if wrong.size:
            row = int(wrong[0])
            one, other_id = str(ones[row]), str(theirs[row])
            fail(
                "rows that are matched by their order must have the same ids, if they have any;"
                f" got {one!r} of {named[0].model!r} and {other_id!r} of {other.model!r}"
                f" at row {row}, counted from 0.",
                hint=f"leave out {option('by_row', True)} to match them by id",
            )
    ids: np.ndarray = named[0].samples
    return ids


def refuse_transposed(models: Sequence[Any]) -> None:
    """Refuse tables whose rows are called like another model's labels."""
    for place, one in enumerate(models):
        for other in models[:place]:
            _refuse_transposed(other, one)


def _refuse_transposed(one: Any, other: Any) -> None:
    """Refuse a table whose rows are called like another model's labels."""
    turned = [
        (table, reference)
        for table, reference in ((one, other), (other, one))
        if _has_labels_as_rows(table, reference)
    ]
    if not turned:
        return
    table, reference = turned[0]
    which = repr(table.model) if len(turned) == 1 else f"{one.model!r} or {other.model!r}"
    fail(
        "tables must have a row for each sample and a column for each label;"
        f" {which} looks transposed: rows of {table.model!r} and columns of"
        f" {reference.model!r} have the same names, such as"
        f" {enumerate_names(_texts(table.samples)[:_N_SHOWN])}.",
        hint="exchange rows and columns; `frame.set_index(...).T` does so in pandas",
    )


def _has_labels_as_rows(table: Any, reference: Any) -> bool:
    labels = reference.labels
    ids = set(_texts(table.samples))
    if not set(labels).isdisjoint(table.labels):  # ids and labels may both be counted
        return False
    return len(labels) > 1 and sum(label in ids for label in labels) > len(labels) / 2


def _unmatched(models: Sequence[Any], model: int) -> tuple[Side, Side]:
    """Ids that a model has alone, and those that only others have."""
    own = _texts(models[model].samples)
    others = dict.fromkeys(
        sample for i, each in enumerate(models) if i != model for sample in _texts(each.samples)
    )
    mine = set(own)
    return (
        Side(models[model].model, [sample for sample in own if sample not in others]),
        Side("the others", [sample for sample in others if sample not in mine]),
    )


def _compare(one: Side, other: Side) -> str | None:
    """The nearest ids of two sides that have none in common, and what keeps them apart."""
    for words, without in (*_DIFFERENCES, ("in several ways", _plain)):
        pairs = _pairs(one.ids, other.ids, without)
        if pairs:
            shown = "; ".join(f"{a!r} and {b!r}" for a, b in pairs)
            return f"Ids of {one.name} and {other.name} differ {words}: {shown}"
    near = _nearest(one.ids, other.ids)
    if near is None:
        return None
    return f"The nearest ids of {one.name} and {other.name} are {near[0]!r} and {near[1]!r}"


def _pairs(
    ones: Sequence[str], others: Sequence[str], without: Callable[[str], str]
) -> list[tuple[str, str]]:
    by_plain = {without(text): text for text in islice(others, _N_SEARCHED)}
    both = ((text, by_plain.get(without(text))) for text in islice(ones, _N_SEARCHED))
    return [
        (text, found)
        for text, found in islice((pair for pair in both if pair[1] is not None), _N_SHOWN)
        if found is not None
    ]


def _nearest(ones: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    for text in ones[:_N_SHOWN]:
        near = difflib.get_close_matches(text, others[:_N_COMPARED], n=1, cutoff=0.7)
        if near:
            return text, near[0]
    return None


def _plain(text: str) -> str:
    for _, without in reversed(_DIFFERENCES):
        text = without(text)
    return text


def _examples(one: Side, other: Side) -> str:
    return (
        f"Ids of {one.name} are such as {enumerate_names(one.ids[:_N_SHOWN])}, those of"
        f" {other.name} such as {enumerate_names(other.ids[:_N_SHOWN])}"
    )


def _texts(samples: Any) -> list[str]:
    return [str(sample) for sample in samples.tolist()]


def _allow() -> str:
    return f"if they are meant to differ, {option('allow_disjoint', True)}"
