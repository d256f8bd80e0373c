"""What an experiment found: tables, plots and claims, in words and in JSON.

What the paper found stands in ``expected/``, with the place that each figure was read at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from itertools import count
from typing import Any, TypeVar

Progress = Callable[[int, int], None] | None
"""What an experiment tells while it runs: called as ``progress(n_done, n_all)``."""

_T = TypeVar("_T")


def follow(items: Sequence[_T], progress: Progress) -> Iterator[_T]:
    """Each item; when the next is asked for, ``progress`` is told that it is done."""
    tick = ticker(progress, len(items))
    for item in items:
        yield item
        tick()


def ticker(progress: Progress, n_all: int) -> Callable[[], None]:
    """What is to be called after each of ``n_all`` steps."""
    n_done = count(1)

    def tick() -> None:
        if progress is not None:
            progress(next(n_done), n_all)

    return tick


def fill(text: str, config: Any, **more: Any) -> str:
    """A text with the fields of an experiment's config, and more, in their places."""
    return text.format(**vars(config) | more)


@dataclass(frozen=True)
class Figure:
    """A number with its 95 % bootstrap interval, or range; a gain is shown with its sign."""

    value: float
    low: float
    high: float
    is_gain: bool = False

    def words(self, digits: int = 3) -> str:
        """The number and its interval.

        Examples
        --------
        >>> Figure(0.01, -0.002, 0.022, is_gain=True).words()
        '+0.010 [-0.002, +0.022]'
        """
        style = f"{'+' if self.is_gain else ''}.{digits}f"
        return f"{self.value:{style}} [{self.low:{style}}, {self.high:{style}}]"


@dataclass(frozen=True)
class Table:
    """Rows of cells, the first column a name.

    A cell is a text, a number, a `Figure`, or None for nothing to say.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    digits: int | Sequence[int] = 3  # behind the point, for all columns or for each
    note: str = ""  # below the table: how to read it, and where a gain comes from

    @classmethod
    def of(
        cls,
        title: str,
        rows: Iterable[Mapping[str, Any]],
        digits: int | Mapping[str, int] = 3,
        note: str = "",
    ) -> Table:
        """A table of rows that name their cells; digits may differ from 3 by column.

        Examples
        --------
        >>> Table.of("Accuracy", [{"rule": "mean", "test": 0.8}], {"test": 1}).columns
        ['rule', 'test']
        """
        named = list(rows)
        columns = list(named[0])
        each = digits if isinstance(digits, int) else [digits.get(name, 3) for name in columns]
        return cls(title, columns, [[row[name] for name in columns] for row in named], each, note)


@dataclass(frozen=True)
class Plot:
    """Curves over a common axis, or bars by name."""

    name: str  # of its file
    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Sequence[tuple[Any, float]]]  # bars where x is a word
    log_x: bool = False


@dataclass(frozen=True)
class Claim:
    """A statement, of the paper or ours, and whether it held on our data; see `verdicts`."""

    statement: str
    source: str
    held: bool | None  # None where our data cannot tell
    found: str
    power: str = ""  # the smallest effect that our data would have shown, or that it is exact


@dataclass(frozen=True)
class Findings:
    """Everything that an experiment found."""

    text: str  # what was done, on which data, what was tuned where; Markdown
    tables: Sequence[Table]
    plots: Sequence[Plot] = ()
    claims: Sequence[Claim] = ()
    verdict: str = ""  # one sentence: whether the paper's claims hold here, and why
    difference: str = ""  # why our figures are not the paper's
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class PaperFigures:
    """What the paper reports for one experiment."""

    source: str  # table or section
    lines: str  # of the paper's LaTeX source
    figures: dict[str, dict[str, Any]]  # by row, then by column

    def get(self, row: str, column: str) -> float | None:
        """A figure, or None where the paper has none."""
        found = self.figures.get(row, {}).get(column)
        return None if found is None else float(found)

    def gain(self, row: str, over: str, column: str) -> float | None:
        """How much better a row is than another, or None where the paper does not say."""
        mine, theirs = self.get(row, column), self.get(over, column)
        return None if mine is None or theirs is None else mine - theirs


def paper_figures(name: str) -> PaperFigures:
    """The paper's figures for an experiment, from ``expected/NAME.json``."""
    path = files("paper.record") / "expected" / f"{name}.json"
    return PaperFigures(**json.loads(path.read_text(encoding="utf-8")))


