"""`fuse_on_ranks`: files of models, each read by the rank that sweeps it; one file out."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np

from wassemble._arrays import detached
from wassemble._checks import fail, option
from wassemble._extras import load_extra
from wassemble.ensemble import Fusion
from wassemble.inputs import PredictionFile, Predictions, write_predictions
from wassemble.kernels import Kernel, LabelledKernel, load as load_kernel
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.scale.ranks.exchange import RankError, Ranks
from wassemble.scale.ranks.solve import SharedBarycenter, solve_barycenter_distributed
from wassemble.solvers import Barycenter, Status
from wassemble.solvers.weights import check_weights

Device = Literal["cpu", "cuda"]


def fuse_on_ranks(
    models: Mapping[str, Callable[[], PredictionFile]],
    kernels: Mapping[str, Path],
    out: Path,
    fusion: Fusion,
    *,
    device: Device = "cpu",
    timeout: float = 300.0,
) -> str | None:
    """Fuse files on the ranks that torchrun started, each with its share of the models.

    Models of weight above 0 are dealt out in turn. A rank opens its own files and kernels, and
    the first model's, which has the sample ids. Files, which ``models`` open, have the same
    samples and no missing score; ``kernels`` were saved, and have the same target labels. Of the
    ``fusion`` counts its rule, a barycenter, and its weights, by name or of shape (n_models,
    n_target); rows of a balanced one are divided by their sums. With "cuda", tensors are on the
    GPU of each rank and exchanged by NCCL; ``timeout`` is in seconds, for a silent rank.

    Rank 0 writes the consensus, whole or not at all, and says how the samples ended.
    """
    with _group(device, timeout):
        ranks = Ranks()
        with ranks.together():
            share = _Share(models, kernels, fusion, ranks)
        shared = share.solve(device)
        with ranks.together():
            return share.write(shared, out) if ranks.rank == 0 else None


@contextmanager
def _group(device: Device, timeout: float) -> Iterator[None]:
    """The group that torchrun describes in the environment."""
    torch = load_extra("torch", "torch", purpose="solving on several ranks")
    dist = load_extra("torch.distributed", "torch", purpose="solving on several ranks")
    if "RANK" not in os.environ:
        fail(
            "ranks must be started by torchrun; this process was not.",
            hint="torchrun --nproc-per-node 2 -m wassemble ranks ...",
        )
    if device == "cuda":
        _take_gpu(torch, int(os.environ["LOCAL_RANK"]))
    backend = "nccl" if device == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
    except RuntimeError as error:
        raise RankError(f"the ranks did not find each other ({error}).") from error
    yield
    dist.destroy_process_group()  # after an error, others may still be waiting


def _take_gpu(torch: Any, local_rank: int) -> None:
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if local_rank >= n_gpus:
        fail(
            f"{option('device', 'cuda')} must have a GPU for each rank of a machine; got {n_gpus}"
            f" that torch can use and rank {local_rank} of this machine, counted from 0.",
            hint=f"{option('device', 'cpu')}, or --nproc-per-node no larger than the number"
            " of GPUs",
        )
    torch.cuda.set_device(local_rank)


class _Share:
    """The share of one rank: every ``n_ranks``-th model of weight above 0, with its kernel."""

    def __init__(
        self,
        models: Mapping[str, Callable[[], PredictionFile]],
        kernels: Mapping[str, Path],
        fusion: Fusion,
        ranks: Ranks,
    ) -> None:
        if not isinstance(fusion.rule, Barycenter):
            fail(f"ranks must have a barycenter to find; got {fusion.rule}.")
        self._rule = fusion.rule
        self._ranks = ranks
        names = list(models)
        weights = _weights(fusion, names)
        voters = np.flatnonzero(weights.reshape(len(names), -1).any(axis=1)).tolist()
        if len(voters) < ranks.n_ranks:  # one without a model would wait for the whole solve
            fail(
                "models must be at least one of weight above 0 for each rank; got"
                f" {len(voters)} for {ranks.n_ranks} ranks.",
                hint=f"--nproc-per-node {len(voters)} on one machine",
            )
        mine = voters[ranks.rank :: ranks.n_ranks]
        self._weights = weights[mine]
        with models[names[0]]() as first:
            self.samples = first.samples
        self._models = [self._read(models[names[model]]) for model in mine]
        paths = [kernels[names[model]] for model in mine]
        loaded = {path: load_kernel(path) for path in paths}
        self._kernels: list[LabelledKernel] = [loaded[path] for path in paths]

    def _read(self, open_file: Callable[[], PredictionFile]) -> Predictions:
        """A model's predictions in the order of the first file."""
        with open_file() as file:
            given, name = file.read(), file.name
        order = {str(sample): row for row, sample in enumerate(given.samples.tolist())}
        wanted = [str(sample) for sample in self.samples.tolist()]
        strange = [sample for sample in wanted if sample not in order]
        if strange or len(wanted) != len(order):
            fail(
                f"{name}: every file must have the samples of the first one; it lacks"
                f" {enumerate_names(strange) if strange else 'none'} and has"
                f" {len(order)} of {len(wanted)}.",
                hint="`wassemble fuse` fuses files whose samples differ",
            )
        missing = np.argwhere(np.isnan(given.scores))
        if missing.size:
            row, column = missing[0]
            fail(
                f"{name}: every sample must have a score for each label; got none for sample"
                f" {str(given.samples[row])!r} and label {given.labels.names[column]!r}.",
                hint="`wassemble fuse` spreads the mass of missing scores",
            )
        empty = np.flatnonzero(~given.scores.any(axis=1))
        if empty.size and self._rule.is_balanced:
            fail(
                f"{name}: every sample must have some mass to be divided by its sum; got a row of"
                f" zeros for sample {str(given.samples[empty[0]])!r}.",
                hint="an unbalanced barycenter takes scores of any mass",
            )
        return given.take(np.array([order[sample] for sample in wanted], dtype=np.int64))

    def solve(self, device: Device) -> SharedBarycenter:
        """The consensus, on every rank."""
        ranks = self._ranks
        self.target = self._agree_on_target()
        n_bytes = max((model.scores.dtype.itemsize for model in self._models), default=4)
        n_bytes = int(ranks.largest(np.array([n_bytes]))[0])
        with ranks.together():
            histograms: list[Any] = [model.scores.astype(f"f{n_bytes}") for model in self._models]
            kernels = self._align_kernels()
        if device == "cuda":
            histograms = [ranks.to_tensor(scores) for scores in histograms]
        return solve_barycenter_distributed(
            histograms,
            kernels,
            self._rule,
            weights=self._weights,
            normalize=self._rule.is_balanced,  # files round
        )

    def _agree_on_target(self) -> LabelSpace:
        """The target labels of rank 0's first kernel, which every other must have too."""
        ranks = self._ranks
        mine = json.dumps(self._kernels[0].target.names).encode() if ranks.rank == 0 else b""
        n_bytes = int(ranks.broadcast(np.array([len(mine)]), 0)[0])
        text = np.frombuffer(mine or bytes(n_bytes), dtype=np.uint8)
        return LabelSpace(json.loads(ranks.broadcast(text, 0).tobytes()))

    def _align_kernels(self) -> list[Kernel]:
        aligned: dict[tuple[int, LabelSpace], Kernel] = {}  # models that share one go on doing so
        for model, kernel in zip(self._models, self._kernels, strict=True):
            if set(kernel.target) != set(self.target):
                fail(f"{model.model}: every kernel must have the same target labels.")
            if (id(kernel), model.labels) not in aligned:
                aligned[id(kernel), model.labels] = kernel.align(model.labels, self.target)
        pairs = zip(self._models, self._kernels, strict=True)
        return [aligned[id(kernel), model.labels] for model, kernel in pairs]

    def write(self, shared: SharedBarycenter, out: Path) -> str:
        """Write the consensus; how the samples ended."""
        scores = detached(shared.barycenter)
        write_predictions(out, Predictions("consensus", self.samples, self.target, scores))
        counts = np.bincount(np.asarray(shared.status), minlength=len(Status))
        ends = [f"{n} {s.message}" for s, n in zip(Status, counts.tolist(), strict=True) if n]
        return f"{len(self.samples)} samples fused; {'; '.join(ends)}"


def _weights(fusion: Fusion, names: list[str]) -> np.ndarray:
    weights: Any = fusion.weights
    if weights is None:
        return np.full(len(names), 1 / len(names))
    if isinstance(weights, Mapping):
        if weights.keys() != set(names):
            must = f"{option('weights')} must name each of {enumerate_names(names)}"
            fail(f"{must}; got {enumerate_names(weights)}.")
        weights = np.array([weights[name] for name in names])
    if weights.ndim not in (1, 2) or len(weights) != len(names):
        must = f"{option('weights')} must be one per model, {len(names)}"
        fail(f"{must}; got shape {weights.shape}.")
    n_target = weights.shape[-1]  # kernels are compared with it later
    checked: np.ndarray = check_weights(weights, len(names), n_target)
    return checked
