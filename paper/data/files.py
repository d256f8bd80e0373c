"""Data sets of the repository: found by name, described by a manifest."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from wassemble._checks import fail

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class DataFile:
    """A file of the manifest."""

    file: str
    bytes: int
    sha256: str
    what: str
    origin: str
    licence: str


def data_folder() -> Path:
    """Where data sets are: $WASSEMBLE_DATA, else ``datasets/`` beside this package."""
    given = os.environ.get("WASSEMBLE_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[2] / "datasets"


def find_data(name: str) -> Path:
    """The path of a data file, such as ``voc2007/voc_glove_300d.npy``."""
    path = data_folder() / name
    if not path.is_file():
        fail(
            f"data file {name} must be in {data_folder()}; it is not.",
            hint="it comes with the repository; $WASSEMBLE_DATA names another copy of its"
            " datasets folder",
        )
    return path


def list_data() -> list[DataFile]:
    """Every file that the manifest names, whether it is there or not."""
    manifest = json.loads(find_data(_MANIFEST).read_text(encoding="utf-8"))
    return [DataFile(**entry) for entry in manifest["files"]]


def check_data(file: DataFile) -> bool:
    """Whether a file is there and is the one that the manifest describes."""
    path = data_folder() / file.file
    if not path.is_file() or path.stat().st_size != file.bytes:
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
