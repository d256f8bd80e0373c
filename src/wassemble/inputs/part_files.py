"""`DataSet`: the predictions of one model in a folder of part files."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Unpack

from wassemble._checks import fail
from wassemble.errors import InvalidInputError
from wassemble.inputs.files import open_predictions
from wassemble.inputs.folders import Folder, open_folder
from wassemble.inputs.formats import recognise
from wassemble.inputs.formats.sources import PredictionFile
from wassemble.inputs.predictions.value import Kind, Misfit, Origin, Predictions
from wassemble.inputs.reading import Reading, ReadingFields
from wassemble.labels import LabelSpace, enumerate_names

# Parts whose labels and kind are compared, so that no single strange one decides for all.
_N_COMPARED = 5

# In names of files: each time that Spark or PyArrow writes a folder, it has another.
_WRITE_ID = re.compile(
    r"(^|-)[0-9a-f]{8}(-?)([0-9a-f]{4}\2){3}[0-9a-f]{12}(?=[-_.]|$)", re.IGNORECASE
)


@dataclass(frozen=True)
class PartFile:
    """A file of a data set."""

    file: str  # its name in the folder
    stamp: str  # changes when the file does
    is_sure: bool = True  # no change can leave the stamp as it is


@dataclass(frozen=True)
class PartReader:
    """How the parts of a model are read, wherever that happens."""

    folder: Folder
    model: str
    reading: Reading

    @contextmanager
    def open(self, file: str) -> Iterator[PredictionFile]:
        """An open part; errors name the model."""
        with ExitStack() as stack:
            try:
                path = stack.enter_context(self.folder.fetch(file))
                opened = stack.enter_context(open_predictions(path, self.reading, model=self.model))
            except InvalidInputError as error:
                raise InvalidInputError(f"model {self.model}: {error}") from None
            opened.name = f"model {self.model}: {opened.name}"
            yield opened


class DataSet:
    """A folder of part files; `open_data_set` makes one.

    Attributes
    ----------
    model : str
    labels : LabelSpace
        That most of the first parts have; every other must have the same.
    kind : {"multiclass", "multilabel"}
        Of the same parts.
    kind_is_detected : bool
    is_hard : bool
        Whether it lists labels, and no scores.
    misfit : Misfit or None
        What shows in the first of them that these are no histograms.
    typical : PartFile
        The first part with these labels and this kind.
    origin : Origin
        Where its ids were, and what looked odd.
    parts : dict of str to PartFile
        By their names without the end that says the format, sorted. A UUID in a name is left
        out if names differ without it too: Spark makes another for each write.
    """

    def __init__(self, reader: PartReader) -> None:
        self.reader = reader
        self.model = reader.model
        self.parts = _name_parts(reader.folder)
        if not self.parts:
            fail(f"{reader.folder}: must be a folder of part files; there are none.")
        self._look()

    def _look(self) -> None:
        """Labels and kind: what most of the first parts that can be read and have rows have."""
        filled: dict[PartFile, tuple[LabelSpace, Kind, bool]] = {}
        empty: dict[PartFile, tuple[LabelSpace, Kind, bool]] = {}
        origins: dict[PartFile, Origin] = {}
        misfits: dict[PartFile, Misfit | None] = {}
        hard: dict[PartFile, bool] = {}
        first_error = None
        for part in self.parts.values():
            try:
                with self.reader.open(part.file) as opened:
                    told = opened.labels, opened.kind, opened.kind_is_detected
                    (filled if opened.n_samples else empty)[part] = told
                    misfits[part], hard[part] = opened.misfit, opened.is_hard
                    origins[part] = replace(opened.origin, file=f"{self.reader.folder.name}/")
            except (InvalidInputError, OSError) as error:
                first_error = first_error or error
            n_most = max(Counter(filled.values()).values(), default=0)
            if n_most > _N_COMPARED // 2 or len(filled) == _N_COMPARED:
                break
        seen = filled or empty
        if not seen:
            assert first_error is not None
            raise first_error
        most, _ = Counter(seen.values()).most_common(1)[0]  # the first of them in a tie
        self.labels, self.kind, self.kind_is_detected = most
        self.typical = next(part for part, told in seen.items() if told == most)
        self.origin, self.misfit = origins[self.typical], misfits[self.typical]
        self.is_hard = hard[self.typical]

    def chunks(self, n_rows: int) -> Iterator[Predictions]:
        """Every sample, part after part, at most ``n_rows`` at a time."""
        for part in self.parts.values():
            with self.reader.open(part.file) as opened:
                yield from opened.chunks(n_rows)

    def __repr__(self) -> str:
        return (
            f"DataSet({self.model!r}: {len(self.parts):,} parts, {len(self.labels):,} labels,"
            f" {self.kind})"
        )


def open_data_set(
    place: str | os.PathLike[str],
    reading: Reading = Reading(),
    *,
    model: str | None = None,
    **changes: Unpack[ReadingFields],
) -> DataSet:
    """Predictions of one model in a folder of part files.

    Parameters
    ----------
    place : str or path
        A folder, or a URL that fsspec knows, such as ``s3://bucket/predictions``. Its files
        are the parts, in folders of their own if you like; names that begin with "." or "_"
        are not read. A part is any file of `open_predictions` but ``.npy``.
    reading : Reading
        How each part is read; not ``by_row``.
    model : str, optional
        Name of the model; that of the folder if not given.
    **changes
        Fields of the reading, by name.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from wassemble import write_predictions
    >>> folder = mkdtemp()
    >>> for part in ("1", "2"):
    ...     some = Predictions("m", [f"sample {part}"], ["cat", "dog"], [[0.9, 0.1]])
    ...     write_predictions(f"{folder}/part-{part}.csv", some)
    >>> open_data_set(folder, model="tiny")
    DataSet('tiny': 2 parts, 2 labels, multiclass)
    """
    reading = replace(reading, **changes)
    if reading.by_row:
        fail(
            "`by_row` must go with single files; got a folder of part files.",
            hint="samples of part files are matched by id",
        )
    folder = open_folder(place)
    return DataSet(
        PartReader(folder, folder.name.split(".")[0] if model is None else model, reading)
    )


def common_parts(sets: Iterable[DataSet]) -> list[str]:
    """The names of the parts, which every data set must have."""
    first, *others = sets
    for other in others:
        for has, lacks in ((first, other), (other, first)):
            lonely = [part for part in has.parts if part not in lacks.parts]
            if lonely:
                fail(
                    "every model must have the same parts, by their names; got"
                    f" {enumerate_names(lonely)} of {has.model} and none of {lacks.model}."
                )
    return list(first.parts)


def open_parts(sets: Sequence[DataSet]) -> Iterator[list[PredictionFile]]:
    """The files of each part that can be read, open one part after the other."""
    for part in common_parts(sets):
        with ExitStack() as stack:
            try:
                files = [
                    stack.enter_context(each.reader.open(each.parts[part].file)) for each in sets
                ]
            except (InvalidInputError, OSError):  # told by whoever needs the part
                continue
            yield files


def _name_parts(folder: Folder) -> dict[str, PartFile]:
    """The files of a folder by the names of their parts."""
    parts: dict[str, PartFile] = {}
    for file, about in folder.find().items():
        part = _part_name(file)
        if part in parts:
            fail(f"{folder}: a part must be one file; got {parts[part].file} and {file}.")
        parts[part] = PartFile(file, about.stamp, about.is_sure)
    shorter = {_without_write_id(part): file for part, file in parts.items()}
    return shorter if len(shorter) == len(parts) else parts


def _without_write_id(part: str) -> str:
    path = PurePosixPath(part)
    rest = _WRITE_ID.sub("", path.name).lstrip("-_.")  # hidden names are not read
    return str(path.with_name(rest)) if rest else part


def _part_name(file: str) -> str:
    if file.lower().endswith((".npy", ".labels.txt", ".samples.txt")):
        fail(
            f"{file}: a part must be one file; .npy has its names in others.",
            hint=".npz and .parquet hold them",
        )
    _, _, stem = recognise(file)
    return str(PurePosixPath(file).with_name(stem))