_VERDICTS = {True: "held", False: "**not held**", None: "cannot tell"}


def to_markdown(record: Mapping[str, Any], *, level: int = 1, folder: str = "") -> str:
    """A record as a page, or as a chapter of one whose plots are in ``folder``."""
    findings = record["findings"]
    mark = "#" * level
    parts = [f"{mark} {record['title']}"]
    # Records from before there were verdicts and powers have none.
    if findings.get("verdict"):
        parts.append(f"**{findings['verdict']}**")
    parts.append(f"*{record['paper']}.* {findings['text'].strip()}")
    for each in findings["tables"]:
        if each["title"]:
            parts.append(f"**{each['title']}**")
        parts.append(table_of(each))
        if each["note"]:
            parts.append(each["note"].strip())
    parts += [
        f"![{each['title']}]({folder}{plot_file(record['name'], each['name'])})"
        for each in findings["plots"]
    ]
    if findings["claims"]:
        rows = [
            [c["statement"], c["source"], _VERDICTS[c["held"]], c["found"], c.get("power", "")]
            for c in findings["claims"]
        ]
        # Not all are the paper's: "where" says which are ours.
        header = ["claim", "where", "on our data", "what we saw", "could have seen"]
        parts.append(markdown_table(header, rows, range(len(header))))
    if findings["difference"]:
        parts.append(f"Why our figures are not the paper's: {findings['difference'].strip()}")
    parts.append(f"Made by `{record['command']}` in {record['seconds']:.0f} s{_made_with(record)}.")
    return "\n\n".join(parts) + "\n"


def _made_with(record: Mapping[str, Any]) -> str:
    """The commit, the date and the arithmetic of a record, in words."""
    found = record.get("made_with")
    if found is None:  # records from before there was any
        return ""
    sweeps = f"native ({found['native']})" if found["native"] else "NumPy's"
    return f", at commit {found['commit']} on {found['date']}, with {sweeps} sweeps"


def plot_file(experiment: str, plot: str) -> str:
    """Name of the file of a plot, beside the record."""
    return f"{experiment}-{plot}.svg"


def markdown_table(header: list[str], rows: list[list[str]], texts: Collection[int] = (0,)) -> str:
    """Markdown table with aligned columns: ``texts`` to the left, the rest to the right."""
    # A bar inside a cell would end it.
    cells = [[cell.replace("|", r"\|") for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row: list[str]) -> str:
        padded = [
            cell.ljust(width) if place in texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = [
        "-" * (width + 2) if place in texts else "-" * (width + 1) + ":"
        for place, width in enumerate(widths)
    ]
    first, *others = (line(row) for row in cells)
    return "\n".join([first, f"|{'|'.join(rule)}|", *others])


def table_of(table: Mapping[str, Any]) -> str:
    """A table of a record."""
    digits, columns = table["digits"], list(table["columns"])
    each = [digits] * len(columns) if isinstance(digits, int) else list(digits)
    rows = [
        [_cell(cell, behind) for cell, behind in zip(row, each, strict=True)]
        for row in table["rows"]
    ]
    texts = {
        place
        for place, column in enumerate(zip(*table["rows"], strict=True))
        if any(isinstance(cell, str) for cell in column)
    }
    return markdown_table(columns, rows, texts | {0})


def _cell(cell: Any, digits: int) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Mapping):
        return Figure(**cell).words(digits)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.{digits}f}"
