"""Metrics: how good predictions are, what they are like, and how sure a difference is.

Pure functions on arrays. Scores and histograms are non-negative; where a function needs
histograms, it divides each row by its sum. A row that is 0 everywhere or nan everywhere
has no answer. It counts as wrong where the answer is compared with the truth and as a
uniform histogram where a histogram is; entropies and distances of it are nan. Multi-label,
it names no label.
"""

from wassemble.metrics.comparison import Comparison, Estimate, PairedBootstrap, compare
from wassemble.metrics.measures import (
    ACCURACY,
    BRIER_SCORE,
    CALIBRATION_ERROR,
    LOG_LOSS,
    MEAN,
    MEAN_AVERAGE_PRECISION,
    MEAN_LOSS,
    MULTICLASS,
    TOP_5_ACCURACY,
    USUAL,
    Measure,
    cost_measure,
    measure,
)
from wassemble.metrics.multi_class import (
    CalibrationBins,
    accuracy,
    brier_score,
    calibration_bins,
    expected_calibration_error,
    log_loss,
    mean_cost,
    mean_cost_of_mistakes,
    top_k_accuracy,
)
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
from wassemble.metrics.resamples import Resamples, percentile_interval, student_interval
from wassemble.metrics.transport import (
    entropic_distance,
    sinkhorn_divergence,
    wasserstein_distance,
)
from wassemble.metrics.unbalanced import extended_kl, unbalanced_distance

__all__ = [
    "ACCURACY",
    "BRIER_SCORE",
    "CALIBRATION_ERROR",
    "LOG_LOSS",
    "MEAN",
    "MEAN_AVERAGE_PRECISION",
    "MEAN_LOSS",
    "MULTICLASS",
    "TOP_5_ACCURACY",
    "USUAL",
    "CalibrationBins",
    "Comparison",
    "Estimate",
    "Measure",
    "PairedBootstrap",
    "PrecisionRecallF1",
    "Resamples",
    "accuracy",
    "average_precision",
    "brier_score",
    "calibration_bins",
    "compare",
    "cost_measure",
    "coupling_entropy",
    "entropic_distance",
    "entropy",
    "expected_calibration_error",
    "extended_kl",
    "log_loss",
    "mean_average_precision",
    "mean_cost",
    "mean_cost_of_mistakes",
    "measure",
    "pairwise_diversity",
    "percentile_interval",
    "precision_recall_f1",
    "sinkhorn_divergence",
    "smoothness_energy",
    "student_interval",
    "top_k_accuracy",
    "unbalanced_distance",
    "wasserstein_distance",
]
