"""Where labels lie on a line."""

import math
from os import PathLike
from pathlib import Path

from wassemble._checks import fail
from wassemble.inputs.words.text_files import read_fields
from wassemble.labels import read_name


def read_points(path: str | PathLike[str]) -> dict[str, float]:
    r"""The point of each label in a text file, from the first label on the line to the last.

    Parameters
    ----------
    path : str or path
        A label and its point on each line, parted as in `read_edges`; a first line of titles,
        label and point, is passed over.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "grades.csv"
    ...     _ = path.write_text("label,point\nhigh,10\nlow,0\nmiddle,4\n")
    ...     read_points(path)
    {'low': 0.0, 'middle': 4.0, 'high': 10.0}
    """
    path = Path(path)
    points: dict[str, float] = {}
    for number, fields in read_fields(path):
        if not points and [field.casefold() for field in fields] == ["label", "point"]:
            continue
        name, point = _read_pair(fields, f"{path}, line {number}")
        if name in points or point in points.values():
            fail(f"{path}, line {number}: labels and points must differ; got {name!r}, {point:g}.")
        points[name] = point
    if not points:
        fail(f"{path}: must hold a label and its point in each line; got none.")
    return dict(sorted(points.items(), key=lambda pair: pair[1]))


def _read_pair(fields: list[str], where: str) -> tuple[str, float]:
    try:
        label, text = fields
        point = float(text)
    except ValueError:
        point = math.nan
    if not math.isfinite(point):
        fail(f"{where}: must hold a label and its point, a number; got {','.join(fields)!r}.")
    return read_name(label), point
