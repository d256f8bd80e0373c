"""Metrics: how good predictions are, what they are like, and how sure a difference is.

Pure functions on arrays. Scores and histograms are non-negative; where a function needs
histograms, it divides each row by its sum. A row that is 0 everywhere or nan everywhere
has no answer. It counts as wrong where the answer is compared with the truth and as a
uniform histogram where a histogram is; entropies and distances of it are nan. Multi-label,
it names no label.
"""

from wassemble.metrics.bootstrap import BootstrapResult, paired_bootstrap
from wassemble.metrics.calibration import (
    CalibrationBins,
    calibration_bins,
    expected_calibration_error,
)
from wassemble.metrics.costs import mean_cost, mean_cost_of_mistakes
from wassemble.metrics.entropic import entropic_distance, sinkhorn_divergence
from wassemble.metrics.multi_class import accuracy, brier_score, log_loss, top_k_accuracy
from wassemble.metrics.multi_label import (
    PrecisionRecallF1,
    average_precision,
    mean_average_precision,
    precision_recall_f1,
)
from wassemble.metrics.properties import (
    coupling_entropy,
    entropy,
    pairwise_diversity,
    smoothness_energy,
)
from wassemble.metrics.transport import wasserstein_distance
from wassemble.metrics.unbalanced import extended_kl, unbalanced_distance

__all__ = [
    "BootstrapResult",
    "CalibrationBins",
    "PrecisionRecallF1",
    "accuracy",
    "average_precision",
    "brier_score",
    "calibration_bins",
    "coupling_entropy",
    "entropic_distance",
    "entropy",
    "expected_calibration_error",
    "extended_kl",
    "log_loss",
    "mean_average_precision",
    "mean_cost",
    "mean_cost_of_mistakes",
    "paired_bootstrap",
    "pairwise_diversity",
    "precision_recall_f1",
    "sinkhorn_divergence",
    "smoothness_energy",
    "top_k_accuracy",
    "unbalanced_distance",
    "wasserstein_distance",
]
