"""Metrics: how good predictions are, what they are like, and how sure a difference is.

Pure functions on arrays. Scores and histograms are non-negative; where a function needs
histograms, it divides each row by its sum. A row that is 0 everywhere or nan everywhere
has no answer. It counts as wrong where the answer is compared with the truth and as a
uniform histogram where a histogram is; entropies and distances of it are nan. Multi-label,
it names no label.
"""

from wassemble.metrics.comparison import (
    Comparison as Comparison,
    Estimate as Estimate,
    PairedBootstrap as PairedBootstrap,
    compare as compare,
)
from wassemble.metrics.measures import (
    ACCURACY as ACCURACY,
    BRIER_SCORE as BRIER_SCORE,
    CALIBRATION_ERROR as CALIBRATION_ERROR,
    LOG_LOSS as LOG_LOSS,
    MEAN as MEAN,
    MEAN_AVERAGE_PRECISION as MEAN_AVERAGE_PRECISION,
    MEAN_LOSS as MEAN_LOSS,
    MULTICLASS as MULTICLASS,
    QUADRATIC_KAPPA as QUADRATIC_KAPPA,
    RANKED_PROBABILITY_SCORE as RANKED_PROBABILITY_SCORE,
    TOP_5_ACCURACY as TOP_5_ACCURACY,
    USUAL as USUAL,
    Measure as Measure,
    cost_measure as cost_measure,
    measure as measure,
)
from wassemble.metrics.multi_class import (
    CalibrationBins as CalibrationBins,
    accuracy as accuracy,
    brier_score as brier_score,
    calibration_bins as calibration_bins,
    expected_calibration_error as expected_calibration_error,
    log_loss as log_loss,
    mean_cost as mean_cost,
    mean_cost_of_mistakes as mean_cost_of_mistakes,
    top_k_accuracy as top_k_accuracy,
)
from wassemble.metrics.multi_label import (
    PrecisionRecallF1 as PrecisionRecallF1,
    average_precision as average_precision,
    mean_average_precision as mean_average_precision,
    precision_recall_f1 as precision_recall_f1,
)
from wassemble.metrics.ordered import (
    continuous_ranked_probability_score as continuous_ranked_probability_score,
    expected_cost as expected_cost,
    interval_coverage as interval_coverage,
    quadratic_kappa as quadratic_kappa,
    ranked_probability_score as ranked_probability_score,
    weighted_interval_score as weighted_interval_score,
)
from wassemble.metrics.properties import (
    coupling_entropy as coupling_entropy,
    entropy as entropy,
    pairwise_diversity as pairwise_diversity,
    smoothness_energy as smoothness_energy,
)
from wassemble.metrics.raters import krippendorff_alpha as krippendorff_alpha
from wassemble.metrics.resamples import (
    Resamples as Resamples,
    percentile_interval as percentile_interval,
    student_interval as student_interval,
)
from wassemble.metrics.transport import (
    entropic_distance as entropic_distance,
    extended_kl as extended_kl,
    sinkhorn_divergence as sinkhorn_divergence,
    unbalanced_distance as unbalanced_distance,
    wasserstein_distance as wasserstein_distance,
)
