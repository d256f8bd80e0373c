"""Opening what a view names: shipped examples, files of the folder, and uploads.

Everything opened is kept in memory while there is room; a file that changes is read anew. How
much a file may take is for its process to limit (`workers`).
"""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble.tables import align_samples, common_kind
from wassemble.errors import InvalidInputError
from wassemble.inputs import PredictionFile, Predictions, open_predictions
from wassemble.inputs.files import read_truth
from wassemble.inputs.formats import ENDS
from wassemble.inputs.predictions.describe import describe_predictions
from wassemble.inputs.predictions.truth import check_truth, show_ids
from wassemble.inputs.reading import ReadingFields
from wassemble.web.explorer.cases import Case, Kept, Table
from wassemble.web.explorer.names import read_names
from wassemble.web.explorer.similarity import KERNEL_FILES, Similarity, read_similarity
from wassemble.web.explorer.uploads import PREFIX, Uploads
from wassemble.web.explorer.view import View
from wassemble.web.middleware import check_label_count
from wassemble.web.paths import inside
from wassemble.web.settings import Settings

_MAX_LETTERS = 1000
_Place = tuple[Path, str]  # where a file is, and what it is called


class Library:
    """Tables and kernels of one worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.uploads = Uploads.of(settings)
        # Room is left for who opens the next.
        n_bytes = settings.max_memory * 1_000_000 // 8
        self._tables: Kept[Table] = Kept(8, n_bytes=n_bytes)
        self._cases: Kept[Case] = Kept(8, n_bytes=n_bytes)
        self._similarities: Kept[Similarity] = Kept(4, n_bytes=n_bytes)
        # Examples are few, and read before anybody asks for them.
        self._examples: Kept[tuple[Table, dict[str, Similarity]]] = Kept(100)
        self._example_cases: Kept[Case] = Kept(100)

    def case(self, view: View) -> Case:
        """What a view opens."""
        if view.example:
            return self._example(view)
        if not view.file:
            fail("there must be at least one file of predictions; got none.")
        table = self._table(view)
        if not view.kernel_file or view.kernel not in KERNEL_FILES:
            plain = read_similarity(view.kernel, None)
            return self._cases.get((table.key, view.kernel), lambda: self._make_case(table, plain))
        path, name = self._path(view.kernel_file)
        key = (view.kernel, _stamp(path))

        def read() -> Similarity:
            with _named(path, name):
                n_bytes = path.stat().st_size
                return replace(read_similarity(view.kernel, path), n_bytes=n_bytes)

        similarity = self._similarities.get(key, read)
        return self._cases.get((table.key, *key), lambda: self._make_case(table, similarity))

    def _make_case(self, table: Table, similarity: Similarity) -> Case:
        case = Case(table, similarity)
        check_label_count(len(case.target), self._settings)
        _check_lengths("label", case.target)
        return case

    def _example(self, view: View) -> Case:
        known = {each.name: each for each in self._settings.examples}
        if view.example not in known:
            fail(f"an example must be one of {', '.join(known)}; got {view.example!r}.")
        example = known[view.example]
        name = view.kernel or example.kernels[0]
        if name not in example.kernels:
            names = ", ".join(example.kernels)
            fail(f"the kernel of this example must be one of {names}; got {view.kernel!r}.")
        table, kernels = self._examples.get(example.name, example.load)
        key = (table.key, name)
        return self._example_cases.get(key, lambda: self._make_case(table, kernels[name]))

    def _table(self, view: View) -> Table:
        if len(set(view.file)) < len(view.file):
            fail("each file must be named once.")
        places = [self._path(reference) for reference in view.file]
        truth = self._path(view.truth) if view.truth else None
        names = self._path(view.names) if view.names else self._usual_names
        stamps = [_stamp(place[0]) if place else "" for place in (*places, truth, names)]
        key = "\n".join([*stamps, str(view.normalize), view.kind, view.other])
        return self._tables.get(key, lambda: self._read_table(key, view, truth, names))

    def _read_table(
        self, key: str, view: View, truth: _Place | None, names: _Place | None
    ) -> Table:
        places = [self._path(reference) for reference in view.file]
        models = [self._read_model(*place, view) for place in places]
        kind, _ = common_kind(models, view.kind or None)
        models = align_samples(_renamed(models))
        title = ", ".join(name for _, name in places)
        table = Table(key, title, models, kind, other=view.other)
        if truth:
            with _named(*truth):
                table = _with_truth(table, truth[0])
        if names:
            with _named(*names):
                table = _with_names(table, names[0], may_miss=names == self._usual_names)
        return table

    @property
    def _usual_names(self) -> _Place | None:
        """The file of names that the server was started with."""
        path = self._settings.names
        return None if path is None else (path, path.name)

    def _read_model(self, path: Path, name: str, view: View) -> Predictions:
        how: ReadingFields = {"normalize": view.normalize, "kind": view.kind or None}
        with _named(path, name), open_predictions(path, **how) as file:
            self._check(file)
            own = file.read()
        return own.replace(model=_stem(name)) if file.model == path.name.split(".")[0] else own

    def describe(self, view: View) -> list[dict[str, Any]]:
        """A card for each file of a view: what is in it, what was guessed, or what is wrong."""
        models: list[Predictions | None] = []
        cards: list[dict[str, Any]] = []
        for reference in view.file:
            card: dict[str, Any] = {"reference": reference, "name": reference, "problem": ""}
            try:
                path, card["name"] = self._path(reference)
                models.append(self._read_model(path, card["name"], view))
            except InvalidInputError as error:
                models.append(None)
                card["problem"] = str(error)
            cards.append(card)
        for card, model in zip(cards, models, strict=True):
            if model is not None:
                others = [each for each in models if each is not None and each is not model]
                card.update(describe_predictions(model), **_describe_shared(model, others))
        return cards

    def _check(self, file: PredictionFile) -> None:
        """Refuse what a page could not show, before the scores are read."""
        check_label_count(len(file.labels), self._settings)
        if not file.n_samples:
            fail("there must be at least one sample; got none.")
        _check_lengths("label", file.labels)
        _check_lengths("sample", map(str, file.samples.tolist()))

    def _path(self, reference: str) -> _Place:
        """Where a file is, and what it is called."""
        if reference.startswith(PREFIX):
            upload = self.uploads.find(reference)
            return upload.path, upload.name
        path = inside(self._settings.folder, reference)
        if not path.is_file():
            fail(f"{reference}: there must be such a file in the served folder; there is none.")
        if path.suffix.lower() == ".npy":  # what is read beside it must be inside as well
            beside = path.relative_to(self._settings.folder)
            for end in (".labels.txt", ".samples.txt"):
                inside(self._settings.folder, str(beside.with_suffix(end)))
        return path, reference


def _describe_shared(model: Predictions, others: list[Predictions]) -> dict[str, int | None]:
    """Samples and labels that all the others have too; None without others."""
    samples, labels = set(map(str, model.samples.tolist())), set(model.labels)
    for other in others:
        samples &= set(map(str, other.samples.tolist()))
        labels &= set(other.labels)
    shared: dict[str, int | None] = {
        "n_shared_samples": len(samples),
        "n_shared_labels": len(labels),
    }
    return shared if others else dict.fromkeys(shared)


def _with_truth(table: Table, path: Path) -> Table:
    """The same samples with their true labels, and texts where the file has a column of them."""
    known = read_truth(path)
    check_truth(known)
    own = set(table.samples)
    truth = {
        str(sample): tuple(known.labels[i] for i in np.flatnonzero(np.nan_to_num(row) > 0).tolist())
        for sample, row in zip(known.samples.tolist(), known.scores, strict=True)
        if str(sample) in own
    }
    if not truth:
        fail(
            "the truth must be known for some sample of the models; got none of"
            f" {show_ids(table.samples)}, but {show_ids(known.samples.tolist())}."
        )
    texts = _read_texts(path, known.origin.id_column)
    return replace(table, truth=truth, texts={id_: texts[id_] for id_ in texts if id_ in own})


def _with_names(table: Table, path: Path, *, may_miss: bool) -> Table:
    """The same with what people call its labels; ``may_miss`` where the file is for others too."""
    names = read_names(path)
    _check_lengths("name", names.values())
    labels = {label for model in table.models for label in model.labels}
    if not may_miss and labels.isdisjoint(names):
        fail(
            "names must be of some label of the models; got none of"
            f" {show_ids(sorted(labels))}, but {show_ids(list(names))}."
        )
    return replace(table, names=names)


def _read_texts(path: Path, id_column: str | None) -> dict[str, str]:
    """The column "text" of a CSV or TSV file, by sample id."""
    if path.suffix.lower() not in (".csv", ".tsv") or id_column is None:
        return {}
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.DictReader(file, delimiter=delimiter)
        if not {"text", id_column} <= set(rows.fieldnames or ()):
            return {}
        return {row[id_column]: row["text"] or "" for row in rows}


def _check_lengths(what: str, names: Iterable[str]) -> None:
    """Refuse names that fit into no link, and whose spelling takes seconds to compare."""
    longest = max(map(len, names), default=0)
    if longest > _MAX_LETTERS:
        fail(f"a {what} must have at most {_MAX_LETTERS:,} letters; got {longest:,}.")


@contextmanager
def _named(path: Path, name: str) -> Iterator[None]:
    """Errors inside name the file as its owner does."""
    try:
        yield
    except InvalidInputError as error:
        words = str(error).replace(str(path), name).replace(path.name, name)
        words = words.replace(repr(path.name.split(".")[0]), repr(_stem(name)))
        raise InvalidInputError(words if words.startswith(name) else f"{name}: {words}") from error


def _renamed(models: list[Predictions]) -> list[Predictions]:
    """Models of different names: a number goes behind a name that was there before."""
    seen: dict[str, int] = {}
    renamed = []
    for model in models:
        seen[model.model] = seen.get(model.model, 0) + 1
        count = seen[model.model]
        renamed.append(model if count == 1 else model.replace(model=f"{model.model} ({count})"))
    return renamed


def _stem(name: str) -> str:
    base = name.rsplit("/", 1)[-1]
    end = max((end for end in ENDS if base.lower().endswith(end)), key=len, default="")
    return base[: len(base) - len(end)] or base


def _stamp(path: Path) -> str:
    about = path.stat()
    return f"{path} {about.st_mtime_ns} {about.st_size}"
