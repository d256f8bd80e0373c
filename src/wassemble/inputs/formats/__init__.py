"""Formats of prediction files by the ends of their names."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from wassemble._checks import fail
from wassemble.inputs.formats.array_files import append_npy, append_npz, open_npy, open_npz
from wassemble.inputs.formats.arrow_files import (
    append_arrow,
    append_parquet,
    open_arrow,
    open_parquet,
)
from wassemble.inputs.formats.csv_files import append_csv, open_csv
from wassemble.inputs.formats.json_lines import append_json_lines, open_json_lines
from wassemble.inputs.formats.sources import Source
from wassemble.inputs.predictions.value import Predictions

__all__ = ["ENDS", "Append", "Format", "recognise"]

Append = Callable[[Predictions], None]


class Format(NamedTuple):
    """How one kind of file is read and written."""

    name: str
    open: Callable[..., Source]
    append: Callable[..., AbstractContextManager[Append]]


def _text(name: str, delimiter: str) -> Format:
    return Format(
        name, partial(open_csv, delimiter=delimiter), partial(append_csv, delimiter=delimiter)
    )


_ARROW = Format("Arrow", open_arrow, append_arrow)
_JSON = Format("JSON lines", open_json_lines, append_json_lines)
_FORMATS = {
    ".csv": _text("CSV", ","),
    ".csv.gz": _text("gzipped CSV", ","),
    ".tsv": _text("TSV", "\t"),
    ".tsv.gz": _text("gzipped TSV", "\t"),
    ".parquet": Format("Parquet", open_parquet, append_parquet),
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".ipc": _ARROW,
    ".npz": Format("npz", open_npz, append_npz),
    ".npy": Format("npy", open_npy, append_npy),
    ".jsonl": _JSON,
    ".ndjson": _JSON,
}
ENDS: tuple[str, ...] = tuple(_FORMATS)


def recognise(path: str | os.PathLike[str]) -> tuple[Path, Format, str]:
    """The path, its format, and the name of the file without its end."""
    if not isinstance(path, str | os.PathLike):
        fail(f"`path` must be the path of a file; got {path!r}.")
    path = Path(path)
    name = path.name.lower()
    ends = [end for end in _FORMATS if name.endswith(end) and name != end]
    if not ends:
        fail(
            f"{path.name}: a file of predictions must end in {', '.join(_FORMATS)}; this one"
            " does not."
        )
    return path, _FORMATS[ends[0]], path.name[: -len(ends[0])]
