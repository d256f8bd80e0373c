"""The front door."""

import numpy as np
import pytest
from problems import MASSES, fuse_with, make_case, rule_with, solve_with

import wassemble as ws


@pytest.mark.parametrize("mass", MASSES)
def test_fuse_returns_the_barycenter(mass):
    case = make_case(1, n_source=(3, 4, 5), mass=mass)
    consensus = ws.fuse(
        case.histograms,
        kernel=case.kernels,
        weights=case.weights,
        kind=case.kind,
        rule=ws.Barycenter(mass),
    )
    np.testing.assert_allclose(consensus, case.solve().barycenter, rtol=1e-6)


def test_histograms_in_give_histograms_out():
    """Also where one model rules out what another is sure of."""
    case = make_case(2)
    few = rule_with(max_sweeps=2, tolerance=None)
    for rule in (ws.USUAL_RULE, ws.Barycenter(MASSES[2]), ws.GEOMETRIC, few):
        consensus = ws.fuse(case.histograms, rule=rule)
        np.testing.assert_allclose(consensus.sum(axis=1), 1)
    np.testing.assert_allclose(ws.fuse([[1.0, 0.0], [0.0, 1.0]]), [0.5, 0.5])


@pytest.mark.parametrize("n_models", [1, 2, 5])
@pytest.mark.parametrize("mass", [*MASSES, ws.Unbalanced(0.5, epsilon=1.0)])
def test_models_that_agree_are_left_as_they_are(n_models, mass):
    histogram = make_case(2).histograms[0]
    consensus = ws.fuse([histogram] * n_models, rule=rule_with(mass=mass))
    np.testing.assert_allclose(consensus, histogram, rtol=1e-9)


def test_without_a_kernel_the_consensus_is_a_power_mean():
    case = make_case(2)
    exponent = 2 / 2.3
    mean = ws.PowerMean(exponent / (1 + exponent)).fuse(case.histograms).scores
    expected = mean / mean.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ws.fuse(case.histograms), expected, rtol=1e-12)


def test_scores_are_left_as_they_are():
    scores = [[0.9, 0.8], [0.7, 0.1]]
    found = ws.fuse(scores, kind="multilabel", rule=ws.Barycenter(MASSES[1]))
    raw = ws.solve_barycenter(scores, np.eye(2), ws.Barycenter(MASSES[1])).barycenter
    np.testing.assert_allclose(found, raw, rtol=1e-6)
    sums_to_one = [[0.9, 0.1], [0.7, 0.3]]
    kept = ws.fuse(sums_to_one, kind="multilabel", rule=rule_with(mass=MASSES[1]))
    assert abs(kept.sum() - 1) > 1e-3


def test_scores_must_be_called_so():
    with pytest.raises(ws.InvalidInputError, match=r"must sum to 1 in each row.*\nhint: .*kind="):
        ws.fuse([[0.9, 0.8], [0.7, 0.1]])
    with pytest.raises(ws.InvalidInputError, match="must sum to 1 in each row"):
        ws.fuse([[0.9, 0.8], [0.7, 0.1]], rule=ws.Barycenter(MASSES[2]))
    with pytest.raises(ws.InvalidInputError, match="must sum to 1 in each row"):
        ws.fuse([[0.9, 0.8], [0.7, 0.1]], kind="multiclass", rule=ws.ARITHMETIC)
    with pytest.raises(ws.InvalidInputError, match="`kind` must be"):
        ws.fuse([[0.9, 0.8], [0.7, 0.1]], kind="many")


@pytest.mark.parametrize("rule", [ws.ARITHMETIC, ws.GEOMETRIC, ws.HELLINGER])
def test_means_are_rules(rule):
    case = make_case(3)
    mean = rule.fuse(case.histograms, weights=case.weights).scores
    consensus = ws.fuse(case.histograms, weights=case.weights, rule=rule)
    np.testing.assert_allclose(consensus, mean / mean.sum(axis=1, keepdims=True), rtol=1e-12)
    raw = ws.fuse(case.histograms, weights=case.weights, rule=rule, kind="multilabel")
    np.testing.assert_array_equal(raw, mean)


def test_a_mean_is_of_what_kernels_make_of_each_model():
    kernel = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    found = ws.fuse([[0.6, 0.4], [0.2, 0.8]], kernel=kernel, rule=ws.ARITHMETIC)
    np.testing.assert_allclose(found, [0.2, 0.2, 0.6])


