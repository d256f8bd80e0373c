"""The command that torchrun starts on every rank: its share of the files in, one file out."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._arrays import detached
from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble._files import refuse_overwriting
from wassemble.errors import WassembleError
from wassemble.inputs import Predictions, open_predictions, read_predictions, write_predictions
from wassemble.kernels import Kernel, load as load_kernel
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.scale.distributed import SharedBarycenter, solve_barycenter_distributed
from wassemble.scale.ranks import RankError, Ranks
from wassemble.solvers import Balanced, MassRule, Status, Unbalanced
from wassemble.solvers.means import check_weights

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuse the files of the command line; the exit code."""
    asked = _parser().parse_args(arguments)
    try:
        _start(asked)
        ranks = Ranks()
        with ranks.together():
            share = _Files(asked, ranks.rank, ranks.n_ranks)
        shared = share.solve(ranks)
        with ranks.together():
            if ranks.rank == 0:
                share.write(shared)
    except WassembleError as error:
        place = f"rank {os.environ.get('RANK', '0')}"
        # One write, so that lines of several ranks do not mix.
        sys.stderr.write(f"error: {place}: {error}\n")
        return 1
    load_extra("torch.distributed", "torch", purpose="this command").destroy_process_group()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torchrun ... -m wassemble.scale",
        description="Fuse models on several ranks: each reads its own share of the files.",
    )
    parser.add_argument(
        "--models", nargs="+", required=True, metavar="FILE", help="predictions, a file per model"
    )
    parser.add_argument(
        "--kernels",
        nargs="+",
        required=True,
        metavar="FILE",
        help="kernels that `wassemble kernel` wrote, one per model or one for all",
    )
    parser.add_argument(
        "--weights",
        nargs="+",
        metavar="NUMBER",
        help="one per model, or a .npy file of shape (n_models,) or (n_models, n_target)",
    )
    parser.add_argument("--mass-penalty", type=float, help="Algorithm 2, with --epsilon")
    parser.add_argument("--epsilon", type=float)
    parser.add_argument("--max-iterations", type=int, default=1000)
    parser.add_argument(
        "--tolerance", type=_tolerance, default=1e-6, help='"none": exactly --max-iterations sweeps'
    )
    parser.add_argument("--out", type=Path, required=True, help="where rank 0 writes the consensus")
    parser.add_argument(
        "--device",
        choices=["cpu", "cuda"],
        default="cpu",
        help="cuda: tensors on the GPU of each rank, exchanged by NCCL",
    )
    parser.add_argument(
        "--timeout", type=float, default=300.0, help="seconds to wait for a silent rank"
    )
    return parser


def _tolerance(text: str) -> float | None:
    return None if text == "none" else float(text)


def _start(asked: argparse.Namespace) -> None:
    """Join the group that torchrun describes in the environment."""
    torch = load_extra("torch", "torch", purpose="this command")
    dist = load_extra("torch.distributed", "torch", purpose="this command")
    if "RANK" not in os.environ:
        fail(
            "this command must be started by torchrun; it was not.",
            hint="torchrun --nproc-per-node 2 -m wassemble.scale ...",
        )
    if asked.device == "cuda":
        _take_gpu(torch, int(os.environ["LOCAL_RANK"]))
    backend = "nccl" if asked.device == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=asked.timeout))
    except RuntimeError as error:
        raise RankError(f"the ranks did not find each other ({error}).") from error


def _take_gpu(torch: Any, local_rank: int) -> None:
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if local_rank >= n_gpus:
        fail(
            f"--device cuda must have a GPU for each rank of a machine; got {n_gpus} that torch"
            f" can use and rank {local_rank} of this machine, counted from 0.",
            hint="--device cpu, or --nproc-per-node no larger than the number of GPUs",
        )
    torch.cuda.set_device(local_rank)


