"""Estimators in scikit-learn's manner: members in, one learned consensus out."""

from wassemble._extras import load_extra

load_extra("sklearn", "learn", purpose="an estimator")

from wassemble.ensemble.estimators.classifier import (  # noqa: E402
    CrossSpaceClassifier,
    WassersteinClassifier,
)
from wassemble.ensemble.estimators.members import TableMember  # noqa: E402
from wassemble.ensemble.estimators.multilabel import WassersteinMultilabel  # noqa: E402

__all__ = ["CrossSpaceClassifier", "TableMember", "WassersteinClassifier", "WassersteinMultilabel"]
