"""Check and time a GPU: its answers beside NumPy's in float64, then its milliseconds.

The device is the GPU that torch finds (CUDA, ROCm, XPU or MPS). Without one the checks run
on the processor, and nothing is timed unless `--device cpu` asks for it. Needs the extra
`torch`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

import wassemble as ws
from wassemble.export import export_torch

N_MODELS = 5
# How far an answer may be from float64's, L1 relative to its mass; solved to 1e-5.
LARGEST_GAP = 2e-4


class Problem(NamedTuple):
    """Arguments of `solve_barycenter`, in NumPy and float64."""

    name: str
    predictions: np.ndarray
    kernel: ws.Kernel
    mass: Any
    debias: bool = False

    @property
    def can_be_mixed(self) -> bool:
        """Whether it has products that half precision speeds up."""
        return not self.debias and isinstance(
            self.kernel, ws.kernels.DenseKernel | ws.kernels.LowRankKernel
        )

    def solve(self, predictions: Any, **options: Any) -> ws.BarycenterResult:
        """Solve it with its predictions in some other library or type, to the rule's options."""
        return ws.solve_barycenter(
            predictions,
            self.kernel,
            ws.Barycenter(self.mass, max_sweeps=5000, debias=self.debias, **options),
            normalize=isinstance(self.mass, ws.Balanced),
        )


def problems(n_labels: int = 60) -> list[Problem]:
    """One problem of each kind, small enough to be solved in float64 at once."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.01, 1, size=(N_MODELS, 4, n_labels))
    cost = embedding_cost(torch.tensor(rng.normal(size=(n_labels, 8)))).numpy()
    dense = ws.kernels.from_cost(cost, epsilon=0.3, symmetric=True)
    # Entries that float32 cannot hold: products fall back on logarithms.
    sharp = ws.kernels.from_cost(cost, epsilon=0.01, symmetric=True)
    sparse = ws.kernels.SparseKernel(sp.csr_array(np.where(cost < 1, np.exp(-cost), 0)))
    low_rank = ws.kernels.LowRankKernel(*rng.uniform(0.1, 1, size=(2, n_labels, 5)))
    diagonal = ws.kernels.DiagonalKernel(rng.uniform(0.1, 1, size=(4, n_labels)))
    balanced, unbalanced = ws.Balanced(), ws.Unbalanced(2.0, epsilon=0.3)
    return [
        Problem("dense", scores, dense, balanced),
        Problem("dense, unbalanced", scores, dense, unbalanced),
        Problem("dense, debiased", scores, dense, balanced, debias=True),
        Problem("dense, beyond float32, unbalanced", scores, sharp, unbalanced),
        Problem("sparse, unbalanced", scores, sparse, unbalanced),
        Problem("low rank", scores, low_rank, balanced),
        Problem("diagonal per sample, unbalanced", scores, diagonal, unbalanced),
    ]


def embedding_cost(vectors: torch.Tensor) -> torch.Tensor:
    """Squared distances between unit vectors."""
    vectors = vectors / vectors.norm(dim=1, keepdim=True)
    return (2 - 2 * vectors @ vectors.T).clamp(min=0)


def check(device: torch.device) -> int:
    """Print each problem's gap to NumPy's float64; return how many are too large."""
    n_failures = 0
    print(f"{'problem':36}{'precision':>10}{'gap':>10}{'sweeps':>8}{'in half':>9}")
    for problem in problems():
        exact = problem.solve(problem.predictions, tolerance=1e-9).barycenter
        for precision in ("float32", "mixed") if problem.can_be_mixed else ("float32",):
            given = torch.tensor(problem.predictions, dtype=torch.float32, device=device)
            found = problem.solve(given, tolerance=1e-5, mixed_precision=precision == "mixed")
            answer = found.barycenter.cpu().numpy()
            gap = float((np.abs(answer - exact).sum(axis=1) / exact.sum(axis=1)).max())
            good = gap <= LARGEST_GAP and found.barycenter.device.type == device.type
            n_failures += not good
            print(
                f"{problem.name:36}{precision:>10}{gap:>10.1e}{np.max(found.n_sweeps):>8}"
                f"{found.n_half_sweeps:>9}{'' if good else '  FAILED'}"
            )
    return n_failures + check_head(device)


def make_head() -> tuple[Any, list[torch.Tensor], np.ndarray]:
    """A head of five sweeps, scores for it, and the library's consensus of them."""
    problem = problems()[0]
    rule = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None)
    labels = [str(place) for place in range(problem.kernel.shape[0])]
    models = {f"model {place}": ws.LabelSpace(labels) for place in range(N_MODELS)}
    kernel = ws.LabelledKernel(problem.kernel, labels, labels)
    fusion = ws.Fusion(rule, kernel, kind="multilabel")
    module = export_torch(fusion, models=models, abstentions=False)
    expected = rule.fuse(problem.predictions, problem.kernel, holds="scores").scores
    return module, list(torch.tensor(problem.predictions, dtype=torch.float32)), expected


