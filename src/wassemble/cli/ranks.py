"""`wassemble ranks`: models on several machines, under torchrun."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from wassemble.cli.console import talk
from wassemble.cli.fusion_options import read_rule, read_weights, sweep_options
from wassemble.cli.kernel_options import kernel_files
from wassemble.cli.options import ModelFiles, file_arguments, shown_option
from wassemble.cli.places import Command, NamedFile, Output
from wassemble.errors import WassembleError, fail


@click.command(cls=Command, short_help="Fuse models that are on several machines, by torchrun.")
@file_arguments
@click.option(
    "--kernel",
    "kernels",
    type=NamedFile(),
    multiple=True,
    required=True,
    metavar="[MODEL=]FILE",
    help="Kernel that `wassemble kernel` saved, for all models or for MODEL; may be repeated.",
)
@click.option(
    "--weights",
    type=NamedFile(),  # compared with --out, as every file
    metavar="MODEL=W,...|FILE.npy",
    help="How much each model counts; weights must sum to 1. A .npy file may hold one for each"
    " model and target label.  [default: equal]",
)
@click.option(
    "--out",
    type=Output(path_type=Path),
    required=True,
    help="File to write the consensus to; its ending says the format.",
)
@shown_option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    help="Where each rank computes. cuda: on a GPU of its own; ranks exchange by NCCL.",
)
@shown_option(
    "--timeout", type=float, default=300.0, help="Seconds to wait for a rank that is silent."
)
@sweep_options
@click.option(
    "--epsilon",
    type=float,
    help="With --mass-penalty: the epsilon that the kernels were made with.  [default: 0.3]",
)
def ranks(
    inputs: ModelFiles,
    kernels: tuple[str, ...],
    weights: str | None,
    out: Path,
    device: Literal["cpu", "cuda"],
    timeout: float,
    **values: Any,
) -> None:
    """Fuse the predictions in FILES on several processes or machines.

    Run it under torchrun, which starts a process (rank) for each share of the models. A rank
    reads the files of its own share, and the first file; the first rank writes the consensus.
    Every file must have the same samples, and no score may be missing.

    \b
    torchrun --nproc-per-node 2 -m wassemble ranks a.npz b.npz --kernel k.npz --out fused.npz
    """
    from wassemble.ensemble import Fusion
    from wassemble.inputs import open_predictions
    from wassemble.scale.ranks.files import fuse_on_ranks

    # torchrun ends the others so; an exchange that hangs would not notice an interrupt.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        if values["epsilon"] is not None and values["mass_penalty"] is None:
            fail("--epsilon must go with --mass-penalty; got none.", hint="leave it out")
        models = {
            model: partial(open_predictions, place, reading, model=model)
            for model, place, reading in inputs.named_arguments
        }
        fusion = Fusion(read_rule(values), weights=_read_weights(weights))
        files = kernel_files(kernels, list(models))
        ends = fuse_on_ranks(models, files, out, fusion, device=device, timeout=timeout)
    except WassembleError as error:
        error.args = (f"rank {os.environ.get('RANK', '0')}: {error}", *error.args[1:])
        raise
    if ends is not None:
        talk(ends)


def _read_weights(text: str | None) -> Any:
    import numpy as np

    if text is None or not text.endswith(".npy"):
        return read_weights(text)
    try:
        return np.load(text, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        fail(f"{text}: must be an array that NumPy saved; it cannot be read ({error}).")