def test_different_label_sets_need_kernels():
    with pytest.raises(ws.InvalidInputError, match="same label set, not empty; got 2, 3"):
        ws.fuse([[0.5, 0.5], [0.2, 0.3, 0.5]])
    with pytest.raises(ws.InvalidInputError, match="one array per model; got float"):
        ws.fuse(3.0)


def test_rows_that_did_not_converge_are_a_warning():
    case = make_case(4, kernel_spread=8.0)
    with pytest.warns(ws.ConvergenceWarning, match=r"of 4 rows: stopped after the allowed"):
        ws.fuse(case.histograms, kernel=case.kernels[0], rule=rule_with(max_sweeps=3))


def test_mass_that_cannot_arrive_is_a_warning():
    with pytest.warns(
        ws.ConvergenceWarning,
        match="1 of 1 rows: some mass .* only to labels that other models rule out",
    ):
        ws.fuse([[0.5, 0.5]], kernel=[[1.0, 0.0], [0.0, 0.0]])


def test_a_fixed_number_of_sweeps_is_no_warning():
    case = make_case(5)
    consensus = ws.fuse(
        case.histograms, kernel=case.kernels[0], rule=rule_with(max_sweeps=3, tolerance=None)
    )
    assert consensus.shape == (4, 6)


@pytest.mark.filterwarnings("ignore::wassemble.ConvergenceWarning")
@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("per_label", [False, True])
@pytest.mark.parametrize("kind", ["identity", "diagonal", "per sample", "one per model"])
def test_the_short_way_to_a_diagonal_consensus_is_the_long_way(
    mass, dtype, zeros, per_label, kind, rng
):
    case = make_case(6, n_source=5, n_target=5, mass=mass, dtype=dtype, per_label=per_label)
    diagonals = rng.uniform(0.2, 1, size=(4, 5)).astype(dtype)
    histograms = case.histograms
    if zeros:
        diagonals[1, 2] = 0
        histograms = [h * (rng.uniform(size=h.shape) > 0.3) + 1e-3 * (h > 2) for h in histograms]
        histograms = [h + (h.sum(axis=1, keepdims=True) == 0) for h in histograms]
        if isinstance(mass, ws.Balanced):
            histograms = [h / h.sum(axis=1, keepdims=True) for h in histograms]
    kernel = {
        "identity": ws.kernels.IdentityKernel(5),
        "diagonal": ws.kernels.DiagonalKernel(diagonals[1]),
        "per sample": ws.kernels.DiagonalKernel(diagonals),
        "one per model": [ws.kernels.DiagonalKernel(diagonal) for diagonal in diagonals[:3]],
    }[kind]
    options = {"weights": case.weights, "mass": mass}
    long_way = solve_with(histograms, kernel, **options).barycenter
    short_way = fuse_with(histograms, kernel=kernel, kind=case.kind, **options)
    if isinstance(mass, ws.Balanced):
        sums = long_way.sum(axis=1, keepdims=True)
        long_way = np.divide(long_way, sums, out=np.zeros_like(long_way), where=sums > 0)
    np.testing.assert_allclose(short_way, long_way, rtol=1e-5, atol=1e-12)


def test_the_short_way_warns_of_mass_under_a_closed_gate():
    case = make_case(7, n_source=3, n_target=3, mass=MASSES[1])
    gate = np.ones((4, 3))
    gate[2, 1] = 0
    with pytest.warns(ws.ConvergenceWarning, match="1 of 4 rows: some mass has no target label"):
        consensus = ws.fuse(
            case.histograms,
            kernel=ws.kernels.DiagonalKernel(gate),
            kind="multilabel",
            rule=ws.Barycenter(MASSES[1]),
        )
    assert consensus[2, 1] == 0


def test_a_mean_has_no_knobs_of_the_barycenter():
    with pytest.raises(TypeError, match="tolerance"):
        ws.PowerMean(1.0, tolerance=1e-6)
    with pytest.raises(TypeError, match="max_sweeps"):
        ws.fuse(make_case(8).histograms, max_sweeps=5)


@pytest.mark.parametrize("rule", [ws.solve_barycenter, "mean", None])
def test_a_rule_is_a_value(rule):
    with pytest.raises(ws.InvalidInputError, match=r"`rule` must be a rule; got.*\nhint: ws.Bary"):
        ws.fuse(make_case(8).histograms, rule=rule)


def test_a_generator_of_models_is_read_once():
    case = make_case(9)
    np.testing.assert_array_equal(ws.fuse(h for h in case.histograms), ws.fuse(case.histograms))


