"""Where labels lie on a line."""

import math
from os import PathLike
from pathlib import Path

from wassemble._checks import fail
from wassemble.inputs.words.text_files import read_fields
from wassemble.labels import LabelSpace, read_name


def read_positions(path: str | PathLike[str]) -> LabelSpace:
    r"""The labels in a text file and their positions, from the first on the line to the last.

    Parameters
    ----------
    path : str or path
        A label and its position on each line, parted as in `read_edges`; a first line of titles,
        label and position, is passed over.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "grades.csv"
    ...     _ = path.write_text("label,position\nhigh,10\nlow,0\nmiddle,4\n")
    ...     labels = read_positions(path)
    >>> labels.names, labels.positions
    (('low', 'middle', 'high'), (0.0, 4.0, 10.0))
    """
    path = Path(path)
    positions: dict[str, float] = {}
    for number, fields in read_fields(path):
        if not positions and [field.casefold() for field in fields] == ["label", "position"]:
            continue
        name, position = _read_pair(fields, f"{path}, line {number}")
        if name in positions or position in positions.values():
            fail(
                f"{path}, line {number}: labels and positions must differ; got {name!r},"
                f" {position:g}."
            )
        positions[name] = position
    if not positions:
        fail(f"{path}: must hold a label and its position in each line; got none.")
    names = sorted(positions, key=lambda name: positions[name])
    return LabelSpace(names, positions=[positions[name] for name in names])


def _read_pair(fields: list[str], where: str) -> tuple[str, float]:
    try:
        label, text = fields
        position = float(text)
    except ValueError:
        position = math.nan
    if not math.isfinite(position):
        fail(f"{where}: must hold a label and its position, a number; got {','.join(fields)!r}.")
    return read_name(label), position
