"""Explanations: shares sum to 100, and who disagrees is found."""

import numpy as np
import pytest
from problems import fusion_with

import wassemble as ws
from wassemble import InvalidInputError, Predictions, explain, find_disagreement


@pytest.fixture
def fusion(rng):
    labels = ["sedan", "coupe", "bicycle", "tandem"]
    vectors = np.array([[0.0, 0], [0.1, 0], [1, 0], [1, 0.1]])
    kernel = ws.kernels.from_embeddings(vectors, epsilon=0.3)
    scores = rng.uniform(0.05, 1, size=(2, 5, 4))
    scores /= scores.sum(axis=2, keepdims=True)
    models = [Predictions(f"m{i}", range(5), labels, scores[i]) for i in range(2)]
    return ws.Fusion(kernel=kernel).run(models)


@pytest.mark.parametrize("mass", [ws.Balanced(), ws.Unbalanced(2.0, epsilon=0.3)])
def test_shares_of_all_models_sum_to_100(fusion, mass):
    fusion = fusion_with(kernel=fusion.plan.members[0].kernel, mass=mass).run(fusion.members)
    for label in fusion.plan.target:
        found = explain(fusion, 2, label)
        assert found.converged
        assert sum(c.percent for c in found.contributions) == pytest.approx(100)
        for model in ("m0", "m1"):
            own = [c.percent_of_model for c in found.contributions if c.model == model]
            assert sum(own) == pytest.approx(100)
        shares = [c.percent for c in found.contributions]
        assert shares == sorted(shares, reverse=True)


def test_the_first_label_is_explained_by_default(fusion):
    found = explain(fusion, "3")
    place = int(fusion.consensus.scores[3].argmax())
    assert found.label == fusion.plan.target[place]
    assert found.score == fusion.consensus.scores[3, place]
    assert len(explain(fusion, 3, n_largest=2).contributions) == 2
    assert found.label in str(found)
    assert found.to_dict()["contributions"][0]["model"] in ("m0", "m1")


def test_transport_cost_is_that_of_the_couplings(fusion):
    found = find_disagreement(fusion)
    kernel = np.asarray(fusion.plan.members[0].kernel.to_dense())
    cost = -np.log(kernel / kernel.max(axis=1, keepdims=True))
    result = ws.solve_barycenter(
        [m.scores for m in fusion.members], kernel, ws.Barycenter(fusion.plan.rule.mass)
    )
    shares = [result.coupling(0, i).sum() for i in range(5)]
    expected = result.transport_cost(cost)
    np.testing.assert_allclose(found.transport[0], expected[0] / shares, rtol=1e-5)


def test_sparse_and_dense_kernels_disagree_alike(fusion):
    import scipy.sparse as sp

    kernel = np.asarray(fusion.plan.members[0].kernel.to_dense())
    sparse = ws.Fusion(kernel=ws.kernels.SparseKernel(sp.csr_array(kernel))).run(fusion.members)
    np.testing.assert_allclose(
        find_disagreement(sparse).transport, find_disagreement(fusion).transport, rtol=1e-6
    )


def test_without_a_kernel_disagreement_is_what_cannot_be_moved():
    a = Predictions("a", ["x", "y"], ["cat", "dog"], [[1.0, 0.0], [0.6, 0.4]])
    b = Predictions("b", ["x", "y"], ["cat", "dog"], [[1.0, 0.0], [0.4, 0.6]])
    found = find_disagreement(fusion_with(mass=ws.Balanced()).run([a, b]))
    np.testing.assert_allclose(found.transport, 0)
    np.testing.assert_allclose(found.apart, [[0, 0.1], [0, 0.1]], atol=1e-9)
    assert [row["sample"] for row in found.most(2)] == ["y", "x"]


def test_a_model_without_an_answer_has_no_disagreement():
    a = Predictions("a", ["x", "y"], ["cat", "dog"], [[0.6, 0.4], [0.6, 0.4]])
    b = Predictions("b", ["x"], ["cat", "dog"], [[0.4, 0.6]])
    found = find_disagreement(ws.Fusion().run([a, b]))
    assert np.isnan(found.transport[1, 1])
    assert found.most(2)[1] == {"sample": "y", "disagreement": 0.0, "a": 0.0, "b": None}


