"""Problems that ranks solve together; the ranks and the tests make the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

import wassemble as ws

KNOBS = tuple(knob.name for knob in fields(ws.Barycenter))

BALANCED = ws.Balanced()
DEAR = ws.Unbalanced(2.0, epsilon=0.3)


@dataclass(frozen=True)
class RankCase:
    """The arguments of `solve_barycenter`; ``split`` models have their rows on all ranks."""

    histograms: list[Any]
    kernels: list[Any]
    weights: Any = None
    mass: Any = BALANCED
    options: dict[str, Any] = field(default_factory=dict)
    split: tuple[int, ...] = ()
    places: int = 12  # digits to which the answers agree

    def solve(self) -> ws.BarycenterResult:
        return ws.solve_barycenter(
            self.histograms, self.kernels, self.rule, weights=self.weights, **self.others
        )

    @property
    def rule(self) -> ws.Barycenter:
        """The rule that the mass and the options make."""
        return ws.Barycenter(
            self.mass, **{name: self.options[name] for name in KNOBS if name in self.options}
        )

    @property
    def others(self) -> dict[str, Any]:
        """Options that are none of the rule."""
        return {name: value for name, value in self.options.items() if name not in KNOBS}


def make(n_models=5, n_samples=7, n_target=6, *, dtype=np.float64, spread=3.0, seed=0):
    """Histograms and positive kernels over label sets of different sizes."""
    rng = np.random.default_rng(seed)
    sizes = [4 + model % 3 for model in range(n_models)]
    histograms = [rng.dirichlet(np.ones(size), n_samples).astype(dtype) for size in sizes]
    kernels = [np.exp(-spread * rng.random((size, n_target))).astype(dtype) for size in sizes]
    return histograms, kernels


def walls(n_target=6):
    """Kernels with zeros, an empty row and two components; histograms with zeros."""
    histograms, kernels = make(n_target=n_target)
    half = n_target // 2
    for histogram, kernel in zip(histograms, kernels, strict=True):
        kernel[:2, half:] = 0
        kernel[2:, :half] = 0
        histogram[1, 0] = 0
        histogram[1] /= histogram[1].sum()
    kernels[1][0] = 0  # of model 1 alone: the others learn of it from its rank
    histograms[1][2, 0] = 0
    histograms[1][2] /= histograms[1][2].sum()
    return histograms, kernels


def joined_elsewhere():
    """Two kernels that each split the target labels, and together join them."""
    rng = np.random.default_rng(8)
    kernels = []
    for half in (2, 3):
        block = rng.uniform(0.1, 1, (6, 6))
        block[:half, half:] = 0
        block[half:, :half] = 0
        kernels.append(block)
    return [rng.dirichlet(np.ones(6), 4) for _ in kernels], kernels


def label_weights(n_models=5, n_target=6):
    weights = np.random.default_rng(3).random((n_models, n_target))
    weights[0, :2] = 0
    weights[3] = 0
    return weights / weights.sum(axis=0)


def slow():
    histograms, _ = make()
    rng = np.random.default_rng(4)
    target = rng.random((6, 2))
    costs = [((rng.random((h.shape[1], 1, 2)) - target) ** 2).sum(-1) for h in histograms]
    return histograms, [ws.kernels.from_cost(cost, epsilon=0.02) for cost in costs]


def large_sparse(n_labels=2000, n_samples=100):
    rng = np.random.default_rng(5)
    histograms = [rng.dirichlet(np.full(n_labels, 0.5), n_samples) for _ in range(3)]
    kernels = []
    for _ in range(3):
        near = sp.random_array((n_labels, n_labels), density=0.005, rng=rng, format="csr")
        kernels.append((near + sp.eye_array(n_labels)).tocsr())
    return histograms, kernels


def _cases() -> dict[str, Callable[[], RankCase]]:
    uneven = np.array([0.1, 0.4, 0.2, 0.05, 0.25])
    sharp = {"spread": 400.0}
    diagonal = np.random.default_rng(6).random((2, 6)) + 0.1
    same = np.random.default_rng(7).dirichlet(np.ones(6), (2, 5))

    def silent() -> RankCase:
        histograms, kernels = make()
        histograms[1] = np.zeros_like(histograms[1])
        histograms[3] = np.zeros_like(histograms[3])
        return RankCase(histograms, kernels, [0.5, 0, 0.5, 0, 0])

    def as_tensors() -> RankCase:
        import torch

        histograms, kernels = make()
        tensors = [[torch.from_numpy(x) for x in xs] for xs in (histograms, kernels)]
        return RankCase(*tensors, mass=DEAR)

    def no_mass() -> RankCase:
        histograms, kernels = make()
        for histogram in histograms:
            histogram[2] = 0
        histograms[0][4] = 0
        return RankCase(histograms, kernels, mass=DEAR)

    def tiny_and_huge() -> RankCase:
        """A consensus that moves by many orders of magnitude from sweep to sweep."""
        histograms, kernels = make(**sharp)
        scores = [h * 10.0 ** (100 * (-1) ** model) for model, h in enumerate(histograms)]
        return RankCase(scores, kernels, mass=ws.Unbalanced(0.5, epsilon=1.0))

    def zeros_of_one_model() -> RankCase:
        histograms, kernels = joined_elsewhere()
        histograms[1][2, :3] = 0
        histograms[1] /= histograms[1].sum(axis=1, keepdims=True)
        return RankCase(histograms, kernels, mass=DEAR)

    def one_sample() -> RankCase:
        histograms, kernels = make()
        return RankCase([h[0] for h in histograms], kernels)

    def fixed(n_sweeps: int, mass: Any, **how: Any) -> Callable[[], RankCase]:
        options = {"max_sweeps": n_sweeps, "tolerance": None}
        return lambda: RankCase(*make(**how), mass=mass, options=options)

    def nearly_one() -> RankCase:
        """Sums that are near enough to 1 for so many labels, and not for a part of them."""
        histograms, kernels = large_sparse(n_samples=4)
        histograms = [(h * (1 + 4.5e-5)).astype(np.float32) for h in histograms]
        options = {"max_sweeps": 20}
        return RankCase(histograms, kernels, split=(0, 1, 2), options=options, places=5)

    def split(which: tuple[int, ...], **changes: Any) -> Callable[[], RankCase]:
        return lambda: RankCase(*make(), split=which, **changes)

    every = (0, 1, 2, 3, 4)
    tight = {"tolerance": 1e-12, "max_sweeps": 100_000}
    return {
        "balanced": lambda: RankCase(*make()),
        "unbalanced": lambda: RankCase(*make(), uneven, DEAR),
        "float32": lambda: RankCase(*make(dtype=np.float32), mass=DEAR, places=5),
        "weights in float32": lambda: RankCase(*make(), uneven.astype(np.float32), DEAR),
        "balanced in logs": lambda: RankCase(*make(**sharp), uneven, places=9),
        "unbalanced in logs": lambda: RankCase(*make(**sharp), uneven, DEAR),
        "order near 0 in logs": lambda: RankCase(
            *make(), mass=ws.Unbalanced(1.0, epsilon=1e-9), options={"tolerance": 1e-4}, places=6
        ),
        "tiny and huge": tiny_and_huge,
        "5 sweeps": fixed(5, DEAR),
        "15 sweeps": fixed(15, DEAR),
        "5 sweeps in logs": fixed(5, DEAR, **sharp),
        "15 sweeps in logs": fixed(15, DEAR, **sharp),
        "5 sweeps, balanced": fixed(5, BALANCED),
        "15 sweeps, balanced": fixed(15, BALANCED),
        "label weights": lambda: RankCase(*make(), label_weights(), DEAR),
        "label weights, balanced": lambda: RankCase(*make(), label_weights()),
        "models of weight 0": silent,
        "fewer models than ranks": lambda: RankCase(*make(n_models=1)),
        "samples without mass": no_mass,
        "walls, balanced": lambda: RankCase(*walls(), places=9),
        "walls, unbalanced": lambda: RankCase(*walls(), mass=DEAR),
        "walls of different ranks": lambda: RankCase(*joined_elsewhere(), places=9),
        "zeros of one model": zeros_of_one_model,
        "diagonal, balanced": lambda: RankCase(
            list(same), [ws.kernels.DiagonalKernel(k) for k in diagonal]
        ),
        "diagonal, unbalanced": lambda: RankCase(
            list(same), [ws.kernels.DiagonalKernel(k) for k in diagonal], mass=DEAR
        ),
        "diagonal with a zero": lambda: RankCase(
            list(same),
            [ws.kernels.DiagonalKernel(k) for k in (diagonal[0], np.arange(6.0))],
            mass=DEAR,
        ),
        "diagonal on one rank": lambda: RankCase(
            list(same), [ws.kernels.IdentityKernel(6), np.exp(-3 * diagonal[:1].T * diagonal[:1])]
        ),
        "one-to-one on one rank": lambda: RankCase(
            list(same),
            [ws.kernels.IdentityKernel(6), sp.eye_array(6, k=1, format="csr")],
            mass=DEAR,
        ),
        "slow rows": lambda: RankCase(*slow(), options=tight, places=8),
        "tensors": as_tensors,
        "one sample": one_sample,
        "split, balanced": split(every),
        "split, unbalanced": split(every, mass=DEAR, weights=uneven),
        "split in logs": lambda: RankCase(*make(**sharp), split=every, mass=DEAR),
        "split and whole": split((1, 2), weights=uneven),
        "split with walls": lambda: RankCase(*walls(), split=every, places=9),
        "split, sums of nearly 1": nearly_one,
        "split 2,000 x 2,000": lambda: RankCase(
            *large_sparse(), split=(0, 1, 2), mass=DEAR, options={"max_sweeps": 20}
        ),
    }


CASES = _cases()
