"""`python -m paper flusight`: three seasons of forecasts, fused week by week."""

from __future__ import annotations

from pathlib import Path

import click

from paper.record.command import out_option
from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command


@click.command(cls=Command, short_help="Fuse forecasts of influenza week by week, and test them.")
@out_option
@output_options
def flusight(out: Path, as_json: bool, quiet: bool) -> None:
    """Fuse each week's forecasts by what earlier weeks taught, beside the hub's own ensemble.

    \b
    python -m paper flusight --out reports
    """
    import json

    from paper.flusight.forecasts import load_forecasts
    from paper.flusight.page import TITLES, list_rows
    from paper.flusight.season import RULES, judge_forecasts
    from wassemble._files import write_whole

    found = {sort: judge_forecasts(sort, load_forecasts(sort)) for sort in RULES}
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "flusight.json", json.dumps(found, indent=1) + "\n")
    if as_json:
        print_json(found)
        return
    for sort, each in found.items():
        talk(TITLES[sort], quiet=quiet)
        print_table(*list_rows(each))
    talk(f"wrote {out / 'flusight.json'}", quiet=quiet)
