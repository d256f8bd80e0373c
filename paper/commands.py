"""The commands of `python -m paper`; those that need more than a screen are in their folders."""

from __future__ import annotations

from typing import Any

import click

from paper.captioners.command import train_captioners
from paper.captioning.command import generate, references
from paper.evidence.command import evidence, heads
from paper.flusight.command import flusight
from paper.record.command import reproduce
from paper.without_truth.command import without_truth
from wassemble.cli.command import run
from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command
from wassemble.cli.serve import serve as library_serve, start


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def paper() -> None:
    """Run the paper's experiments on the data sets of this repository.

    \b
    python -m paper reproduce list
    python -m paper reproduce attributes languages --out reports
    """


@click.group(short_help="List the data sets of the repository.")
def data() -> None:
    """List the data sets that experiments use.

    \b
    python -m paper data list
    """


@data.command("list", cls=Command, short_help="List the data files.")
@output_options
def list_files(as_json: bool, quiet: bool) -> None:
    """List every data file with its size and licence, and whether it is there and intact.

    \b
    python -m paper data list
    """
    from dataclasses import asdict

    from paper.data.files import check_data, data_folder, list_data

    found = [(each, check_data(each)) for each in list_data()]
    if as_json:
        print_json([asdict(each) | {"is_whole": whole} for each, whole in found])
        return
    rows = [
        [each.file, f"{each.bytes / 1000:,.0f}", "yes" if whole else "NO", each.licence, each.what]
        for each, whole in found
    ]
    print_table(["file", "kB", "there", "licence", "what"], rows)
    talk(f"folder: {data_folder()}", quiet=quiet)


@click.command(
    cls=Command, params=library_serve.params, short_help="Explore more examples in the browser."
)
def serve(**options: Any) -> None:
    """Do what `wassemble serve` does, with more examples: words, CIFAR-100, COCO and VOC.

    \b
    python -m paper serve --open
    """
    from paper.explorer import EXAMPLES
    from wassemble.web.explorer.examples import SHIPPED

    first, *others = SHIPPED
    start(examples=(first, *EXAMPLES, *others), **options)


_experiments = (reproduce, evidence, heads, without_truth, flusight)
for _command in (*_experiments, data, train_captioners, generate, references, serve):
    paper.add_command(_command)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; an exit code."""
    return run(arguments, paper, program="python -m paper")
