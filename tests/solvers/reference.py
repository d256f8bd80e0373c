"""Algorithms 1 and 2 of the paper, slow and plain: what the solvers are compared with.

Nothing here comes from `wassemble`. Everything is a logarithm in float64, kernels are matrices,
and every row is swept as often as it is told to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NOTHING = -np.inf


@dataclass
class Reference:
    """A problem as the paper states it; row by row where things may differ per row."""

    log_histograms: list[np.ndarray]  # (n_rows, n_source), one per model
    log_kernels: list[np.ndarray]  # (n_source, n_target) or (n_rows, n_source, n_target)
    weights: np.ndarray  # (n_models, n_rows, n_target)
    order: float  # epsilon / (epsilon + mass_penalty); 0 for Algorithm 1
    debias: bool = False

    def __post_init__(self) -> None:
        n_rows = len(self.log_histograms[0])
        self.log_kernels = [np.broadcast_to(k, (n_rows, *k.shape[-2:])) for k in self.log_kernels]
        self.log_v = [np.zeros((n_rows, k.shape[-1])) for k in self.log_kernels]
        self.log_p = np.full(self.log_v[0].shape, NOTHING)
        self.log_d = np.zeros_like(self.log_p)
        self.last_p = np.zeros_like(self.log_p)

    def sweep(self) -> None:
        """Lines u, p and v."""
        self.last_p = np.exp(self.log_p)
        exponent = 1 - self.order
        images = []
        for log_mu, log_k, log_v in self._models():
            log_u = exponent * _quotient(log_mu, log_sum_exp(log_k + log_v[:, None, :], axis=2))
            images.append(log_sum_exp(log_k + log_u[:, :, None], axis=1))
        self.log_p = self._mean(np.array(images))
        if self.debias:
            self.log_p = self.log_p + self.log_d
            blurred = log_sum_exp(self.log_kernels[0] + self.log_d[:, None, :], axis=2)
            self.log_d = _quotient(self.log_d + self.log_p, blurred) / 2
        self.log_v = [exponent * _quotient(self.log_p, image) for image in images]

    def _models(self) -> zip:
        return zip(self.log_histograms, self.log_kernels, self.log_v, strict=True)

    def _mean(self, images: np.ndarray) -> np.ndarray:
        """Line p: the weighted power mean, over the models that have a weight at the label."""
        votes = self.weights > 0
        log_w = np.where(votes, np.log(np.where(votes, self.weights, 1)), NOTHING)
        if self.order == 0:
            logs = np.where(votes & (images > NOTHING), images, 0)
            vetoed = (votes & (images == NOTHING)).any(axis=0)
            return np.where(vetoed, NOTHING, (self.weights * logs).sum(axis=0))
        shifted = np.where(votes, images, NOTHING)
        top = shifted.max(axis=0)
        top = np.where(top > NOTHING, top, 0)
        if self.order > 1e-3:
            return top + log_sum_exp(log_w + self.order * (shifted - top), axis=0) / self.order
        gone = np.where(shifted > NOTHING, np.expm1(self.order * (shifted - top)), -1)
        total = np.log1p((self.weights * gone).sum(axis=0)) / self.order
        return np.where((shifted > NOTHING).any(axis=0), top + total, NOTHING)

    def of_rows(self, rows: list[int]) -> Reference:
        """The problem of some rows, from the start."""
        return Reference(
            [log_mu[rows] for log_mu in self.log_histograms],
            [log_k[rows] for log_k in self.log_kernels],
            self.weights[:, rows],
            self.order,
            self.debias,
        )

    def run(self, n_sweeps: int) -> np.ndarray:
        """The barycenter after so many sweeps more."""
        for _ in range(n_sweeps):
            self.sweep()
        return np.exp(self.log_p)

    def step(self) -> np.ndarray:
        """By how much the last sweep changed each row, L1, as a share of it."""
        p = np.exp(self.log_p)
        total = p.sum(axis=1)
        return np.abs(p - self.last_p).sum(axis=1) / np.where(total > 0, total, 1)

    def coupling(self, model: int, row: int) -> np.ndarray:
        """diag(u) K diag(v) with the u that belongs to the last v."""
        log_mu, log_k, log_v = (x[row] for x in list(self._models())[model])
        log_u = (1 - self.order) * _quotient(log_mu, log_sum_exp(log_k + log_v, axis=1))
        return np.exp(log_u[:, None] + log_k + log_v)

    def stuck(self) -> np.ndarray:
        """Rows in which some voting model has mass that reaches no target label."""
        found = np.zeros(len(self.log_p), dtype=bool)
        for (log_mu, log_k, log_v), w in zip(self._models(), self.weights, strict=True):
            reach = log_sum_exp(log_k + log_v[:, None, :], axis=2) > NOTHING
            found |= ((log_mu > NOTHING) & ~reach).any(axis=1) & (w > 0).any(axis=1)
        return found

    def has_mass(self) -> np.ndarray:
        """Rows in which some voting model has mass."""
        found = np.zeros(len(self.log_p), dtype=bool)
        for log_mu, w in zip(self.log_histograms, self.weights, strict=True):
            found |= (log_mu > NOTHING).any(axis=1) & (w > 0).any(axis=1)
        return found


def log_sum_exp(logs: np.ndarray, axis: int) -> np.ndarray:
    """log(sum(exp(logs)))."""
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(top > NOTHING, top, 0)
    with np.errstate(divide="ignore"):
        return np.squeeze(top, axis) + np.log(np.exp(logs - top).sum(axis=axis))


def log_of(values: np.ndarray) -> np.ndarray:
    """Logarithm, -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values).astype(np.float64))


def _quotient(log_a: np.ndarray, log_b: np.ndarray) -> np.ndarray:
    """log(a / b), where anything over 0 is 0."""
    known = (log_a > NOTHING) & (log_b > NOTHING)
    return np.where(known, np.where(known, log_a, 0) - np.where(known, log_b, 0), NOTHING)
