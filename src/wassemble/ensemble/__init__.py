"""Ensembling: what most users import."""

from wassemble.ensemble.account import FusionAccount, ModelAccount
from wassemble.ensemble.decisions import BackOff, back_off
from wassemble.ensemble.explain import (
    Contribution,
    Disagreement,
    Explanation,
    explain,
    find_disagreement,
)
from wassemble.ensemble.fuse import fuse
from wassemble.ensemble.fusion import Fusion, FusionResult
from wassemble.ensemble.plan import FusionPlan, TableFuser
from wassemble.ensemble.trees import tree_barycenter

__all__ = [
    "BackOff",
    "Contribution",
    "Disagreement",
    "Explanation",
    "Fusion",
    "FusionAccount",
    "FusionPlan",
    "FusionResult",
    "ModelAccount",
    "TableFuser",
    "back_off",
    "explain",
    "find_disagreement",
    "fuse",
    "tree_barycenter",
]
