"""Bounds on real predictions, and the exact barycenter behind them."""

import numpy as np
import pytest

import wassemble as ws
from paper import theory as properties
from paper.theory import exact_barycenter, maximum_mean_discrepancy
from wassemble.metrics import wasserstein_distance


@pytest.fixture(scope="module")
def found():
    config = properties.Config(
        n_samples=8, n_divergences=4, n_scores=2, mass_penalties=(2.0, 1000.0)
    )
    return properties.run(config)


def test_the_exact_barycenter_of_two_points_on_a_line_is_between_them():
    places = np.arange(5.0)
    cost = np.square(places[:, None] - places)
    found = exact_barycenter(np.eye(5)[[0, 4]], cost)
    np.testing.assert_allclose(found, np.eye(5)[2], atol=1e-9)


def test_no_consensus_costs_less_than_the_exact_barycenter():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(6, 2))
    cost = np.square(vectors[:, None] - vectors).sum(axis=2)
    histograms = rng.dirichlet(np.ones(6), size=3)
    histograms[0, 2] = 0
    histograms /= histograms.sum(axis=1, keepdims=True)

    def total(consensus):
        return wasserstein_distance(histograms, np.tile(consensus, (3, 1)), cost).mean()

    best = total(exact_barycenter(histograms, cost))
    entropic = ws.solve_barycenter(
        histograms, ws.kernels.from_cost(cost, 0.05), ws.Barycenter(max_sweeps=50_000)
    ).barycenter
    others = [*histograms, histograms.mean(axis=0), entropic]
    assert all(best <= total(other) + 1e-9 for other in others)
    assert total(entropic) < 1.2 * best


def test_what_is_proved_holds(found):
    held = {claim.source: claim.held for claim in found.claims}
    for source in ("proposition 1.1", "lemma 2", "proposition 2.2", "proposition 3.2"):
        assert held[source], source
    assert held["proposition 3.3"]
    assert held["appendix D.1"]
    powers = {claim.source: claim.power for claim in found.claims}
    assert all(powers.values())
    assert powers["proposition 1.1"] == "18 % of images"  # of eight
    assert powers["appendix D.1"] == "exact"


def test_a_large_mass_penalty_leaves_the_masses_alone_and_not_the_scores(found):
    rows = {row[0]: row[-1] for row in found.tables[-1].rows}
    assert rows["equation 2"] == pytest.approx(
        rows["Hellinger distance of the total masses"], rel=0.5
    )
    assert rows["equation 2"] < rows["Hellinger distance of the scores"] / 2
    assert rows["equation 2, K = I"] == pytest.approx(rows["Hellinger distance of the scores"])


def test_the_arithmetic_mean_is_as_far_from_a_single_truth_as_the_models(found):
    distances = {row[0]: row[1] for row in found.tables[1].rows}
    assert distances["arithmetic mean"] == pytest.approx(distances["models"])
    assert distances["Wasserstein, exact"] < distances["models"]


def test_the_discrepancy_is_0_between_equals_and_that_of_the_energy_distance():
    places = np.array([0.0, 1.0, 3.0])
    cost = np.abs(places[:, None] - places)
    p, q = np.array([[0.5, 0.5, 0.0]]), np.array([[0.0, 0.5, 0.5]])
    assert maximum_mean_discrepancy(p, p, cost) == 0
    # On a line: the integral of the squared difference of the cumulated histograms.
    steps = np.square(np.cumsum(p - q, axis=1))[0, :-1] @ np.diff(places)
    assert maximum_mean_discrepancy(p, q, cost) == pytest.approx(steps)
