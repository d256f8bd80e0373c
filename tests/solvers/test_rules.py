"""Rules are values: what they refuse, how they print, and that they fuse as their parts do."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import scipy.sparse as sp
from covering import covering
from problems import MASSES, SWEEPS, make_case, with_zeros

import wassemble as ws
from wassemble.solvers.power_means import power_mean_of

pytestmark = pytest.mark.usefixtures("sweeps")

RULES = (
    ws.Barycenter(),
    ws.USUAL_RULE,
    ws.Barycenter(ws.Unbalanced(0.5, epsilon=0.5), max_sweeps=5, tolerance=None, n_top=7),
    ws.Barycenter(debias=True, max_sweeps=20),
    ws.Barycenter(mixed_precision=True),
    ws.ARITHMETIC,
    ws.PowerMean(0.75),
    ws.GatedMean(0.5, n_top=2, floor=0.7),
    ws.GatedBarycenter(0.75, n_top=2, floor=0.7),
    ws.Single("forest"),
    ws.Single(1),
    ws.LineBarycenter(1),
    ws.LineBarycenter(2),
    ws.LineBarycenter(2, positions=(0, 1, 3)),
    ws.TreeBarycenter((3, 3, 3, -1)),
    ws.TreeBarycenter((3, 3, 3, -1), lengths=(1, 1, 2, 0)),
)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_goes_to_json_and_comes_back(rule):
    back = ws.Rule.from_dict(json.loads(json.dumps(rule.to_dict())))
    assert back == rule
    assert type(back) is type(rule)
    assert hash(back) == hash(rule)


def test_rules_differ_where_a_knob_does():
    assert len(set(RULES)) == len(RULES)
    assert ws.PowerMean(1) == ws.ARITHMETIC
    assert ws.Barycenter(tolerance=1e-5) != ws.Barycenter()


def test_a_rule_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        ws.ARITHMETIC.order = 2.0


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (ws.Barycenter(), "balanced barycenter"),
        (ws.USUAL_RULE, "barycenter, exponent 0.87"),
        (ws.Barycenter(max_sweeps=5, tolerance=None), "balanced barycenter, 5 sweeps"),
        (
            ws.Barycenter(ws.Unbalanced(0.9, epsilon=0.1), max_sweeps=5, tolerance=None),
            "barycenter, exponent 0.9, 5 sweeps",
        ),
        (ws.Barycenter(n_top=9), "balanced barycenter, top 9"),
        (ws.Barycenter(debias=True), "debiased barycenter"),
        (ws.ARITHMETIC, "arithmetic mean"),
        (ws.GEOMETRIC, "geometric mean"),
        (ws.HELLINGER, "Hellinger mean"),
        (ws.PowerMean(0.75), "power mean 0.75"),
        (ws.GatedMean(1.0, 2, 0.7), "arithmetic mean gated (top 2, floor 0.7)"),
        (ws.GatedBarycenter(0.75, 2, 0.7), "diagonal kernel (top 2, floor 0.7), exponent 0.75"),
        (ws.Single("forest"), "forest alone"),
        (ws.Single(2), "model 2 alone"),
        (ws.LineBarycenter(1), "median on a line"),
        (ws.LineBarycenter(2), "mean of quantiles"),
        (ws.LineBarycenter(2, positions=(0, 1, 3)), "mean of quantiles"),
        (ws.TreeBarycenter((2, 2, -1)), "median in a tree, 3 nodes"),
    ],
)
def test_a_rule_prints_itself_in_words(rule, words):
    assert str(rule) == words


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ws.Barycenter(2.0), "`mass` must be Balanced"),
        (lambda: ws.Barycenter(max_sweeps=0), "`max_sweeps` must be at least 1"),
        (lambda: ws.Barycenter(tolerance=-1), "`tolerance` must be finite and above 0"),
        (lambda: ws.Barycenter(debias="yes"), "`debias` must be True or False"),
        (lambda: ws.Barycenter(n_top=0), "`n_top` must be at least 1"),
        (lambda: ws.Barycenter(ws.Unbalanced(1, epsilon=1), debias=True), "must go with mass=Bal"),
        (lambda: ws.Barycenter(tolerance=None, mixed_precision=True), "must go with a tolerance"),
        (lambda: ws.PowerMean(-0.5), "`order` must be finite and at least 0"),
        (lambda: ws.GatedMean(1.0, n_top=0, floor=0.5), "`n_top` must be at least 1"),
        (lambda: ws.GatedMean(1.0, n_top=2, floor=1.5), "`floor` must be from 0 to 1"),
        (
            lambda: ws.GatedBarycenter(1.5, n_top=2, floor=0.5),
            "`exponent` must be above 0 and at most 1",
        ),
        (lambda: ws.Single(-1), "`model` must be at least 0"),
        (lambda: ws.Single("forest").fuse([[1.0]]), "told by its place"),
        (lambda: ws.Single(1).fuse([[1.0]]), "`model` must be from 0 to 0"),
        (lambda: ws.LineBarycenter(3), "`power` must be 1 or 2"),
        (lambda: ws.LineBarycenter(1, positions=(0, 2, 0)), "`positions` must differ"),
        (lambda: ws.LineBarycenter(2, positions=(0, np.inf)), "`positions` must be finite"),
        (lambda: ws.LineBarycenter(2, (0, 1)).fuse([[0.5, 0.2, 0.3]]), "each of the 3 target"),
        (
            lambda: ws.LineBarycenter(1).fuse(np.ones((2, 1, 2)) / 2, weights=[[0.5, 1], [0.5, 0]]),
            "must be one per model",
        ),
        (lambda: ws.TreeBarycenter((1, 0)), "its own ancestor"),
        (lambda: ws.TreeBarycenter((-1, -1)), "one node without a parent"),
        (lambda: ws.TreeBarycenter((2, -1)), "from -1 to 1"),
        (lambda: ws.TreeBarycenter((1.5, -1)), "the place of the node above"),
        (lambda: ws.TreeBarycenter((1, -1), lengths=(1,)), "one per node, 2"),
        (lambda: ws.TreeBarycenter((1, -1), lengths=(-1, 0)), "at least 0"),
        (lambda: ws.TreeBarycenter((1, -1)).fuse([[0.5, 0.2, 0.3]]), "as its first nodes"),
        (lambda: ws.Rule.from_dict({"order": 1}), "must be written as"),
        (lambda: ws.Rule.from_dict({"rule": "median"}), "must be one of barycenter, power mean"),
        (lambda: ws.Rule.from_dict({"rule": "power mean", "tolerance": 1}), "has no 'tolerance'"),
        (lambda: ws.Rule.from_dict({"rule": "power mean"}), "must come with all of its knobs"),
        (lambda: ws.Rule.from_dict({"rule": "barycenter", "mass": "much"}), "a mass must be"),
        (lambda: ws.solve_barycenter([[1.0]], [[1.0]], ws.ARITHMETIC), "must be a Barycenter"),
        (lambda: ws.ARITHMETIC.fuse([[1.0]], holds="mass"), "`holds` must be"),
    ],
)
def test_a_rule_refuses_what_it_cannot_mean(make, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        make()


def test_a_mean_has_no_tolerance():
    with pytest.raises(TypeError, match="tolerance"):
        ws.PowerMean(1.0, tolerance=1e-6)


# -- fusing ------------------------------------------------------------------------------


def carried(histograms, kernel, *, keeps_mass):
    if keeps_mass:
        sums = kernel.sum(axis=1)
        histograms = np.divide(histograms, sums, out=np.zeros_like(histograms), where=sums > 0)
    return histograms @ kernel


@pytest.mark.parametrize("holds", ["histograms", "scores", "either"])
@pytest.mark.parametrize("order", [0.0, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("per_label", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_mean_through_kernels_is_the_mean_of_models_carried_through_them(
    holds, order, per_label, is_sparse
):
    case = with_zeros(make_case(3, n_source=(4, 5, 3), per_label=per_label), 1, histograms=False)
    kernels = [sp.csr_array(k) if is_sparse else k for k in case.kernels]
    fused = ws.PowerMean(order).fuse(case.histograms, kernels, weights=case.weights, holds=holds)
    pairs = zip(case.histograms, case.kernels, strict=True)
    images = np.array([carried(h, k, keeps_mass=holds != "scores") for h, k in pairs])
    weights = case.weights[:, None, :] if per_label else case.weights[:, None, None]
    np.testing.assert_allclose(fused.scores, power_mean_of(images, weights, order=order))
    assert fused.are_histograms == (holds != "scores")


def test_scores_that_may_be_either_are_carried_as_what_they_are():
    kernel = np.array([[1.0, 1.0], [0.0, 1.0]])
    histograms = np.array([[0.5, 0.5], [0.2, 0.8]])
    kept = ws.ARITHMETIC.fuse([histograms], kernel)
    np.testing.assert_allclose(kept.scores.sum(axis=1), 1)
    scores = np.array([[0.5, 0.5], [0.2, 0.9]])  # one row of two is no histogram
    raw = ws.ARITHMETIC.fuse([scores], kernel)
    assert not raw.are_histograms
    np.testing.assert_allclose(raw.scores, scores @ kernel)


def test_models_that_share_a_kernel_keep_their_weights():
    first, second = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    rows = [np.array([1.0, 0.0])] * 3
    fused = ws.ARITHMETIC.fuse(rows, [first, second, first], weights=[0.5, 0.3, 0.2])
    np.testing.assert_allclose(fused.scores, [[0.7, 0.3]])


def test_a_mean_says_how_each_row_ended():
    kernel = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    one = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    other = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    fused = ws.GEOMETRIC.fuse([one, other], kernel)
    ends = ws.Status.CONVERGED, ws.Status.NO_MASS, ws.Status.NO_MASS
    assert tuple(fused.statuses) == ends
    lost = ws.ARITHMETIC.fuse([one, other], kernel).statuses
    assert tuple(lost) == (ws.Status.CONVERGED, ws.Status.CONVERGED, ws.Status.UNREACHABLE_MASS)


@pytest.mark.parametrize("n_samples", [1, 5])
def test_a_single_model_is_carried_by_its_own_kernel(n_samples):
    case = make_case(5, n_source=(4, 5, 3), n_samples=n_samples)
    fused = ws.Single(1).fuse(case.histograms, case.kernels, weights=case.weights)
    expected = carried(case.histograms[1], case.kernels[1], keeps_mass=True)
    np.testing.assert_allclose(fused.scores, expected)


def test_a_gate_lets_through_what_some_model_ranks_high():
    images = np.array([[[0.6, 0.3, 0.1]], [[0.1, 0.5, 0.4]]])
    fused = ws.GatedMean(1.0, n_top=1, floor=0.5).fuse(images).scores
    np.testing.assert_allclose(fused, [[0.35, 0.4, 0.125]])
    silent = ws.GatedMean(1.0, n_top=1, floor=0.5).fuse(images, weights=[1.0, 0.0]).scores
    np.testing.assert_allclose(silent, [[0.6, 0.15, 0.05]])


def test_a_gated_barycenter_is_that_of_its_diagonal_kernel():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.01, 1, size=(3, 6, 5))
    top = np.sort(scores, axis=2)[:, :, -2:-1]
    gate = np.where((scores >= top).any(axis=0), 1.0, 0.3)
    mass = ws.Unbalanced(0.75, epsilon=0.25)
    expected = ws.solve_barycenter(scores, ws.kernels.DiagonalKernel(gate), ws.Barycenter(mass))
    fused = ws.GatedBarycenter(0.75, n_top=2, floor=0.3).fuse(scores, holds="scores")
    np.testing.assert_allclose(fused.scores, expected.barycenter, rtol=1e-9)


@pytest.mark.parametrize("mass", MASSES, ids=str)
def test_a_barycenter_fuses_as_the_solver_does(mass):
    case = make_case(7, mass=mass, n_samples=1)
    rule = ws.Barycenter(mass)
    expected = ws.solve_barycenter(case.histograms, case.kernels, rule, weights=case.weights)
    fused = rule.fuse(case.histograms, case.kernels, weights=case.weights)
    np.testing.assert_array_equal(fused.scores, expected.barycenters)
    assert fused.result.sweeps.tolist() == expected.sweeps.tolist()


@pytest.mark.parametrize("rule", [ws.USUAL_RULE, ws.HELLINGER], ids=str)
def test_the_consensus_goes_where_it_is_told(rule):
    histograms = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 6))
    expected = rule.fuse(histograms).scores
    out = np.empty((6, 4))
    assert rule.fuse(histograms, out=out).scores is out
    np.testing.assert_array_equal(out, expected)
    rule.fuse(histograms, out=histograms[1])  # which is read
    np.testing.assert_array_equal(histograms[1], expected)
    with pytest.raises(ws.InvalidInputError, match="`out` must be a floating NumPy array"):
        rule.fuse(histograms, out=np.empty((6, 3)))


@pytest.mark.parametrize("rule", [*RULES[:3], *RULES[5:9], *RULES[11:]], ids=str)
def test_models_that_agree_are_left_as_they_are(rule):
    model = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    fused = rule.fuse([model, model], holds="histograms")
    gated = isinstance(rule, ws.GatedMean | ws.GatedBarycenter)
    expected = model if not gated else rule.to_histograms(fused.scores)
    np.testing.assert_allclose(rule.to_histograms(fused.scores), expected)
    np.testing.assert_allclose(rule.to_histograms(fused.scores).sum(axis=1), 1)


# -- prepared ----------------------------------------------------------------------------

DENSE, SPARSE, LOW_RANK, ZEROS, APART, DIAGONAL = (
    "dense",
    "sparse",
    "low rank",
    "with zeros",
    "too far apart",
    "diagonal",
)


def make_kernel(kind, rng, n_source, n_target, dtype):
    entries = np.exp(-3 * rng.uniform(size=(n_source, n_target))).astype(dtype)
    if kind == DENSE:
        return ws.kernels.DenseKernel(entries)
    if kind == LOW_RANK:
        factors = [rng.uniform(0.1, 1, size=(n, 2)).astype(dtype) for n in (n_source, n_target)]
        return ws.kernels.LowRankKernel(*factors)
    if kind == DIAGONAL:
        return ws.kernels.DiagonalKernel(rng.uniform(0.5, 1, n_target).astype(dtype))
    if kind == APART:
        entries[0, 0] = 1e-30
        return ws.kernels.DenseKernel(entries)
    entries[rng.uniform(size=entries.shape) < 0.4] = 0
    entries[np.arange(n_source), np.arange(n_source) % n_target] = 1
    entries[np.arange(n_target) % n_source, np.arange(n_target)] = 1
    return (
        ws.kernels.SparseKernel(sp.csr_array(entries))
        if kind == SPARSE
        else ws.kernels.DenseKernel(entries)
    )


def draw(seed, kind, mass, dtype):
    """Kernels, weights and samples at random; some shared, some of weight 0, some rows extreme."""
    rng = np.random.default_rng(seed)
    n_models, n_target = int(rng.integers(1, 5)), int(rng.integers(2, 9))
    share = kind == DIAGONAL or rng.random() < 0.6
    sizes = [n_target if kind == DIAGONAL else int(rng.integers(2, 9))] * n_models
    if not share:
        sizes = [int(rng.integers(2, 9)) for _ in range(n_models)]
    kernels = [make_kernel(kind, rng, size, n_target, dtype) for size in sizes]
    if share:
        kernels = kernels[:1] * n_models
    elif n_models > 2 and sizes[0] == sizes[2]:
        kernels[2] = kernels[0]
    weights = [None, rng.dirichlet(np.ones(n_models)), rng.dirichlet(np.ones(n_models), n_target).T]
    weights = weights[int(rng.integers(3))]
    if weights is not None and n_models > 1 and rng.random() < 0.3:
        weights[0] = 0
        weights /= weights.sum(axis=0)
    samples = []
    for _ in range(4):
        rows = [rng.dirichlet(np.full(size, 0.5)) for size in sizes]
        if rng.random() < 0.3:
            rows = [np.where(rng.random(len(row)) < 0.4, 0, row) for row in rows]
            rows = [row + (row.sum() == 0) for row in rows]
        rows = [row / row.sum() for row in rows]
        if not isinstance(mass, ws.Balanced):
            rows = [row * 10.0 ** rng.integers(-9, 5) for row in rows]
        samples.append([row.astype(dtype) for row in rows])
    return kernels, weights, samples


@covering(
    3,
    kind=[DENSE, SPARSE, LOW_RANK, ZEROS, APART, DIAGONAL],
    mass=MASSES,
    dtype=[np.float32, np.float64],
    seed=range(6),
    sweeps=SWEEPS,
)
def test_what_is_prepared_fuses_as_the_solver_does(seed, dtype, mass, kind):
    kernels, weights, samples = draw(seed, kind, mass, dtype)
    fixed = ws.Barycenter(mass, max_sweeps=5, tolerance=None)
    for rule in (fixed, ws.Barycenter(mass, max_sweeps=300)):
        fuser = rule.prepare(kernels, weights, dtype=dtype)
        close = {"rtol": 1e-5, "atol": 1e-30} if dtype == np.float32 else {"rtol": 1e-12}
        for sample in [*samples, samples[0]]:  # what came before leaves no trace
            stacked = np.array(sample) if len({len(row) for row in sample}) == 1 else sample
            expected = ws.solve_barycenter(sample, kernels, rule, weights=weights).barycenter
            found = fuser(stacked)
            assert found.shape == expected.shape
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, **close)
        batch = [np.array(rows) for rows in zip(*samples, strict=True)]
        expected = ws.solve_barycenter(batch, kernels, rule, weights=weights)
        np.testing.assert_allclose(fuser(batch), expected.barycenter, **close)
        assert fuser.run(batch).statuses.tolist() == expected.statuses.tolist()


@pytest.mark.parametrize("rule", RULES[5:9], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_that_are_prepared_are_the_same(rule, dtype):
    case = make_case(3, n_source=(4, 5, 3), dtype=dtype, per_label=True)
    fuser = rule.prepare(case.kernels, case.weights, dtype=dtype)
    expected = rule.fuse(case.histograms, case.kernels, weights=case.weights, holds="scores")
    np.testing.assert_allclose(fuser(case.histograms), expected.scores, rtol=1e-6)
    one = [rows[0] for rows in case.histograms]
    np.testing.assert_allclose(fuser(one), expected.scores[0], rtol=1e-6)


def test_a_single_model_is_prepared_by_its_place():
    case = make_case(3, n_source=(4, 5, 3))
    expected = ws.Single(2).fuse(case.histograms, case.kernels, holds="scores").scores
    found = ws.Single(2).prepare(case.kernels)(case.histograms)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("entry", "words"),
    [(np.nan, "must not be nan"), (np.inf, "must be finite"), (-0.1, "must not be negative")],
)
@pytest.mark.parametrize(
    "rule",
    [ws.USUAL_RULE, replace(ws.USUAL_RULE, max_sweeps=5, tolerance=None), ws.ARITHMETIC],
    ids=str,
)
def test_bad_entries_are_refused_by_what_is_prepared(rule, entry, words):
    fuser = rule.prepare(np.exp(-np.eye(3)), n_models=2)
    sample = np.full((2, 3), 0.3)
    sample[1, 2] = entry
    with pytest.raises(ws.InvalidInputError, match=f"{words}.* at model 1, sample 0"):
        fuser(sample)


@pytest.mark.parametrize("tolerance", [None, 1e-6])
def test_a_model_without_weight_has_no_say_in_what_is_prepared(tolerance, rng):
    kernel = np.exp(-rng.uniform(size=(4, 4)))
    rule = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=50, tolerance=tolerance)
    sample = rng.uniform(0.1, 1, size=(3, 4))
    found = rule.prepare(kernel, [0.3, 0.0, 0.7])(sample)
    expected = rule.prepare(kernel, [0.3, 0.7])(sample[[0, 2]])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_is_prepared_refuses_rows_that_are_no_histograms():
    fuser = ws.Barycenter().prepare(np.exp(-np.eye(3)), n_models=2)
    with pytest.raises(
        ws.InvalidInputError, match=r"must sum to 1 in each row; got 0\.9 at model 1"
    ):
        fuser(np.array([[0.4, 0.3, 0.3], [0.3, 0.3, 0.3]]))
    divides = ws.Barycenter().prepare(np.exp(-np.eye(3)), n_models=2, normalize=True)
    np.testing.assert_allclose(divides(np.array([[0.4, 0.4, 0.4], [2.0, 2.0, 2.0]])), 1 / 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ws.USUAL_RULE.prepare(np.eye(2)), "`n_models` must be given"),
        (lambda: ws.USUAL_RULE.prepare(np.eye(2), n_models=2, dtype=int), "float32 or float64"),
        (lambda: ws.USUAL_RULE.prepare([np.eye(2)] * 2, n_models=3), "one kernel per model"),
        (lambda: ws.USUAL_RULE.prepare(np.eye(2), [0.5, 0.6]), "`weights` must sum to 1"),
        (lambda: ws.ARITHMETIC.prepare(np.eye(2), np.ones((1, 4, 1))), "the same for all samples"),
        (
            lambda: ws.ARITHMETIC.prepare(ws.kernels.DiagonalKernel(np.ones((4, 2))), n_models=2),
            "the same for all samples",
        ),
        (lambda: ws.USUAL_RULE.prepare(np.eye(2), n_models=2)(np.ones((3, 2))), "2 models of 2 l"),
        (lambda: ws.USUAL_RULE.prepare(np.eye(2), n_models=2)(np.ones((2, 3))), "2 models of 2 l"),
    ],
)
def test_preparing_refuses_what_it_cannot_check_once(make, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        make()


@pytest.mark.parametrize("mass", MASSES, ids=str)
@pytest.mark.parametrize("tolerance", [None, 1e-6])
def test_one_sample_needs_no_more_than_its_sweeps(mass, tolerance, monkeypatch):
    for n_source in (5, (4, 5, 4)):
        case = make_case(2, mass=mass, n_samples=1, n_source=n_source)
        rule = ws.Barycenter(mass, max_sweeps=50, tolerance=tolerance)
        fuser = rule.prepare(case.kernels, case.weights)
        sample = [rows[0] for rows in case.histograms]
        expected = fuser.run(sample).scores[0]
        with monkeypatch.context() as patch:
            patch.setattr(type(fuser), "run", None)  # the ordinary way
            np.testing.assert_allclose(fuser(sample), expected, rtol=1e-12)
            if n_source == 5:
                np.testing.assert_allclose(fuser(np.array(sample)), expected, rtol=1e-12)


def test_what_is_prepared_takes_and_refuses_what_the_solver_does():
    fuser = ws.USUAL_RULE.prepare(np.exp(-np.eye(2)), n_models=2)
    expected = fuser(np.array([[0.5, 0.5], [0.25, 0.75]]))
    np.testing.assert_array_equal(fuser([[0.5, 0.5], [0.25, 0.75]]), expected)
    np.testing.assert_array_equal(fuser(np.float32([[0.5, 0.5], [0.25, 0.75]])), expected)
    masked = np.ma.masked_array([[0.5, 0.5], [0.25, 0.75]], mask=[[0, 1], [0, 0]])
    with pytest.raises(ws.InvalidInputError, match="masked array"):
        fuser(masked)
    with pytest.raises(ws.InvalidInputError, match="2 models of 2 labels"):
        fuser([[0.5, 0.5], [1.0]])


def test_a_fuser_serves_several_threads():
    rng = np.random.default_rng(0)
    fuser = ws.USUAL_RULE.prepare(np.exp(-rng.uniform(size=(30, 30))), n_models=4)
    samples = rng.uniform(0.01, 1, size=(64, 4, 30))
    expected = [fuser(sample) for sample in samples]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fuser, samples))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


FAR = np.array([[800.0, 801.0], [1.0, 0.0]])  # a row of exp(-cost) is too small for float64
PAIR = np.array([[[0.9, 0.1]], [[0.2, 0.8]]])


@pytest.mark.parametrize("rows", [FAR, np.array([[711.0, 712.0], [1.0, 0.0]])])
def test_means_carry_mass_through_rows_too_small_for_their_type(rows):
    kernel = ws.kernels.from_cost(rows, epsilon=1.0)
    shares = np.exp(rows.min(axis=1, keepdims=True) - rows)
    shares /= shares.sum(axis=1, keepdims=True)
    fused = ws.ARITHMETIC.fuse(PAIR, kernel, holds="histograms")
    np.testing.assert_allclose(fused.scores, (PAIR @ shares).mean(axis=0), rtol=1e-9)
    assert fused.statuses.tolist() == [ws.Status.CONVERGED]


def test_labels_of_rows_too_small_for_their_type_are_not_lost():
    kernel = ws.kernels.from_cost(FAR, epsilon=1.0)
    models = [
        ws.Predictions(name, ["s"], ["x", "y"], p) for name, p in zip("ab", PAIR, strict=True)
    ]
    named = ws.LabelledKernel(kernel, ["x", "y"], ["x", "y"])
    result = ws.Fusion(ws.Barycenter(), named).run(models)
    assert not any(model.lost_labels for model in result.account.models)
    np.testing.assert_allclose(
        result.consensus.scores, ws.Barycenter().fuse(PAIR, kernel).scores, rtol=1e-6
    )


@pytest.mark.parametrize("holds", ["scores", "histograms"])
@pytest.mark.parametrize("rule", [ws.ARITHMETIC, ws.GatedMean(1.0, 1, 0.5), ws.Single(1)], ids=str)
def test_means_take_tensors_through_kernels(rule, holds):
    torch = pytest.importorskip("torch")
    kernel = [[1.0, 0.5], [0.2, 1.0]]
    given = torch.tensor(PAIR, requires_grad=True)
    scores = rule.fuse(given, kernel, holds=holds).scores
    expected = rule.fuse(PAIR, kernel, holds=holds).scores
    np.testing.assert_allclose(scores.detach().numpy(), expected, rtol=1e-7)
    scores.sum().backward()
    assert torch.isfinite(given.grad).all()


@pytest.mark.parametrize("numbers", [(1e308, 1e308), (1e-320, 1e308)])
def test_a_mass_rule_without_an_exponent_is_refused(numbers):
    with pytest.raises(ws.InvalidInputError, match="their quotient is a number"):
        ws.Unbalanced(*numbers)
