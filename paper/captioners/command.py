"""`python -m paper train-captioners` and `score-captioners`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paper.record.command import out_folder, out_option
from wassemble._extras import load_extra
from wassemble.cli.console import print_json, print_table, progress_bar, talk
from wassemble.cli.options import output_options
from wassemble.cli.places import Command

if TYPE_CHECKING:
    from paper.captioners.training import Epoch


@click.command(
    cls=Command, name="train-captioners", short_help="Train captioners on the shipped pictures."
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@out_folder(default="captioners")
@output_options
def train_captioners(names: tuple[str, ...], out: Path, as_json: bool, quiet: bool) -> None:
    """Train captioners by NAME, all if none is given, and write a file for each into --out.

    A captioner whose file is there is not trained again; an interrupted training is resumed
    after its last complete epoch. Each takes 4 to 40 minutes on two cores.

    \b
    python -m paper train-captioners cross-entropy self-critical
    """
    load_extra("torch", "captions", purpose="training captioners")
    from paper.captioners.recipes import RECIPES
    from paper.captioners.training import load_training_data, train_captioner
    from wassemble.errors import WassembleError, fail

    unknown = [name for name in names if name not in RECIPES]
    if unknown:
        fail(f"a captioner must be one of {', '.join(RECIPES)}; got {unknown[0]!r}.")
    records = {}
    for name in names or RECIPES:

        def tell(epoch: Epoch, name: str = name) -> None:
            talk(
                f"{name}: epoch {epoch.number}, loss {epoch.loss:.3f}, validation CIDEr"
                f" {epoch.validation_cider:.3f}, {epoch.seconds:.0f} s",
                quiet=quiet,
            )

        try:
            with progress_bar(name, quiet=quiet) as progress:
                data = load_training_data(RECIPES[name])
                captioner = train_captioner(RECIPES[name], data, out, progress=progress, tell=tell)
        except KeyboardInterrupt:
            raise WassembleError(
                "interrupted; whole epochs are kept, and the same command goes on from there."
            ) from None
        best = max(captioner.account["epochs"], key=lambda epoch: epoch["validation_cider"])
        records[name] = {
            "words": len(captioner.vocabulary),
            "epoch": best["number"],
            "validation_cider": best["validation_cider"],
            "file": str(out / f"{name}.npz"),
        }
    if as_json:
        print_json(records)
        return
    rows = [
        [name, r["words"], r["epoch"], f"{r['validation_cider']:.3f}", r["file"]]
        for name, r in records.items()
    ]
    print_table(["captioner", "words", "best epoch", "validation CIDEr", "file"], rows)


@click.command(
    cls=Command, name="score-captioners", short_help="Score shipped captioners on test pictures."
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@out_option
@output_options
def score_captioners(names: tuple[str, ...], out: Path, as_json: bool, quiet: bool) -> None:
    """Score shipped captioners by NAME, all if none is given, and write the figures into --out.

    CIDEr of the likeliest words, one after the other, on the 700 validation pictures, which chose
    the epoch of each, and on the 1,300 test pictures, which chose nothing.

    \b
    python -m paper score-captioners concepts-self-critical
    """
    load_extra("torch", "captions", purpose="scoring captioners")
    import json

    from paper.captioners.scoring import list_rows, score_captioner
    from paper.data.files import data_folder
    from wassemble._files import write_whole
    from wassemble.errors import fail

    shipped = {path.stem: path for path in sorted((data_folder() / "captioners").glob("*.npz"))}
    unknown = [name for name in names if name not in shipped]
    if unknown:
        fail(f"a captioner must be one of {', '.join(shipped)}; got {unknown[0]!r}.")
    found = {name: score_captioner(shipped[name]) for name in names or shipped}
    write_whole(out / "captioners.json", json.dumps(found, indent=1) + "\n")
    if as_json:
        print_json(found)
        return
    print_table(*list_rows(found))
    talk(f"wrote {out / 'captioners.json'}", quiet=quiet)
