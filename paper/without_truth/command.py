"""`python -m paper without-truth`: consensus without truth, tested with the truth afterwards."""

from __future__ import annotations

from pathlib import Path

import click

from paper.record.command import out_option
from paper.without_truth.sets import CHECKING, NAMES
from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command


@click.command(cls=Command, short_help="Learn a consensus without truth, and test it.")
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[SET]...")
@out_option
@output_options
def without_truth(names: tuple[str, ...], out: Path, as_json: bool, quiet: bool) -> None:
    """Learn a consensus of each SET of votes without its truth, and test it beside rivals.

    Sets whose licence does not allow to ship them are read from the folder that
    $WASSEMBLE_CHECKING_DATA names, and skipped without it. crowd-kit's aggregators are tried where
    it is installed. Sets that are not named keep what --out has of them.

    \b
    python -m paper without-truth adult_content2
    """
    import json

    from paper.without_truth.judge import judge_set
    from paper.without_truth.page import list_rows
    from paper.without_truth.sets import load_set
    from wassemble._files import write_whole

    path = out / "without-truth.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found = {}
    for name in dict.fromkeys(names or NAMES):
        given = load_set(name)
        if given is None:
            talk(f"{name}: skipped, for ${CHECKING} names no folder that has it", quiet=quiet)
            continue
        found[name] = judge_set(name, given)
        kept[name] = found[name]
        ordered = {name: kept[name] for name in NAMES if name in kept}
        out.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(ordered, indent=1) + "\n")
        talk(f"{name}: {found[name]['chosen']}", quiet=quiet)
    if as_json:
        print_json(found)
        return
    print_table(*list_rows(found))
    if found:
        talk(f"wrote {path}", quiet=quiet)
