"""`python -m paper without-truth`: consensus without truth, tested with the truth afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from paper.record.command import out_option
from paper.without_truth.sets import CHECKING, NAMES, TASKS
from wassemble._files import write_whole
from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command
from wassemble.errors import fail
from wassemble.labels import enumerate_names


@click.command(cls=Command, short_help="Learn a consensus without truth, and test it.")
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[SET]...")
@click.option(
    "--gold",
    "tries_gold",
    is_flag=True,
    help="Try instead what the truth of a few samples adds, and which ones to ask for.",
)
@click.option(
    "--speed",
    "tries_speed",
    is_flag=True,
    help="Measure instead how long up to 1.8 million votes of 10,000 voters take.",
)
@out_option
@output_options
def without_truth(
    names: tuple[str, ...],
    tries_gold: bool,
    tries_speed: bool,
    out: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Learn a consensus of each SET of votes without its truth, and test it beside rivals.

    Sets whose licence does not allow to ship them are read from the folder that
    $WASSEMBLE_CHECKING_DATA names, and skipped without it. crowd-kit's aggregators and Snorkel's
    label model are tried where they are installed. Sets that are not named keep what --out has of
    them. --gold and --speed write files of their own.

    \b
    python -m paper without-truth adult_content2
    python -m paper without-truth --speed
    """
    from paper.without_truth.page import list_gold, list_rows, list_speed

    out.mkdir(parents=True, exist_ok=True)
    if tries_speed:
        from paper.without_truth.speed import measure_speed

        found: Any = measure_speed()
        _write(out / "without-truth-speed.json", found)
        table = list_speed(found)
    elif tries_gold:
        found = _try_gold(names, out / "without-truth-gold.json", quiet=quiet)
        table = list_gold(found)
    else:
        found = _judge_sets(names or NAMES, out / "without-truth.json", quiet=quiet)
        table = list_rows(found)
    if as_json:
        print_json(found)
        return
    print_table(*table)


def _judge_sets(names: Sequence[str], path: Path, *, quiet: bool) -> dict[str, Any]:
    from paper.without_truth.judge import judge_set
    from paper.without_truth.sets import load_set

    kept, found = _read(path), {}
    for name in dict.fromkeys(names):
        given = load_set(name)
        if given is None:
            talk(f"{name}: skipped, for ${CHECKING} names no folder that has it", quiet=quiet)
            continue
        kept[name] = found[name] = judge_set(name, given)
        _write(path, {name: kept[name] for name in NAMES if name in kept})
        talk(f"{name}: {found[name]['chosen']}", quiet=quiet)
    return found


def _try_gold(names: Sequence[str], path: Path, *, quiet: bool) -> dict[str, Any]:
    from paper.without_truth.gold import SETS, try_gold

    kept, found = _read(path), {}
    for name in names or SETS:
        if name not in TASKS:
            fail(f"--gold must be tried on {enumerate_names(TASKS)}; got {name}.")
        kept[name] = found[name] = try_gold(name)
        _write(path, kept)
        talk(f"{name}: tried", quiet=quiet)
    return found


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _write(path: Path, found: Any) -> None:
    write_whole(path, json.dumps(found, indent=1) + "\n")
