"""`python -m paper data`: which data sets are there."""

from __future__ import annotations

import click

from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command


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
    print_table(
        ["file", "kB", "there", "licence", "what"],
        [
            [
                each.file,
                f"{each.bytes / 1000:,.0f}",
                "yes" if whole else "NO",
                each.licence,
                each.what,
            ]
            for each, whole in found
        ],
    )
    talk(f"folder: {data_folder()}", quiet=quiet)
