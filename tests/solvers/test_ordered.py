"""Exact barycenters on lines and trees: laws, closed forms, and linear programs as oracles."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import wassemble as ws

SURE = np.eye(5)


def draw(seed, n_target=None):
    """Histograms and weights at random; some models sure, some weights equal."""
    rng = np.random.default_rng(seed)
    n_models, n_labels = int(rng.integers(1, 6)), n_target or int(rng.integers(1, 7))
    histograms = rng.dirichlet(np.full(n_labels, 0.5), n_models)
    if seed % 3 == 0:
        histograms = np.eye(n_labels)[rng.integers(n_labels, size=n_models)]
    weights = rng.dirichlet(np.ones(n_models)) if seed % 2 else np.full(n_models, 1 / n_models)
    return rng, histograms, weights


def draw_tree(rng, n_target):
    """Parents and lengths of a random tree; nodes that are no label are inside it."""
    n_nodes = n_target + int(rng.integers(1, 4))
    while True:
        order = rng.permutation(n_nodes)
        parents = np.full(n_nodes, -1)
        for place in range(1, n_nodes):
            parents[order[place]] = order[rng.integers(place)]
        if set(range(n_target, n_nodes)) <= set(parents.tolist()):
            return parents, rng.uniform(0, 2, n_nodes) if rng.random() < 0.5 else None


def tree_cost(parents, lengths, n_target):
    """Distances between labels, by climbing from both."""
    lengths = np.ones(len(parents)) if lengths is None else lengths

    def climb(node):
        above, length = {}, 0.0
        while node >= 0:
            above[node] = length
            length, node = length + lengths[node], parents[node]
        return above

    ways = [climb(label) for label in range(n_target)]
    pairs = [[min(a[k] + b[k] for k in a.keys() & b.keys()) for b in ways] for a in ways]
    return np.array(pairs)


def transport_cost(histogram, other, cost):
    """The least cost of moving one onto another, by linear programming."""
    n = len(histogram)
    sums = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    return linprog(cost.ravel(), A_eq=sums, b_eq=np.r_[histogram, other], method="highs").fun


def least_cost(histograms, weights, cost):
    """The cost of the best of all consensuses: couplings and consensus are found together."""
    n_models, n = histograms.shape
    n_free = n_models * n * n + n
    rows, sums = [], []
    for model, histogram in enumerate(histograms):
        own = slice(model * n * n, (model + 1) * n * n)
        sent, got = np.zeros((n, n_free)), np.zeros((n, n_free))
        sent[:, own], got[:, own] = np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))
        got[:, -n:] = -np.eye(n)
        rows += [sent, got]
        sums += [histogram, np.zeros(n)]
    prices = np.concatenate([*(weight * cost.ravel() for weight in weights), np.zeros(n)])
    problem = np.vstack(rows), np.concatenate(sums)
    return linprog(prices, A_eq=problem[0], b_eq=problem[1], method="highs").fun


def mean_cost(histograms, weights, consensus, cost):
    pairs = zip(weights, histograms, strict=True)
    return sum(weight * transport_cost(each, consensus, cost) for weight, each in pairs)


def fuse_one(rule, histograms, weights=None):
    return rule.fuse(histograms[:, None], weights=weights).scores[0]


# -- exact -------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_no_consensus_on_a_line_is_nearer_to_the_models_whatever_the_gaps(seed):
    rng, histograms, weights = draw(seed)
    points = np.cumsum(rng.uniform(0.1, 3, histograms.shape[1]))
    cost = np.abs(points[:, None] - points)
    fused = fuse_one(ws.LineBarycenter(1), histograms, weights)
    found = mean_cost(histograms, weights, fused, cost)
    assert found == pytest.approx(least_cost(histograms, weights, cost), abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_no_consensus_in_a_tree_is_nearer_to_the_models(seed):
    rng, histograms, weights = draw(seed)
    n_target = histograms.shape[1]
    parents, lengths = draw_tree(rng, n_target)
    cost = tree_cost(parents, lengths, n_target)
    fused = fuse_one(ws.TreeBarycenter(parents, lengths), histograms, weights)
    assert fused.sum() == pytest.approx(1)
    found = mean_cost(histograms, weights, fused, cost)
    assert found == pytest.approx(least_cost(histograms, weights, cost), abs=1e-8)


def test_medians_at_the_edges_of_a_tree_are_no_histogram():
    # Why the rule does not take them: both children have median 1/2, and so has their parent.
    models = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    parents = (3, 3, 4, 4, -1)
    fused = fuse_one(ws.TreeBarycenter(parents), models)
    assert fused.sum() == pytest.approx(1)
    weights = np.full(3, 1 / 3)
    cost = tree_cost(parents, None, 3)
    assert mean_cost(models, weights, fused, cost) == pytest.approx(
        least_cost(models, weights, cost)
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_the_mean_of_quantiles_is_that_of_a_fine_grid(seed, is_uneven):
    rng, histograms, weights = draw(seed)
    n_target = histograms.shape[1]
    points = np.cumsum(rng.uniform(0.1, 3, n_target)) if is_uneven else np.arange(n_target)
    fused = fuse_one(ws.LineBarycenter(2, points if is_uneven else None), histograms, weights)
    levels = (np.arange(100_000) + 0.5) / 100_000
    places = [np.searchsorted(each.cumsum(), levels).clip(0, n_target - 1) for each in histograms]
    quantiles = weights @ points[places]
    shared = [np.interp(quantiles, points, row).mean() for row in np.eye(n_target)]
    np.testing.assert_allclose(fused, shared, atol=2e-4)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_the_mean_of_quantiles_keeps_mass_and_mean(seed):
    rng, histograms, weights = draw(seed)
    points = np.cumsum(rng.uniform(0.1, 3, histograms.shape[1]))
    fused = fuse_one(ws.LineBarycenter(2, points), histograms, weights)
    assert fused.sum() == pytest.approx(1)
    assert fused @ points == pytest.approx(weights @ histograms @ points)


@pytest.mark.parametrize("power", [1, 2])
def test_the_entropic_barycenter_comes_near_as_epsilon_falls(power):
    # Smooth and far from each other, so that the barycenter is unique and lies on labels.
    grid = np.arange(40.0)
    models = np.exp(-0.5 * ((grid - np.array([[12.0], [16.0], [20.0]])) / 3) ** 2)
    models /= models.sum(axis=1, keepdims=True)
    exact = fuse_one(ws.LineBarycenter(power), models)
    gaps = []
    for epsilon in (30.0, 3.0, 0.3):
        kernel = np.exp(-(np.abs(grid[:, None] - grid) ** power) / epsilon)
        rule = ws.Barycenter(max_sweeps=3000, tolerance=1e-9)
        fused = rule.fuse(models[:, None], kernel).scores[0]
        gaps.append(np.abs(np.cumsum(fused - exact)).sum())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.2


# -- laws --------------------------------------------------------------------------------

LINES = (
    ws.LineBarycenter(1),
    ws.LineBarycenter(2),
    ws.LineBarycenter(2, positions=(0, 1, 3, 4, 8)),
)
MIXED = tuple(ws.LineBarycenter(power, positions=(3, 0, 8, 1, 4)) for power in (1, 2))
STAR = ws.TreeBarycenter((5, 5, 6, 6, 7, 7, 7, -1))
EXACT = (*LINES, *MIXED, STAR)


@pytest.mark.parametrize("rule", EXACT, ids=str)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_models_does_not_matter(rule, seed):
    rng, histograms, weights = draw(seed, 5)
    order = rng.permutation(len(weights))
    fused = fuse_one(rule, histograms, weights)
    again = fuse_one(rule, histograms[order], weights[order])
    np.testing.assert_allclose(again, fused, atol=1e-9)


@pytest.mark.parametrize("rule", EXACT, ids=str)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_model_of_weight_0_has_no_effect_and_one_given_twice_counts_twice(rule, seed):
    _, histograms, weights = draw(seed, 5)
    fused = fuse_one(rule, histograms, weights)
    more = np.concatenate([histograms, SURE[:1]])
    per_sample = np.stack([np.r_[weights, 0.0]] * 2, axis=1)[..., None]
    absent = rule.fuse(np.stack([more] * 2, axis=1), weights=per_sample).scores
    np.testing.assert_allclose(absent, [fused, fused], atol=1e-9)
    halves = np.r_[weights[:1] / 2, weights[1:], weights[:1] / 2]
    twice = fuse_one(rule, np.concatenate([histograms, histograms[:1]]), halves)
    np.testing.assert_allclose(twice, fused, atol=1e-9)


@pytest.mark.parametrize("rule", EXACT, ids=str)
def test_a_batch_is_its_rows_in_any_type_and_on_threads(rule):
    histograms = np.random.default_rng(0).dirichlet(np.ones(5), (4, 50_000))
    weights = [0.1, 0.2, 0.3, 0.4]
    fused = rule.fuse(histograms, weights=weights).scores
    np.testing.assert_array_equal(fused, rule.fuse(histograms, weights=weights, n_threads=1).scores)
    np.testing.assert_allclose(fused[777], fuse_one(rule, histograms[:, 777], weights), atol=1e-12)
    narrow = rule.fuse(histograms[:, :9].astype(np.float32), weights=weights).scores
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, fused[:9], atol=1e-5)


@pytest.mark.parametrize("rule", LINES[:2], ids=str)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_line_may_be_walked_from_either_end(rule, seed):
    _, histograms, weights = draw(seed)
    fused = fuse_one(rule, histograms, weights)
    back = fuse_one(rule, histograms[:, ::-1], weights)
    np.testing.assert_allclose(back[::-1], fused, atol=1e-9)


@pytest.mark.parametrize("rule", LINES[:2], ids=str)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_models_that_move_along_the_line_move_the_consensus_with_them(rule, seed):
    _, histograms, weights = draw(seed)
    behind, before = (np.pad(histograms, [(0, 0), ends]) for ends in ((0, 2), (2, 0)))
    fused = fuse_one(rule, behind, weights)
    np.testing.assert_allclose(fuse_one(rule, before, weights)[2:], fused[:-2], atol=1e-9)


@pytest.mark.parametrize("rule", LINES, ids=str)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_model_that_rises_does_not_lower_the_consensus(rule, seed):
    rng, histograms, weights = draw(seed, 5)
    higher = histograms.copy()
    step = histograms[0, :-1] * rng.random(4)  # some mass goes to the next label
    higher[0, :-1] -= step
    higher[0, 1:] += step
    below = [fuse_one(rule, each, weights).cumsum() for each in (histograms, higher)]
    assert (below[1] <= below[0] + 1e-9).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_labels_of_a_tree_may_be_renamed(seed):
    rng, histograms, weights = draw(seed, 5)
    parents, _ = draw_tree(rng, 5)
    order = rng.permutation(5)
    names = np.r_[order, np.arange(5, len(parents)), -1]  # the new node at each place is an old one
    new = np.argsort(names[:-1])
    other = np.where(parents[names[:-1]] < 0, -1, new[parents[names[:-1]]])
    fused = fuse_one(ws.TreeBarycenter(parents), histograms, weights)
    again = fuse_one(ws.TreeBarycenter(other), histograms[:, order], weights)
    np.testing.assert_allclose(again, fused[order], atol=1e-8)


@pytest.mark.parametrize("rule", EXACT, ids=str)
def test_scores_of_other_mass_are_divided_by_it_and_the_mean_mass_comes_back(rule):
    histograms = np.random.default_rng(1).dirichlet(np.ones(5), 3)
    masses, weights = np.array([0.5, 2.0, 4.0]), np.array([0.2, 0.3, 0.5])
    fused = fuse_one(rule, histograms, weights)
    scores = rule.fuse((masses[:, None] * histograms)[:, None], weights=weights).scores[0]
    np.testing.assert_allclose(scores, (weights @ masses) * fused, rtol=1e-9, atol=1e-12)
    histograms[2] = 0  # it says nothing of where it lies
    scores = rule.fuse((masses[:, None] * histograms)[:, None], weights=weights).scores[0]
    others = fuse_one(rule, histograms[:2], weights[:2] / 0.5)
    np.testing.assert_allclose(scores, (0.2 * 0.5 + 0.3 * 2.0) * others, rtol=1e-9, atol=1e-12)
    nobody = rule.fuse(np.zeros((2, 1, 5)))
    assert not nobody.scores.any()
    assert nobody.statuses.tolist() == [ws.Status.CONVERGED]


@pytest.mark.parametrize("rule", MIXED, ids=str)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_positions_say_the_line_whatever_the_order_of_columns(rule, seed):
    _, histograms, weights = draw(seed, 5)
    order = np.argsort(rule.positions)
    in_order = ws.LineBarycenter(rule.power, np.sort(rule.positions))
    expected = fuse_one(in_order, histograms[:, order], weights)
    np.testing.assert_allclose(fuse_one(rule, histograms, weights)[order], expected, atol=1e-12)


@pytest.mark.parametrize("rule", EXACT, ids=str)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_coupling_joins_both_at_the_least_cost(rule, seed):
    _, histograms, _ = draw(seed, 5)
    model, other = histograms[0], histograms[-1]
    coupling = rule.couple(model, other)
    assert coupling.min() >= 0
    np.testing.assert_allclose(coupling.sum(axis=1), model, atol=1e-12)
    np.testing.assert_allclose(coupling.sum(axis=0), other, atol=1e-12)
    points = (
        np.arange(5.0) if getattr(rule, "positions", None) is None else np.array(rule.positions)
    )
    steps = np.abs(points[:, None] - points)
    if rule is STAR:
        steps = tree_cost(rule.parents, None, 5)
    cost = steps ** getattr(rule, "power", 1)
    expected = transport_cost(model, other, cost)
    assert (coupling * cost).sum() == pytest.approx(expected, abs=1e-8)
    [apart] = rule.distances(model[None], other[None])
    assert apart == pytest.approx((coupling * steps).sum(), abs=1e-8)


@pytest.mark.parametrize("rule", EXACT, ids=str)
def test_models_are_carried_to_the_target_labels_first(rule):
    rng = np.random.default_rng(2)
    models = [rng.dirichlet(np.ones(n), 4) for n in (3, 6)]
    kernels = [rng.uniform(0.1, 1, (n, 5)) for n in (3, 6)]
    pairs = zip(models, kernels, strict=True)
    carried = np.array([model / kernel.sum(axis=1) @ kernel for model, kernel in pairs])
    fused = rule.fuse(models, kernels, holds="histograms").scores
    np.testing.assert_allclose(fused, rule.fuse(carried).scores, atol=1e-12)


@pytest.mark.parametrize("rule", LINES, ids=str)
@pytest.mark.parametrize("weights", [None, [0.2, 0.3, 0.5]])
def test_gradients_are_those_of_small_steps(rule, weights):
    torch = pytest.importorskip("torch")
    given = torch.tensor(np.random.default_rng(5).dirichlet(np.ones(5), (3, 2)), requires_grad=True)
    expected = rule.fuse(given.detach().numpy(), weights=weights, holds="scores").scores
    np.testing.assert_allclose(
        rule.fuse(given, weights=weights, holds="scores").scores.detach(), expected
    )

    def fuse(scores):
        return rule.fuse(scores, weights=weights, holds="scores").scores

    assert torch.autograd.gradcheck(fuse, (given,))


def test_weights_have_gradients_where_quantiles_are_averaged():
    torch = pytest.importorskip("torch")
    models = torch.tensor(np.random.default_rng(5).dirichlet(np.ones(5), (3, 2)))
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64, requires_grad=True)

    def fuse(logits):
        return LINES[1].fuse(models, weights=torch.softmax(logits, 0)).scores

    assert torch.autograd.gradcheck(fuse, (weights,))


def test_a_tree_takes_tensors_and_has_gradients():
    torch = pytest.importorskip("torch")
    histograms = np.random.default_rng(0).dirichlet(np.ones(5), (3, 4))
    tensors = torch.tensor(histograms, requires_grad=True)
    found = STAR.fuse(tensors, holds="histograms").scores
    expected = STAR.fuse(histograms, holds="histograms").scores
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-12)
    (found**2).sum().backward()
    assert torch.isfinite(tensors.grad).all()
    assert (tensors.grad != 0).any()


# -- quantiles ---------------------------------------------------------------------------


def test_quantiles_are_fused_level_by_level():
    rng = np.random.default_rng(0)
    values = np.sort(rng.normal(size=(3, 6, 5)), axis=2)
    weights = np.array([0.2, 0.3, 0.5])
    mean = ws.LineBarycenter(2).fuse_quantiles(values, weights)
    np.testing.assert_allclose(mean, np.einsum("m,msl->sl", weights, values))
    median = ws.LineBarycenter(1).fuse_quantiles(values)
    np.testing.assert_allclose(median, np.median(values, axis=0))


@pytest.mark.parametrize("power", [1, 2])
def test_models_without_a_forecast_leave_their_weight_to_others(power):
    rng = np.random.default_rng(1)
    values = np.sort(rng.normal(size=(4, 3, 5)), axis=2)
    values[0, 1], values[:, 2] = np.nan, np.nan
    rule, weights = ws.LineBarycenter(power), np.array([0.4, 0.3, 0.2, 0.1])
    fused = rule.fuse_quantiles(values, weights)
    others = rule.fuse_quantiles(values[1:, 1:2], weights[1:] / 0.6)
    np.testing.assert_allclose(fused[1:2], others)
    assert np.isnan(fused[2]).all()


@pytest.mark.parametrize("power", [1, 2])
def test_many_quantiles_are_fused_as_the_histogram_they_come_from(power):
    rng = np.random.default_rng(2)
    histograms = rng.dirichlet(np.ones(6), 3)
    levels = (np.arange(20_000) + 0.5) / 20_000
    places = np.array([np.searchsorted(each.cumsum(), levels) for each in histograms]).clip(0, 5)
    rule = ws.LineBarycenter(power)
    quantiles = rule.fuse_quantiles(places[:, None].astype(float))[0]
    shared = [np.interp(quantiles, np.arange(6), row).mean() for row in np.eye(6)]
    fused = fuse_one(rule, histograms)
    if power == 2:
        np.testing.assert_allclose(shared, fused, atol=1e-3)
    cost = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    weights = np.full(3, 1 / 3)
    costs = [mean_cost(histograms, weights, each / np.sum(each), cost) for each in (shared, fused)]
    if power == 1:  # of several medians both have one
        assert costs[0] == pytest.approx(costs[1], abs=1e-3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1.0, 2.0]], "must have shape"),
        ([[[2.0, 1.0]]], "not fall from level to level"),
        ([[[1.0, np.nan]]], "nan at all levels"),
        ([[[1.0, np.inf]]], "must be finite"),
    ],
)
def test_what_are_no_quantiles_is_refused(values, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.LineBarycenter(2).fuse_quantiles(values)
    with pytest.raises(ws.InvalidInputError, match="no labels"):
        ws.LineBarycenter(2, positions=(0, 1)).fuse_quantiles([[[1.0]]])


def test_a_target_of_names_alone_lies_where_the_models_labels_do():
    grades = ws.LabelSpace(["a", "b", "c"], positions=[0, 1, 10])
    models = [
        ws.Predictions(name, ["x"], grades, [scores])
        for name, scores in (("m0", [1.0, 0, 0]), ("m1", [0, 0, 1.0]))
    ]
    for target in (None, ["a", "b", "c"], ["c", "a", "b"]):
        fused = ws.fuse(models, rule=ws.LineBarycenter(2), target=target)
        found = dict(zip(fused.labels, fused.scores[0], strict=True))
        assert found == pytest.approx({"a": 0, "b": 5 / 9, "c": 4 / 9})
