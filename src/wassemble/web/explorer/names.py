"""What people call labels: a file with a row for each."""

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from wassemble._checks import fail
from wassemble.inputs.formats.sources import blame

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_COLUMNS = ("label", "name")


def read_names(path: Path) -> dict[str, str]:
    r"""Names by label, from a CSV or TSV file with the columns label and name.

    A label without a name keeps its own; a name that several labels have says which label it is.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "names.csv"
    >>> _ = path.write_text("label,name\n281,tabby\n134,crane\n517,crane\n0,\n")
    >>> read_names(path)
    {'281': 'tabby', '134': 'crane (134)', '517': 'crane (517)'}
    """
    with blame(path.name, "a table of names in UTF-8"):
        try:
            names = _read_pairs(path)
        except csv.Error as error:
            fail(f"must be a table; got: {error}.")
    counts = Counter(names.values())
    return {
        label: name if counts[name] == 1 else f"{name} ({label})" for label, name in names.items()
    }


def _read_pairs(path: Path) -> dict[str, str]:
    if path.suffix.lower() not in _DELIMITERS:
        fail("names of labels must be in a CSV or TSV file; got another.")
    names: dict[str, str] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, delimiter=_DELIMITERS[path.suffix.lower()])
        _check_columns(rows.fieldnames or ())
        for row in rows:
            label, name = ((row[column] or "").strip() for column in _COLUMNS)
            if names.get(label, name) != name:
                fail(f"a label must have one name; {label!r} has {names[label]!r} and {name!r}.")
            if name:
                names[label] = name
    return names


def _check_columns(found: Sequence[str]) -> None:
    if not set(_COLUMNS) <= set(found):
        fail(
            f"names of labels must have the columns {' and '.join(_COLUMNS)}; got"
            f" {', '.join(found)[:200] or 'none'}.",
            hint="write label,name into the first line",
        )
