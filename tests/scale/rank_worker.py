"""What each rank of `test_ranks.py` runs under torchrun.

``rank_worker.py cases FOLDER`` solves every case with the others and writes down what it
found; ``rank_worker.py command FOLDER ...`` is the command, and writes its process id into the
folder once the ranks are under way.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parent))
from rank_cases import CASES, DEAR, RankCase, make

from wassemble import Barycenter, WassembleError
from wassemble._arrays import detached
from wassemble.cli import main
from wassemble.scale import RowBlockKernel, solve_barycenter_distributed
from wassemble.scale.ranks.exchange import Ranks
from wassemble.solvers.arithmetics import LogSolver

SECONDS = 170  # to wait for a silent rank


def deal(case: RankCase):
    """The models of this rank: split ones in part, the others in turn."""
    rank, n_ranks = dist.get_rank(), dist.get_world_size()
    mine, histograms, kernels = [], [], []
    for model, (histogram, kernel) in enumerate(zip(case.histograms, case.kernels, strict=True)):
        if model in case.split:
            labels = np.array_split(np.arange(kernel.shape[0]), n_ranks)[rank]
            kernels.append(RowBlockKernel(kernel[labels]))
            histograms.append(histogram[..., labels])
        elif model % n_ranks == rank:
            kernels.append(kernel)
            histograms.append(histogram)
        else:
            continue
        mine.append(model)
    weights = None if case.weights is None else np.asarray(case.weights)[mine]
    return histograms, kernels, weights


def solve(case: RankCase):
    histograms, kernels, weights = deal(case)
    return solve_barycenter_distributed(
        histograms, kernels, case.rule, weights=weights, **case.others
    )


def solve_cases(folder: Path) -> None:
    # Where all models that vote are on one rank, it would solve them as one process does.
    LogSolver.patience = lambda *_: None
    n_exchanges = 0
    reduce = Ranks._reduce

    def counted(self, values, how):
        nonlocal n_exchanges
        n_exchanges += 1
        return reduce(self, values, how)

    Ranks._reduce = counted
    for name, make_case in CASES.items():
        n_exchanges = 0
        case = make_case()
        shared = solve(case)
        np.savez(
            folder / f"{name}.{dist.get_rank()}.npz",
            barycenter=detached(shared.barycenter),
            status=shared.status,
            residual=shared.residual,
            n_sweeps=shared.n_sweeps,
            n_exchanges=n_exchanges,
            is_tensor=not isinstance(shared.barycenter, np.ndarray),
            coupling=coupling_of(case, shared),
        )


def coupling_of(case: RankCase, shared) -> np.ndarray:
    """Model 0 with the first sample, its rows of this rank; empty where it is elsewhere."""
    if 0 not in case.split and dist.get_rank() > 0:
        return np.empty((0, 0))
    return np.asarray(detached(shared.local.coupling(0)))


def make_mistakes() -> dict[str, str]:
    """What this rank hears when some rank gives what does not fit."""
    rank = dist.get_rank()
    histograms, kernels = make(n_models=2)
    flat = [histograms[0]], [kernels[0]]
    negative = -histograms[0] if rank == 1 else histograms[0]
    wide = histograms[0].astype(np.float32 if rank else np.float64)
    not_first = dist.new_group(list(range(1, dist.get_world_size())))
    mistakes = {
        "samples": lambda: solve_barycenter_distributed([histograms[0][rank:]], flat[1]),
        "negative": lambda: solve_barycenter_distributed([negative], flat[1]),
        "sums": lambda: solve_barycenter_distributed([histograms[0] * (1 + rank)], flat[1]),
        "types": lambda: solve_barycenter_distributed([wide], flat[1]),
        "weights": lambda: solve_barycenter_distributed(*flat, weights=[0.6]),
        "some weights": lambda: solve_barycenter_distributed(
            *flat, weights=None if rank else [0.5]
        ),
        "some votes": lambda: solve_barycenter_distributed(*flat, weights=[0.6 * (rank == 1)]),
        "no votes": lambda: solve_barycenter_distributed(*flat, weights=[0.0]),
        "negative, split": lambda: solve_split(negative, kernels[0], rule=Barycenter(DEAR)),
        "sums, split over some": lambda: solve_split(histograms[0] * 2, kernels[0], not_first),
        "order": lambda: solve_in_another_order(histograms, kernels),
        "sweeps": lambda: solve_barycenter_distributed(*flat, Barycenter(max_sweeps=5 + rank)),
    }
    heard = {}
    for name, mistake in mistakes.items():
        try:
            mistake()
            heard[name] = "nothing"
        except WassembleError as error:
            heard[name] = f"{type(error).__name__}: {error}"
        # What is exchanged next is not mixed up with what was left unfinished.
        ranks = Ranks()
        np.testing.assert_array_equal(ranks.gather(np.array(rank)), np.arange(ranks.n_ranks))
    return heard


def solve_split(histogram, kernel, group=None, **options) -> None:
    """One model, whose kernel is split over a group; other ranks have a whole one."""
    place, n_parts = dist.get_rank(group), dist.get_world_size(group)
    if place < 0:
        solve_barycenter_distributed([histogram / 2], [kernel], **options)
    else:
        labels = np.array_split(np.arange(len(kernel)), n_parts)[place]
        block = RowBlockKernel(kernel[labels], group)
        solve_barycenter_distributed([histogram[:, labels]], [block], **options)


def solve_in_another_order(histograms, kernels) -> None:
    rank, n_ranks = dist.get_rank(), dist.get_world_size()
    parts = [np.array_split(np.arange(len(kernel)), n_ranks)[rank] for kernel in kernels]
    split = [RowBlockKernel(k[part]) for k, part in zip(kernels, parts, strict=True)]
    mine = [h[:, part] for h, part in zip(histograms, parts, strict=True)]
    step = -1 if rank == 1 else 1
    solve_barycenter_distributed(mine[::step], split[::step])


def announce(folder: Path) -> None:
    """Write down the process id after the first sum: the ranks have found each other by then."""
    told = Ranks.sum

    def sum_and_tell(self, values):
        total = told(self, values)
        place = folder / f"{self.rank}.pid"
        if not place.exists():
            unfinished = place.with_suffix(".tmp")
            unfinished.write_text(str(os.getpid()))
            unfinished.rename(place)
        return total

    Ranks.sum = sum_and_tell


if __name__ == "__main__":
    task, folder = sys.argv[1], Path(sys.argv[2])
    if task == "command":
        announce(folder)
        sys.exit(main(sys.argv[3:]))
    dist.init_process_group("gloo", timeout=timedelta(seconds=SECONDS))
    solve_cases(folder)
    heard = make_mistakes()
    (folder / f"mistakes.{dist.get_rank()}.json").write_text(json.dumps(heard))
    some = Ranks().subset([0])
    assert some is None or some.timeout.total_seconds() == SECONDS
    dist.destroy_process_group()
