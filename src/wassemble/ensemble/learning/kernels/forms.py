"""What a learned kernel may look like: few numbers over candidate kernels, or thin factors.

Both forms give tables of positive entries from unbounded numbers, in torch, so that a loss
can be followed back through them. Losses are left to others.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from wassemble._arrays import Array, log_of, namespace
from wassemble._checks import fail
from wassemble.ensemble.learning.kernels.candidates import Candidates
from wassemble.ensemble.learning.recipes import NAMES
from wassemble.labels import enumerate_names

KernelForm = Literal["mixture", "low rank"]

# Numbers that a mixture may have: more would need more samples than people label.
_MOST_NUMBERS = 10
# Where a mixture may start: share of one candidate, and scale beside labels of equal names.
_FIRST_SHARES = (0.5, 0.9, 0.99)
_FIRST_SCALES = (1.0, 0.1)
# Samples to train on for each number of a low-rank kernel. Less than one will do, since the
# numbers are held near a kernel that is known to be good.
_SAMPLES_PER_NUMBER = 0.5
# Thin factors start at no less: a softplus is flat near 0, and nothing would move.
_LEAST_FACTOR = 1e-3
_N_UPDATES = 300


def mix_tables(
    parts: tuple[Array, Array, Array, Array], shares: Array, scales: Array, sharpness: Any
) -> Array:
    """The mixture of a stack of tables, in NumPy or torch.

    Parameters
    ----------
    parts : tuple of four arrays
        Logs of the entries, (n_candidates, n_source, n_target), 0 for an entry of 0; which
        entries are above 0; which are of equal names; and the block of each.
    shares : array of shape (n_candidates,) or (n_candidates + 1,)
        The last is that of equal names.
    scales : array of shape (n_blocks,)
    sharpness : number
        Power of the candidates' entries.
    """
    logs, known, own, blocks = parts
    xp = namespace(logs)
    # A power of 0 has no gradient: what is 0 is left out before, not after.
    raised = xp.where(known, xp.exp(sharpness * logs), 0.0)
    n_candidates = logs.shape[0]
    mixed = xp.sum(shares[:n_candidates][:, None, None] * raised, axis=0)
    if shares.shape[0] > n_candidates:
        mixed = mixed + shares[n_candidates] * own
    return mixed * scales[blocks]


class MixtureForm:
    """Shares of candidates, a scale for each block of entries, and a sharpness."""

    def __init__(self, torch: Any, candidates: Candidates, start: Mapping[str, float]) -> None:
        self._torch = torch
        self._candidates = candidates
        shares, scales = _read_numbers(candidates, start)
        self._logits = torch.tensor(np.log(shares), requires_grad=True)
        self._log_scales = torch.tensor(np.log(scales[1:]), requires_grad=True)
        self._log_sharpness = torch.tensor(np.log(start["sharpness"]), requires_grad=True)
        self._parts = [
            tuple(torch.as_tensor(part) for part in parts)
            for parts in zip(
                *_log_stacks(candidates), candidates.own, candidates.blocks, strict=True
            )
        ]

    def numbers(self) -> list[Any]:
        """Tensors to be learned."""
        return [self._logits, self._log_scales, self._log_sharpness]

    def tables(self) -> list[Any]:
        """Entries of each learned kernel, ``(n_source, n_target)``."""
        torch = self._torch
        shares = torch.softmax(self._logits, dim=0)
        scales = torch.cat([torch.ones(1, dtype=torch.float64), self._log_scales.exp()])
        return [
            mix_tables(parts, shares, scales, self._log_sharpness.exp()) for parts in self._parts
        ]

    def penalty(self) -> Any:
        """What is added to the loss."""
        return 0.0

    def described(self) -> dict[str, float]:
        """The numbers by name, as they act on the kernel."""
        shares = self._torch.softmax(self._logits.detach(), dim=0).tolist()
        scales = self._log_scales.detach().exp().tolist()
        names = self._candidates.share_names, self._candidates.block_names[1:]
        numbers = {f"share of {n}": share for n, share in zip(names[0], shares, strict=True)}
        numbers |= {f"scale of {n}": scale for n, scale in zip(names[1], scales, strict=True)}
        return numbers | {"sharpness": float(self._log_sharpness.detach().exp())}


def mixture_starts(candidates: Candidates, best: Sequence[str]) -> list[Mapping[str, float]]:
    """Mixtures to start from: mostly one of the ``best``, with little or much of the rest.

    A loss may have several valleys: without any kernel lies one of its own.
    """
    names = candidates.share_names
    n_numbers = len(names) - 1 + len(candidates.block_names) - 1 + 1
    if n_numbers > _MOST_NUMBERS:
        fail(
            f"a mixture must have at most {_MOST_NUMBERS} numbers to learn; got {n_numbers} from"
            f" {len(candidates.names)} candidates and {len(candidates.block_names)} blocks.",
            hint="offer fewer candidates or fewer groups",
        )
    shares = _FIRST_SHARES if len(names) > 1 else (1.0,)
    scales = _FIRST_SCALES if candidates.has_names else (1.0,)
    starts: list[Mapping[str, float]] = []
    for first, share, scale in itertools.product(best, shares, scales):
        rest = (1 - share) / max(len(names) - 1, 1)
        start = {f"share of {name}": share if name == first else rest for name in names}
        start |= {f"scale of {name}": scale for name in candidates.block_names[1:]}
        starts.append(start | {"sharpness": 1.0})
    return starts


def mix_candidates(candidates: Candidates, numbers: Mapping[str, float]) -> list[np.ndarray]:
    """The mixture that ``numbers``, as `MixtureForm` describes them, make of candidates."""
    shares, scales = _read_numbers(candidates, numbers)
    return [
        mix_tables(parts, shares, scales, numbers["sharpness"])
        for parts in zip(*_log_stacks(candidates), candidates.own, candidates.blocks, strict=True)
    ]


def _read_numbers(
    candidates: Candidates, numbers: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Shares, and scales of all blocks: only their ratios matter, so the first is 1."""
    share_names = [f"share of {name}" for name in candidates.share_names]
    scale_names = [f"scale of {name}" for name in candidates.block_names[1:]]
    names = [*share_names, *scale_names, "sharpness"]
    if set(names) != set(numbers):
        fail(
            f"candidates must be such that they have {enumerate_names(numbers)}; got"
            f" {enumerate_names(names)}."
        )
    shares = np.array([numbers[name] for name in share_names])
    return shares, np.array([1.0, *(numbers[name] for name in scale_names)])


