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
    with pytest.raises(InvalidInputError, match="got a fusion by arithmetic mean"):
        explain(mean, 0)