def check_head(device: torch.device) -> int:
    """Print the gap of a head in torch; return whether it is too large."""
    module, scores, exact = make_head()
    found = module.to(device)(*(each.to(device) for each in scores))["scores"]
    gap = float((np.abs(found.cpu().numpy() - exact).sum(axis=1) / exact.sum(axis=1)).max())
    good = gap <= LARGEST_GAP and found.device.type == device.type
    print(f"{'head':36}{'float32':>10}{gap:>10.1e}{5:>8}{0:>9}{'' if good else '  FAILED'}")
    return not good


def time_head(device: torch.device, batches: list[int]) -> None:
    """Print milliseconds of the head."""
    module, scores, _ = make_head()
    module = module.to(device)
    print(f"\nhead of {N_MODELS} models: milliseconds")
    for n_samples in batches:
        given = [each[:1].expand(n_samples, -1).to(device) for each in scores]
        module(*given)
        started = time.perf_counter()
        module(*given)
        getattr(torch, device.type).synchronize()
        print(f"{n_samples:>8}{1000 * (time.perf_counter() - started):>20.1f}")


def time_device(device: torch.device, n_labels: int, batches: list[int]) -> None:
    """Print milliseconds to a residual of 1e-4, balanced, through a dense kernel."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn((n_labels, 50), generator=generator)
    matrix = torch.exp(-embedding_cost(vectors.to(device)) / 0.2)
    kernel, there = ws.kernels.DenseKernel(matrix.cpu().numpy()), ws.kernels.DenseKernel(matrix)
    full, mixed = (
        ws.Barycenter(tolerance=1e-4, mixed_precision=is_mixed) for is_mixed in (False, True)
    )
    solve = partial(ws.solve_barycenter, normalize=True)
    print(f"\n{n_labels} labels, {N_MODELS} models: milliseconds (sweeps; of these in half)")
    print(f"{'samples':>8}{'NumPy float32':>20}{device.type + ' float32':>20}{'mixed':>20}")
    for n_samples in batches:
        logits = torch.randn((N_MODELS + 1, n_samples, n_labels), generator=generator)
        scores = (2 * logits[0] + 0.6 * logits[1:]).softmax(-1)
        runs = [
            partial(solve, scores.numpy(), kernel, full),
            partial(solve, scores.to(device), there, full),
            partial(solve, scores.to(device), there, mixed),
        ]
        print(f"{n_samples:>8}" + "".join(f"{cell:>20}" for cell in timed(runs, device)))


def timed(runs: Sequence[Callable[[], ws.BarycenterResult]], device: torch.device) -> Iterator[str]:
    """Best time of three of each run, after one to warm up, and its sweeps."""
    for run in runs:
        run()
        seconds = []
        for _ in range(3):
            started = time.perf_counter()
            result = run()
            getattr(torch, device.type).synchronize()
            seconds.append(time.perf_counter() - started)
        sweeps = f"({np.max(result.n_sweeps)}; {result.n_half_sweeps})"
        yield f"{1000 * min(seconds):.1f} {sweeps:>8}"


def find_gpu() -> str | None:
    """Name of the kind of GPU that torch can use, None if there is none."""
    for kind in ("cuda", "xpu", "mps"):
        if hasattr(torch, kind) and getattr(torch, kind).is_available():
            return kind
    return None


def main(arguments: list[str] | None = None) -> int:
    """Check the answers, then time; 1 if an answer is off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="as torch names it; the GPU it finds if not given")
    parser.add_argument("--n-labels", type=int, default=10_000, help="in the timings")
    parser.add_argument("--samples", type=int, nargs="+", default=[1, 8, 64])
    options = parser.parse_args(arguments)
    name = options.device or find_gpu()
    if name is None:
        print("no GPU that torch can use: the checks run on the CPU, nothing is timed")
    device = torch.device(name or "cpu")
    n_failures = check(device)
    if n_failures:
        print(f"{n_failures} answers are further than {LARGEST_GAP:g} from NumPy's float64")
        return 1
    if name is not None:
        time_device(device, options.n_labels, options.samples)
        time_head(device, options.samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
