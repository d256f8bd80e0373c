"""Consensus, reliability and a leaderboard where nobody knows the truth."""

from wassemble.ensemble.without_truth.learn import learn_without_truth
from wassemble.ensemble.without_truth.relatives import Relatives, find_relatives
from wassemble.ensemble.without_truth.rungs import (
    RUNGS,
    Agreement,
    Confusions,
    Equal,
    Fitted,
    Known,
    Reliability,
    Rung,
)
from wassemble.ensemble.without_truth.votes import Votes

__all__ = [
    "RUNGS",
    "Agreement",
    "Confusions",
    "Equal",
    "Fitted",
    "Known",
    "Relatives",
    "Reliability",
    "Rung",
    "Votes",
    "find_relatives",
    "learn_without_truth",
]
