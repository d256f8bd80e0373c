"""How long many votes of many voters take, and how much memory."""

from __future__ import annotations

import resource
import time

import numpy as np

from wassemble.ensemble.without_truth import Known, Votes, rank_votes

_N_VOTERS = 10_000
_N_VOTES = (180_000, 600_000, 1_800_000)
_N_LABELS = 4
_VOTES_OF_A_SAMPLE = 9


def measure_speed() -> list[dict[str, float]]:
    """A line for each number of votes, from few to many."""
    return [_measure(n_votes) for n_votes in _N_VOTES]


def _measure(n_votes: int) -> dict[str, float]:
    rows = _draw(n_votes)
    start = time.process_time()
    votes = Votes.of_table(*rows)
    read = time.process_time()
    rank_votes(votes, Known(np.ones(votes.n_models)))
    ranked = time.process_time()
    return {
        "n_votes": n_votes,
        "n_voters": votes.n_models,
        "n_samples": votes.n_samples,
        "reading_seconds": read - start,
        "ranking_seconds": ranked - read,
        # The most that this process held so far: lines go from few votes to many.
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def _draw(n_votes: int) -> tuple[list[int], list[int], list[int]]:
    """Voters, samples and labels; voters are right with a chance of their own."""
    rng = np.random.default_rng(0)
    n_samples = n_votes // _VOTES_OF_A_SAMPLE
    voter, sample = rng.integers(_N_VOTERS, size=n_votes), rng.integers(n_samples, size=n_votes)
    truth, skill = rng.integers(_N_LABELS, size=n_samples), rng.uniform(0.3, 0.95, _N_VOTERS)
    other = (truth[sample] + rng.integers(1, _N_LABELS, size=n_votes)) % _N_LABELS
    label = np.where(rng.random(n_votes) < skill[voter], truth[sample], other)
    return voter.tolist(), sample.tolist(), label.tolist()
