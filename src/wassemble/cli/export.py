"""`wassemble export`, `verify` and `serve-head`: from a learned ensemble to production."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from wassemble.cli.console import print_json, talk
from wassemble.cli.options import ModelFiles, file_arguments, output_options, shown_option
from wassemble.cli.places import Command, EnsembleFolder, Output, Within
from wassemble.errors import WassembleError

_head = click.argument("head", type=click.Path(dir_okay=False, path_type=Path))


def _beside(path: Path) -> list[Path]:
    return [path.with_suffix(end) for end in (".golden.json", ".request.json")]


@click.command(cls=Command, short_help="Freeze a learned ensemble into a file that runs anywhere.")
@click.argument("ensemble", type=EnsembleFolder(path_type=Path))
@file_arguments
@click.option(
    "--onnx",
    type=Output(path_type=Path, beside=_beside),
    required=True,
    help="File to write, which ends in .onnx; golden vectors go beside it, in .golden.json, and an"
    " example of a request over HTTP, in .request.json.",
)
@shown_option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float32",
    help="Type of the scores that go in and come out.",
)
@click.option(
    "--gaps/--no-gaps",
    default=None,
    help="Whether nan means that a label was not reported; else nan is refused.  [default: as in"
    " FILES]",
)
@shown_option(
    "--tolerance", type=float, default=1e-5, help="How far scores may be from the library's."
)
@shown_option(
    "--max-sweeps",
    type=int,
    default=300,
    help="Refuse a barycenter that needs more sweeps to come as near as that.",
)
@output_options
def export(
    ensemble: Path,
    inputs: ModelFiles,
    onnx: Path,
    dtype: Any,
    gaps: bool | None,
    tolerance: float,
    max_sweeps: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Freeze ENSEMBLE, the folder that `fit` wrote, into one ONNX file: a head.

    The head has an input for each model and one that says which models answered; it gives the
    scores of the consensus and the label. FILES, predictions of the same models, decide how many
    sweeps a barycenter is unrolled to, and become golden vectors; without FILES, samples are drawn.

    \b
    wassemble export ensemble --onnx head.onnx
    wassemble export ensemble a.csv b.csv c.npz --onnx head.onnx --dtype float64
    """
    from wassemble.ensemble.learning import LearnedEnsemble
    from wassemble.export import export_onnx

    learned = LearnedEnsemble.load(ensemble)
    if learned.fusion.normalize:  # as it was said to `fit`
        inputs = replace(inputs, normalize=True)
    about = export_onnx(
        learned,
        onnx,
        samples=inputs.read() if inputs.files else None,
        dtype=dtype,
        gaps=gaps,
        tolerance=tolerance,
        max_sweeps=max_sweeps,
    )
    if as_json:
        print_json(about)
    sweeps = "" if about["sweeps"] is None else f", {about['sweeps']} sweeps"
    talk(f"{onnx}: {about['rule']}{sweeps}; computes in {about['arithmetic']}", quiet=quiet)
    talk(f"largest gap to the library: {about['gap']:.1g}", quiet=quiet)


# Samples are drawn where none are given.
next(each for each in export.params if each.name == "files").required = False


@click.command(cls=Command, short_help="Replay the golden vectors of a head.")
@_head
@output_options
def verify(head: Path, as_json: bool, quiet: bool) -> None:
    """Replay in onnxruntime what HEAD was given when it was written, and compare the answers.

    \b
    wassemble export ensemble --onnx head.onnx
    wassemble verify head.onnx
    """
    from dataclasses import asdict

    from wassemble.export import verify_head

    verdict = verify_head(head)
    if as_json:
        print_json(asdict(verdict) | {"holds": verdict.holds})
    talk(
        f"{head}: {verdict.n_samples} samples; largest gap {verdict.gap:.1g}, allowed"
        f" {verdict.tolerance:g}; {verdict.n_labels_off} decided otherwise",
        quiet=quiet,
    )
    if not verdict.holds:
        raise WassembleError(f"{head} does not answer as the library did.")


@click.command("serve-head", cls=Command, short_help="Serve a head over HTTP.")
@_head
@shown_option("--host", default="127.0.0.1", help="Address to listen on.")
@shown_option(
    "--port",
    type=Within(click.IntRange(0, 65535)),
    default=8080,
    help="Port to listen on; 0 takes a free one.",
)
@shown_option(
    "--max-samples", type=Within(click.IntRange(1)), default=10_000, help="Refuse larger batches."
)
@shown_option(
    "--max-bytes",
    type=Within(click.IntRange(1)),
    default=50_000_000,
    help="Refuse larger requests.",
)
@shown_option(
    "--max-seconds",
    type=Within(click.FloatRange(0, min_open=True)),
    default=10,
    help="Give up a request that takes longer than this to arrive, or to answer.",
)
def serve_head(head: Path, host: str, port: int, **limits: Any) -> None:
    """Serve HEAD by the Open Inference Protocol, version 2, with metrics for Prometheus.

    \b
    wassemble serve-head head.onnx
    curl localhost:8080/v2/models/head/infer --data @head.request.json
    """
    from wassemble._extras import load_extra

    for module in ("fastapi", "uvicorn"):
        load_extra(module, "web", purpose="serving a head")
    from wassemble.export.server import Limits, run
    from wassemble.web.connections import Connections

    run(head, host, port, Limits(**limits), talk=talk, guard=Connections)