@pytest.mark.parametrize("weights", [[1 - 1e-16, 0.0], [1.0, 0.0], [0.5 + 1e-16, 0.5 - 1e-16]])
def test_weights_off_by_rounding_are_weights(weights):
    case = make_case(10, n_models=2)
    consensus = ws.fuse(case.histograms, kernel=case.kernels[0], weights=weights)
    assert np.isfinite(consensus).all()


def _overlapping(kind):
    scores = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 50))
    return scores, {
        "backwards": scores[0][::-1],
        "in place": scores[1],
        "between two models": scores.reshape(100, 4)[25:75],
        "labels swapped": scores[0][:, ::-1],
    }[kind]


@pytest.mark.parametrize("kind", ["backwards", "in place", "between two models", "labels swapped"])
@pytest.mark.parametrize("kernel", [None, np.exp(-np.abs(np.subtract.outer(range(4), range(4))))])
def test_out_may_lie_over_the_predictions(kind, kernel, monkeypatch):
    monkeypatch.setattr("wassemble.solvers.problem.rows_per_tile", lambda *_: 8)
    scores, out = _overlapping(kind)
    expected = ws.fuse(scores.copy(), kernel=kernel)
    assert ws.fuse(scores, kernel=kernel, out=out) is out
    np.testing.assert_array_equal(out, expected)


def test_out_may_lie_over_a_kernel_and_over_weights():
    rng = np.random.default_rng(0)
    scores, diagonals = rng.dirichlet(np.ones(4), size=(2, 50)), rng.uniform(0.1, 1, (50, 4))
    mass = ws.Unbalanced(1.0, epsilon=1.0)
    expected = ws.fuse(
        scores, kernel=ws.kernels.DiagonalKernel(diagonals.copy()), rule=rule_with(mass=mass)
    )
    out = diagonals[::-1]
    ws.fuse(scores, kernel=ws.kernels.DiagonalKernel(diagonals), out=out, rule=rule_with(mass=mass))
    np.testing.assert_array_equal(out, expected)
    weights = rng.uniform(0.1, 1, (2, 50, 4))
    weights /= weights.sum(axis=0)
    expected = ws.fuse(scores, weights=weights.copy(), rule=rule_with(mass=mass))
    np.testing.assert_array_equal(
        ws.fuse(scores, weights=weights, out=weights[0], rule=rule_with(mass=mass)), expected
    )


@pytest.mark.parametrize("name", ["mass_penalty", "mass", "epsilon", "kernels"])
def test_an_unknown_argument_is_one_of_fuse(name):
    hint = "kernel=" if name == "kernels" else r"rule=Barycenter\(Unbalanced\(2, epsilon=0.3\)\)"
    with pytest.raises(TypeError, match=rf"^fuse\(\) got .* '{name}'; hint: {hint}"):
        ws.fuse([[0.5, 0.5], [0.4, 0.6]], **{name: 2})


def test_hints_lead_on():
    table = ws.Predictions("a", ["x"], ["cat", "dog"], [[0.5, 0.5]])
    with pytest.raises(ws.InvalidInputError, match=r"hint: .*Predictions\(model, samples, labels"):
        ws.fuse([table, np.array([[0.5, 0.5]])])
    with pytest.raises(ws.InvalidInputError, match=r"a kernel each, in a list: \[first, second"):
        ws.fuse([np.array([[0.5, 0.5]]), np.array([[1.0]])])
    kernel = ws.kernels.LabelledKernel(np.eye(2), ["cat", "dog"], ["cat", "dog"])
    with pytest.raises(ws.InvalidInputError, match="kernels must be a dict of names to kernels"):
        ws.learn_ensemble([table, table.replace(model="b")], ["cat"], kernels=kernel)


@pytest.mark.parametrize(
    ("rule", "hint"),
    [("arithmetic", "ws.ARITHMETIC$"), (ws.Balanced(), r"Barycenter\(Balanced\(\)\)$")],
)
def test_a_wrong_rule_is_told_the_right_one(rule, hint):
    with pytest.raises(ws.InvalidInputError, match=f"hint: {hint}"):
        ws.fuse([[0.5, 0.5], [0.4, 0.6]], rule=rule)


def test_plans_and_fusers_have_short_words():
    table = ws.Predictions("a", ["x"], ["cat", "dog"], [[0.5, 0.5]])
    assert repr(ws.Fusion().plan([table])) == "FusionPlan('a' to 2 target labels)"
    assert repr(ws.Fusion().prepare([table])) == "TableFuser(FusionPlan('a' to 2 target labels))"