def _log_stacks(candidates: Candidates) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Logs of all entries, 0 for an entry of 0, and which are above 0."""
    known = [stack > 0 for stack in candidates.stacks]
    logs = [np.where(k, log_of(s), 0.0) for k, s in zip(known, candidates.stacks, strict=True)]
    return logs, known


class LowRankForm:
    """Thin factors of positive numbers, and a share of equal names; held near where they start.

    Every learned kernel has its own left factor; the right one, of the target labels, is
    shared. They start at the non-negative factors nearest to the best candidate.
    """

    def __init__(
        self,
        torch: Any,
        candidates: Candidates,
        best: int,
        *,
        rank: int,
        own_factor: float,
        n_train: int,
        decay: float,
        seed: int,
    ) -> None:
        n_source = sum(len(source) for source in candidates.sources)
        n_target = len(candidates.target)
        n_numbers = rank * (n_source + n_target) + candidates.has_names
        needed = int(np.ceil(_SAMPLES_PER_NUMBER * n_numbers))
        if n_train < needed:
            fail(
                f'form="low rank" must have at least {needed:,} samples to train on, one for every'
                f" two of the {n_numbers:,} numbers of rank {rank} over {n_source:,} source and"
                f" {n_target:,} target labels; got {n_train:,}.",
                hint='form="mixture" has at most ten numbers; or a smaller `rank`',
            )
        self._torch = torch
        self._decay = decay
        self._sizes = [len(source) for source in candidates.sources]
        table = np.concatenate([stack[best] for stack in candidates.stacks])
        own = np.concatenate(candidates.own)
        left, right = _factorize(table, ~own, rank, seed)
        self._starts = [torch.as_tensor(each) for each in (left, right)]
        self._factors = [_unbounded(torch, each) for each in (left, right)]
        self._own = [torch.as_tensor(each) for each in candidates.own]
        gap = np.maximum(table - left @ right.T, 0)[own] if own.any() else np.ones(1)
        first = np.log(own_factor * max(float(gap.mean()), _LEAST_FACTOR))
        self._log_own = torch.tensor(first, requires_grad=True)
        self._has_names = candidates.has_names

    def numbers(self) -> list[Any]:
        return [*self._factors, self._log_own] if self._has_names else self._factors

    def _positive(self) -> list[Any]:
        return [self._torch.nn.functional.softplus(each) for each in self._factors]

    def tables(self) -> list[Any]:
        left, right = self._positive()
        each = (left @ right.T).split(self._sizes)
        if not self._has_names:
            return list(each)
        return [
            table + self._log_own.exp() * own for table, own in zip(each, self._own, strict=True)
        ]

    def penalty(self) -> Any:
        moved = [
            ((now - start) ** 2).sum() / (start**2).sum()
            for now, start in zip(self._positive(), self._starts, strict=True)
        ]
        return self._decay * (moved[0] + moved[1])

    def described(self) -> dict[str, float]:
        left, right = (each.detach() for each in self._positive())
        start = self._starts[0] @ self._starts[1].T
        moved = float((left @ right.T - start).norm() / start.norm())
        numbers = {"rank": float(left.shape[1]), "way from the start": moved}
        if self._has_names:
            own = float(self._log_own.detach().exp())
            numbers[f"share of {NAMES}"] = own / (own + float((left @ right.T).max()))
        return numbers


def _unbounded(torch: Any, positive: np.ndarray) -> Any:
    """Numbers whose softplus is ``positive``."""
    return torch.tensor(positive + np.log(-np.expm1(-positive)), requires_grad=True)


def _factorize(
    table: np.ndarray, counted: np.ndarray, rank: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Non-negative factors nearest to ``table`` where it is ``counted`` (Lee and Seung 2001)."""
    rng = np.random.default_rng(seed)
    mean = np.sqrt(max(table[counted].mean() if counted.any() else 0, _LEAST_FACTOR) / rank)
    left, right = (mean * rng.uniform(0.5, 1.5, size=(size, rank)) for size in table.shape)
    wanted = np.where(counted, table, 0)
    for _ in range(_N_UPDATES):
        left *= (wanted @ right) / np.maximum((counted * (left @ right.T)) @ right, 1e-12)
        right *= (wanted.T @ left) / np.maximum((counted * (left @ right.T)).T @ left, 1e-12)
    return np.maximum(left, _LEAST_FACTOR), np.maximum(right, _LEAST_FACTOR)


Form = MixtureForm | LowRankForm
"""Numbers that are learned, and the tables that they make."""
