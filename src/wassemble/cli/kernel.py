"""`wassemble kernel`: build a kernel between two label sets, or look into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wassemble.cli.console import print_json, talk
from wassemble.cli.kernel_options import kernel_options, read_kernel
from wassemble.cli.options import PATH, aliases_option, hide, output_options, read_labels
from wassemble.cli.places import Command, Output
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.kernels import LabelledKernel


@click.command(
    cls=Command, short_help="Build a kernel from what is known about labels, or show one."
)
@click.option(
    "--source",
    type=PATH,
    help="Labels of the models: a text file with one per line, or a prediction file.",
)
@click.option(
    "--target",
    type=PATH,
    help="Labels of the consensus, in the same way.  [default: the same as --source]",
)
@click.option(
    "--out",
    type=Output(path_type=Path),
    help="File to save the kernel to, .npz or .parquet, for `fuse --kernel`.",
)
@aliases_option
@kernel_options
@output_options
def kernel(
    source: Path | None,
    target: Path | None,
    out: Path | None,
    aliases: Path | None,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Build a kernel, a table of how similar labels are, and show what it does.

    Shows how many labels it covers, how many neighbours they have, the most similar pairs,
    and labels that are similar to very many others. A kernel is made from one of the options
    below; with --kernel, one that was saved is shown.

    \b
    wassemble kernel --source a.csv --embeddings glove.txt --epsilon auto --out k.npz
    wassemble kernel --source french.txt --target english.txt --kernel translations.csv
    wassemble kernel --source a.csv --target wanted.txt --aliases aliases.csv
    wassemble kernel --kernel k.npz
    """
    from wassemble.kernels import LabelledKernel

    if out is not None and out.suffix.lower() not in (".npz", ".parquet"):
        fail(f"--out must end in .npz or .parquet; got {out.name}.")
    if len(values["kernels"]) > 1:
        fail(f"a kernel must have one origin; got --kernel {len(values['kernels'])} times.")
    if values["confusion"] is not None:
        fail(
            "a confusion kernel needs predictions; got none here.",
            hint="wassemble fuse ... --confusion truth.csv, or kernels.from_confusion in Python",
        )
    made: Any = read_kernel(values, [])
    if aliases is not None:
        made = _by_aliases(aliases, source, target, made)
    if made is None:
        fail("a kernel must have an origin; got none.", hint="--embeddings, --tree, --kernel ...")
    if not isinstance(made, LabelledKernel):
        if source is None:
            fail("this kernel must know its source labels; got no --source.")
        labels = read_labels(source)
        made = made(labels, labels if target is None else read_labels(target))
    elif aliases is None and (source is not None or target is not None):
        first = made.source if source is None else read_labels(source)
        second = made.target if target is None else read_labels(target)
        made = LabelledKernel(made.align(first, second), first, second, made.origin, made.notes)
    if as_json:
        print_json(made.account().to_dict())
    else:
        click.echo(str(made.account()))
    if out is not None:
        made.save(out)
        talk(f"saved {out}", quiet=quiet)


hide(kernel, "confusion", "prior")


def _by_aliases(path: Path, source: Path | None, target: Path | None, given: Any) -> LabelledKernel:
    """The kernel of one model whose labels stand for others; ``given`` is for the rest."""
    from wassemble.ensemble import Fusion
    from wassemble.inputs import read_aliases
    from wassemble.kernels import LabelledKernel

    if source is None:
        fail("aliases must be of labels that are known; got no --source.")
    model = source.name.split(".")[0]
    rows = [row for row in read_aliases(path).rows if row[0] in (None, model)]
    fusion = Fusion(
        kernel=given,
        kind="multiclass",
        target=None if target is None else read_labels(target),
        aliases=rows,
    )
    plan = fusion.plan({model: read_labels(source)})
    (member,) = plan.members
    origin = f"aliases in {path.name}" + (
        f", and {given.origin}" if isinstance(given, LabelledKernel) else ""
    )
    made = member.kernel
    if member.groups is not None:  # labels that are fused as one, each by its own name again
        made = made.select(member.groups, None)
    return LabelledKernel(made, member.labels, plan.target, origin)
