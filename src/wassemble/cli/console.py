"""Talking to people: tables, progress, and what goes to which stream."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from wassemble.inputs import Predictions


def allow_any_text() -> None:
    """Write characters that a terminal cannot show as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def talk(message: str, *, quiet: bool = False) -> None:
    """A line on standard error."""
    if not quiet:
        click.echo(message, err=True)


def print_json(value: Any) -> None:
    """``value`` on standard output, for machines."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table on standard output: drawn for a person, tab-separated for a pipe."""
    if not sys.stdout.isatty():
        for row in (header, *rows):
            click.echo("\t".join(str(cell) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(header):
        drawn.add_column(name, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(str(cell)) for cell in row))  # names are text, not markup
    Console().print(drawn)


@contextmanager
def progress_bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error while there is a terminal to show it; else None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn as Remaining,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        # What goes to a file or a pipe must get there, and not onto the bar's terminal.
        redirect_stdout=sys.stdout.isatty(),
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def csv_printer() -> Callable[[Predictions], None]:
    """A function that prints chunks of predictions as one CSV table on standard output."""
    from wassemble.inputs.formats.layout import free_id_name

    is_first = True

    def show(predictions: Predictions) -> None:
        nonlocal is_first
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if is_first:
            wanted = predictions.origin.id_column
            writer.writerow([free_id_name(predictions.labels, wanted), *predictions.labels])
            is_first = False
        for sample, row in zip(predictions.samples, predictions.scores.tolist(), strict=True):
            writer.writerow([sample, *("" if math.isnan(score) else score for score in row)])
        # Unlike the stream itself, this gets every name through to a terminal of ASCII alone.
        click.echo(text.getvalue(), nl=False)

    return show