class _Files:
    """The share of one rank: every ``n_ranks``-th model of weight above 0, with its kernel."""

    def __init__(self, asked: argparse.Namespace, rank: int, n_ranks: int) -> None:
        self._asked = asked
        n_models = len(asked.models)
        if len(asked.kernels) not in (1, n_models):
            fail(f"--kernels must be one or one per model, {n_models}; got {len(asked.kernels)}.")
        refuse_overwriting(asked.out, [*asked.models, *asked.kernels], name="--out")
        self._mass = _mass(asked)
        self._weights = _weights(asked.weights, n_models)
        voters = np.flatnonzero(self._weights.reshape(n_models, -1).any(axis=1)).tolist()
        if len(voters) < n_ranks:  # one without a model would wait for the whole solve
            fail(
                "--models must be at least one of weight above 0 for each rank; got"
                f" {len(voters)} for {n_ranks} ranks.",
                hint=f"--nproc-per-node {len(voters)} on one machine",
            )
        self._mine = voters[rank::n_ranks]
        with open_predictions(asked.models[0]) as first:
            self.samples = first.samples
        self._models = [self._read_model(asked.models[model]) for model in self._mine]
        paths = [asked.kernels[model if len(asked.kernels) > 1 else 0] for model in self._mine]
        loaded = {path: load_kernel(path) for path in paths}
        self._kernels = [loaded[path] for path in paths]

    def _read_model(self, path: str) -> Predictions:
        """A model's predictions in the order of the first file."""
        found = read_predictions(path)
        order = {str(sample): row for row, sample in enumerate(found.samples.tolist())}
        wanted = [str(sample) for sample in self.samples.tolist()]
        strange = [sample for sample in wanted if sample not in order]
        if strange or len(wanted) != len(order):
            fail(
                f"{path}: every file must have the samples of the first one; it lacks"
                f" {enumerate_names(strange) if strange else 'none'} and has"
                f" {len(order)} of {len(wanted)}.",
                hint="`wassemble fuse` fuses files whose samples differ",
            )
        self._check_scores(found, path)
        return found.take(np.array([order[sample] for sample in wanted], dtype=np.int64))

    def _check_scores(self, found: Predictions, path: str) -> None:
        missing = np.argwhere(np.isnan(found.scores))
        if missing.size:
            row, column = missing[0]
            fail(
                f"{path}: every sample must have a score for each label; got none for sample"
                f" {str(found.samples[row])!r} and label {found.labels.names[column]!r}.",
                hint="`wassemble fuse` spreads the mass of missing scores",
            )
        empty = np.flatnonzero(~found.scores.any(axis=1))
        if empty.size and isinstance(self._mass, Balanced):
            fail(
                f"{path}: every sample must have some mass to be divided by its sum; got a row of"
                f" zeros for sample {str(found.samples[empty[0]])!r}.",
                hint="--mass-penalty and --epsilon take scores of any mass",
            )

    def solve(self, ranks: Ranks) -> SharedBarycenter:
        """The consensus, on every rank."""
        self.target = self._agree_on_target(ranks)
        n_bytes = max((model.scores.dtype.itemsize for model in self._models), default=4)
        n_bytes = int(ranks.largest(np.array([n_bytes]))[0])
        with ranks.together():
            histograms: list[Any] = [model.scores.astype(f"f{n_bytes}") for model in self._models]
            kernels = self._align_kernels()
        if self._asked.device == "cuda":
            histograms = [ranks.to_tensor(scores) for scores in histograms]
        return solve_barycenter_distributed(
            histograms,
            kernels,
            weights=self._weights[self._mine],
            mass=self._mass,
            max_iterations=self._asked.max_iterations,
            tolerance=self._asked.tolerance,
            normalize=isinstance(self._mass, Balanced),  # files round
        )

    def _agree_on_target(self, ranks: Ranks) -> LabelSpace:
        """The target labels of rank 0's first kernel, which every other must have too."""
        mine = json.dumps(self._kernels[0].target.names).encode() if ranks.rank == 0 else b""
        n_bytes = int(ranks.broadcast(np.array([len(mine)]), 0)[0])
        text = np.frombuffer(mine or bytes(n_bytes), dtype=np.uint8)
        return LabelSpace(json.loads(ranks.broadcast(text, 0).tobytes()))

    def _align_kernels(self) -> list[Kernel]:
        aligned: dict[tuple[int, LabelSpace], Kernel] = {}  # models that share one go on doing so
        found = []
        for model, kernel in zip(self._models, self._kernels, strict=True):
            key = (id(kernel), model.labels)
            if key not in aligned:
                if set(kernel.target) != set(self.target):
                    fail(f"{model.model}: every kernel must have the same target labels.")
                aligned[key] = kernel.align(model.labels, self.target)
            found.append(aligned[key])
        return found

    def write(self, shared: SharedBarycenter) -> None:
        """The consensus whole, and a line about how the rows ended."""
        scores = detached(shared.barycenter)
        consensus = Predictions("consensus", self.samples, self.target, scores)
        write_predictions(self._asked.out, consensus)
        counts = np.bincount(np.asarray(shared.status), minlength=len(Status))
        ends = [f"{n} {s.message}" for s, n in zip(Status, counts.tolist(), strict=True) if n]
        sys.stderr.write(f"{len(self.samples)} samples fused; {'; '.join(ends)}\n")


def _mass(asked: argparse.Namespace) -> MassRule:
    if (asked.mass_penalty is None) != (asked.epsilon is None):
        fail("--mass-penalty and --epsilon must be given together or not at all.")
    if asked.mass_penalty is None:
        return Balanced()
    return Unbalanced(asked.mass_penalty, epsilon=asked.epsilon)


def _weights(given: list[str] | None, n_models: int) -> np.ndarray:
    if given is None:
        return np.full(n_models, 1 / n_models)
    if len(given) == 1 and given[0].endswith(".npy"):
        try:
            weights = np.load(given[0], allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            fail(f"{given[0]}: must be an array that NumPy saved; it cannot be read ({error}).")
    else:
        try:
            weights = np.array([float(text) for text in given])
        except ValueError:
            fail(f"--weights must be numbers or one .npy file; got {' '.join(given)}.")
    if weights.ndim not in (1, 2) or len(weights) != n_models:
        fail(f"--weights must be one per model, {n_models}; got shape {weights.shape}.")
    n_target = weights.shape[-1]  # kernels are compared with it later
    found: np.ndarray = check_weights(weights, n_models, n_target, like=np.empty(0))
    return found
