"""Consensus, reliability and a leaderboard where nobody knows the truth."""

from wassemble.ensemble.without_truth.jury import Jury, Verdict, hear_jury, read_verdicts
from wassemble.ensemble.without_truth.learn import learn_without_truth
from wassemble.ensemble.without_truth.rank import Ranked, Ranking, rank_models, rank_votes
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
    "Jury",
    "Known",
    "Ranked",
    "Ranking",
    "Relatives",
    "Reliability",
    "Rung",
    "Verdict",
    "Votes",
    "find_relatives",
    "hear_jury",
    "learn_without_truth",
    "rank_models",
    "rank_votes",
    "read_verdicts",
]
