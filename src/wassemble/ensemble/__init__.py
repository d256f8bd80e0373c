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
from wassemble.ensemble.lazy import fuse_lazily
from wassemble.ensemble.plan import FusionPlan, Options
from wassemble.ensemble.tables import TableFusion, fuse_tables

__all__ = [
    "Contribution",
    "Disagreement",
    "Explanation",
    "FusionAccount",
    "FusionPlan",
    "ModelAccount",
    "Options",
    "TableFusion",
    "explain",
    "find_disagreement",
    "fuse",
    "fuse_lazily",
    "fuse_tables",
]