def test_a_whole_row_of_a_partial_table_is_explained():
    given = [[0.6, 0.3], [np.nan, 0.5]]
    listed = Predictions("listed", ["x", "y"], ["cat", "dog"], given)
    found = explain(ws.Fusion().run([listed]), "x")
    assert found.label == "cat"
    assert "2 answers were partial" in ws.Fusion().run([listed]).report


def test_an_empty_consensus_is_said_to_be_empty():
    a = Predictions("a", ["x"], ["cat", "dog"], [[1.0, 0.0]])
    b = Predictions("b", ["x"], ["cat", "dog"], [[0.0, 1.0]])
    with pytest.warns(ws.errors.ConvergenceWarning):
        result = ws.Fusion(ws.Barycenter(ws.Balanced())).run([a, b])
    with pytest.raises(InvalidInputError, match="'x' is empty, because the models' mass meets"):
        explain(result, "x")


def test_only_a_result_is_explained(fusion):
    for wrong in (ws.Fusion(), fusion.consensus):
        for ask in (lambda it: explain(it, 0), find_disagreement):
            with pytest.raises(
                InvalidInputError, match=r"what `Fusion\(...\).run\(models\)` returns"
            ):
                ask(wrong)


def test_what_cannot_be_explained_is_refused(fusion):
    with pytest.raises(InvalidInputError, match=r"such as '0', '1', .*; got 9"):
        explain(fusion, 9)
    with pytest.raises(InvalidInputError, match="near it: 'sedan'"):
        explain(fusion, 0, "sedans")
    mean = ws.Fusion(rule=ws.ARITHMETIC).run(fusion.members)
    with pytest.raises(InvalidInputError, match=r"by arithmetic mean, .*\nhint: `explain\(result"):
        find_disagreement(mean)


@pytest.mark.parametrize(
    "rule",
    [
        *(ws.PowerMean(order) for order in (1.0, 0.0, 0.5, 2.0, 1e4)),
        ws.GatedMean(0.5, 2, 0.5),
        ws.GatedBarycenter(0.7, 2, 0.5),
        ws.Single("m1"),
    ],
)
@pytest.mark.parametrize("kind", ["multiclass", "multilabel"])
def test_shares_of_a_mean_are_how_much_the_label_follows_each_model(fusion, rule, kind):
    kernel = fusion.plan.members[0].kernel
    weights = None if isinstance(rule, ws.Single) else {"m0": 0.3, "m1": 0.7}
    mean = ws.Fusion(rule, kernel, kind=kind, weights=weights)
    result = mean.run(fusion.members)
    found = explain(result, 2)
    assert sum(c.percent for c in found.contributions) == pytest.approx(100)
    place, step = result.plan.target.place(found.label), 1e-5
    ready = result.plan.prepare([m.take(slice(2, 3)) for m in result.members])
    for place_of, model in enumerate(("m0", "m1")):
        given = [scores.copy() for scores in ready.scores]
        given[place_of] *= 1 + step
        moved = [rule_scores(result.plan, each)[0, place] for each in (ready.scores, given)]
        share = 100 * np.log(moved[1] / moved[0]) / np.log(1 + step)
        share /= rule.exponent if isinstance(rule, ws.GatedBarycenter) else 1
        own = sum(c.percent for c in found.contributions if c.model == model)
        assert own == pytest.approx(share, abs=0.01)


EXACT = (
    ws.LineBarycenter(1),
    ws.LineBarycenter(2),
    ws.TreeBarycenter((4, 4, 5, 5, 5, -1)),
)


@pytest.mark.parametrize("rule", EXACT, ids=str)
@pytest.mark.parametrize("is_mixed", [False, True])
def test_models_send_an_exact_barycenter_what_it_has_by_their_weights(fusion, rule, is_mixed):
    kernel = fusion.plan.members[0].kernel if is_mixed else None
    weights = {"m0": 0.3, "m1": 0.7}
    target = ws.LabelSpace(fusion.plan.target, positions=(3, 0, 1, 4))
    result = ws.Fusion(rule, kernel, target=target, weights=weights).run(fusion.members)
    sent = np.zeros((2, 4))
    for place, label in enumerate(result.plan.target):
        if (score := result.consensus.scores[2, place]) < 1e-9:
            continue
        found = explain(result, 2, label)
        for model in (0, 1):
            own = [c for c in found.contributions if c.model == f"m{model}"]
            assert sum(c.percent for c in own) == pytest.approx(100 * weights[f"m{model}"])
            assert sum(c.percent_of_model for c in own) == pytest.approx(100)
            for c in own:
                at = result.plan.target.place(c.label)
                sent[model, at] += score * c.percent_of_model / 100
    expected = [member.scores[2] for member in result.members]
    np.testing.assert_allclose(sent, expected, atol=1e-9)  # every label's mass went somewhere


