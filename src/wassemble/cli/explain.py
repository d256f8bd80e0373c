"""`wassemble explain`: where the consensus comes from, and where models disagree."""

from typing import Any

import click

from wassemble.cli.console import print_json, print_table, talk
from wassemble.cli.fusion_options import fusion_options, read_fusion
from wassemble.cli.options import ModelFiles, file_arguments, output_options, shown_option
from wassemble.cli.places import Command
from wassemble.errors import fail


@click.command(
    cls=Command, short_help="Show where a consensus comes from, and where models disagree."
)
@file_arguments
@click.option(
    "--sample",
    help="Id of the sample to explain.  [default: list the samples that models disagree about"
    " most]",
)
@click.option("--label", help="Label to explain.  [default: the one with the highest score]")
@shown_option("--n-largest", type=int, default=10, help="Number of rows to show.")
@fusion_options
@output_options
def explain(
    inputs: ModelFiles,
    sample: str | None,
    label: str | None,
    n_largest: int,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Show how much each label of each model contributed to the consensus on a sample.

    Without --sample: list the samples that models disagree about most, with the cost of
    moving each model's scores onto the consensus. Takes the same options as `fuse`.

    \b
    wassemble explain a.csv b.csv --embeddings glove.txt
    wassemble explain a.csv b.csv --embeddings glove.txt --sample 17 --label lion
    """
    import wassemble as ws
    from wassemble._checks import check_count
    from wassemble.ensemble.tables import warn_of_inputs

    check_count(n_largest, "n_largest")
    if label is not None and sample is None:
        fail("--label must go with --sample, whose label it is; got none.")
    with inputs.open() as opened:
        fusion, doubts = read_fusion(values, opened, inputs)
        warn_of_inputs(doubts)
        result = fusion.run([file.read() for file in opened], n_threads=values["n_threads"])
    if sample is None:
        rows = ws.find_disagreement(result).most(n_largest)
        if as_json:
            print_json(rows)
            return
        header = list(rows[0]) if rows else ["sample"]
        print_table(header, [[_cell(row[name]) for name in header] for row in rows])
        talk("cost of moving each model's mass onto the consensus; 0 is agreement", quiet=quiet)
        return
    explained = ws.explain(result, sample, label, n_largest=n_largest)
    if as_json:
        print_json(explained.to_dict())
        return
    doubt = "" if explained.converged else "; not converged: shares of the last sweep"
    talk(
        f"sample {explained.sample}: {explained.label}, score {explained.score:.3g}{doubt}",
        quiet=quiet,
    )
    if explained.reference is not None:
        talk(explained.reference, quiet=quiet)
    print_table(
        ["percent", "model", "label", "score" if explained.reference is None else "logit"],
        [[f"{c.percent:.1f}", c.model, c.label, f"{c.score:.3g}"] for c in explained.contributions],
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.3g}"
