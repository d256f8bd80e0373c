"""Ensembling: what most users import."""

from wassemble.ensemble.account import FusionAccount, ModelAccount
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

__all__ = [
    "Contribution",
    "Disagreement",
    "Explanation",
    "Fusion",
    "FusionAccount",
    "FusionPlan",
    "FusionResult",
    "ModelAccount",
    "TableFuser",
    "explain",
    "find_disagreement",
    "fuse",
]