def test_a_model_on_the_right_sends_its_mass_to_the_left():
    low = Predictions("low", ["x"], ["1", "2", "3"], [[1.0, 0.0, 0.0]])
    high = Predictions("high", ["x"], ["1", "2", "3"], [[0.0, 0.0, 1.0]])
    result = ws.Fusion(ws.LineBarycenter(2)).run([low, high])
    told = str(explain(result, "x"))
    assert "x: 2 1" in told
    assert "50.0 %  low: 1 (scored 1)" in told
    assert "50.0 %  high: 3 (scored 1)" in told


def rule_scores(plan, scores):
    """Scores of a rule as it gives them, not as histograms."""
    kernels = [member.kernel for member in plan.members]
    rule = ws.Single(1) if isinstance(plan.rule, ws.Single) else plan.rule
    weights = None if isinstance(rule, ws.Single) else plan.weights
    return rule.fuse(scores, kernels, weights=weights, holds=plan.holds).scores


def test_parts_of_an_arithmetic_mean_add_up_to_the_label():
    cars = Predictions("cars", ["x"], ["sedan", "coupe", "bicycle"], [[0.5, 0.2, 0.3]])
    bikes = Predictions("bikes", ["x"], ["car", "bicycle"], [[0.1, 0.9]])
    fusion = ws.Fusion(ws.ARITHMETIC, aliases={"sedan": "car"}, weights={"cars": 0.6, "bikes": 0.4})
    result = fusion.run([cars, bikes])
    bicycle = explain(result, "x", "bicycle")
    parts = {c.model: c.percent / 100 * bicycle.score for c in bicycle.contributions}
    assert parts["cars"] / parts["bikes"] == pytest.approx(0.6 * 0.3 / (0.4 * 0.9))
    assert sum(parts.values()) == pytest.approx(bicycle.score)
    [coupe] = explain(result, "x", "coupe").contributions
    assert (coupe.model, coupe.label, coupe.percent) == ("cars", "coupe", pytest.approx(100))


@pytest.mark.parametrize("kind", ["multiclass", "multilabel"])
def test_logits_say_what_they_are_relative_to(rng, kind):
    from wassemble.ensemble.learning.recipes import Recipe, read_kernels
    from wassemble.ensemble.learning.search import Search
    from wassemble.ensemble.learning.trial import read_trial
    from wassemble.metrics import USUAL
    from wassemble.solvers import LogisticStacking

    truth = np.arange(60) % 3
    scores = [rng.dirichlet(np.ones(3) + 4 * np.eye(3)[t]) for t in truth]
    models = [Predictions(f"m{i}", range(60), ["a", "b", "c"], scores) for i in range(2)]
    table = np.eye(3)[truth] if kind == "multilabel" else ["abc"[i] for i in truth]
    trial = read_trial([m.replace(kind=kind) for m in models], table, kind=kind)
    search = Search(trial, USUAL[trial.task], read_kernels({}, [], trial.target), 2)
    fitted = search.fitter.fit(Recipe(LogisticStacking(trial.task)))
    result = fitted.fusion.run(trial.models)
    found = explain(result, 0, "a")
    odds = {"multiclass": "over all labels", "multilabel": "to even odds"}[kind]
    assert odds in str(found)
    assert {c.model for c in found.contributions} == {"m0", "m1", "all models"}
    logit = sum(c.score for c in found.contributions)
    if kind == "multilabel":
        assert 1 / (1 + np.exp(-logit)) == pytest.approx(found.score, rel=1e-4)
    else:
        margins = np.log(result.consensus.scores[0])
        assert logit == pytest.approx(margins[0] - result.consensus.scores[0] @ margins, rel=1e-4)
