"""What a page shows of a sample is what the solver gives."""

import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from web.explorer.small import (
    LABELS,
    TAG,
    VECTORS,
    ask,
    from_vectors,
    histograms,
    make_case,
    scores,
)

import wassemble as ws
from wassemble.metrics import entropy
from wassemble.web.explorer.answers import find_flows, find_neighbors, rank_samples
from wassemble.web.explorer.present import present_answer
from wassemble.web.explorer.similarity import Similarity, given_kernel
from wassemble.web.explorer.view import View


@given(st.floats(0.05, 2), st.lists(st.floats(0.1, 5), min_size=3, max_size=3))
def test_the_consensus_is_the_barycenter_of_the_views_knobs(epsilon, weights):
    models = histograms()
    knobs = {"epsilon": epsilon, "weight": tuple(weights), "mass": "balanced"}
    answer = ask(make_case(models, from_vectors()), 2, **knobs)
    share = np.array(weights) / sum(weights)
    kernel = ws.kernels.from_word_vectors(LABELS, embeddings=VECTORS, epsilon=epsilon)
    wanted = ws.solve_barycenter(
        [m.scores[2] for m in models], kernel.kernel, weights=share, normalize=True
    ).barycenter
    np.testing.assert_allclose(answer.consensus.scores, wanted / wanted.sum(), atol=2e-4)


@pytest.mark.parametrize("penalty", [0.3, 8.0])
def test_mass_penalty_and_epsilon_are_those_of_the_view(penalty):
    answer = ask(make_case(histograms(), from_vectors()), mass="unbalanced", mass_penalty=penalty)
    assert answer.plan.rule.mass == ws.Unbalanced(penalty, epsilon=answer.epsilon)


def test_the_means_are_the_means():
    models = histograms()
    answer = ask(make_case(models, from_vectors()), 1, weight=(3.0, 1.0, 0.0))
    rows = [m.scores[1] for m in models]
    weights = [0.75, 0.25, 0]
    np.testing.assert_allclose(
        answer.lines[1].scores, ws.ARITHMETIC.fuse(rows, weights=weights).consensus, rtol=1e-12
    )
    geometric = ws.GEOMETRIC.fuse(rows, weights=weights).consensus
    np.testing.assert_allclose(answer.lines[2].scores, geometric / geometric.sum(), rtol=1e-12)
    assert answer.lines[2].mass == pytest.approx(geometric.sum())
    assert [line.name for line in answer.lines[3:]] == [m.model for m in models]
    np.testing.assert_array_equal(answer.lines[3].scores, models[0].scores[1])


def test_a_plan_with_other_weights_is_the_plan_made_with_them():
    first = ws.Predictions("a", ["x"], ["cat", "lynx"], [[0.3, 0.7]])
    second = ws.Predictions("b", ["x"], ["cat", "dog"], [[0.55, 0.45]])
    made = ws.Fusion(weights=[0.8, 0.2]).plan([first, second])
    moved = ws.Fusion().plan([first, second]).with_weights([0.8, 0.2])
    np.testing.assert_array_equal(moved.label_weights, made.label_weights)
    np.testing.assert_array_equal(
        moved.fuse([first, second]).scores, made.fuse([first, second]).scores
    )


def test_other_weights_and_samples_match_no_labels_again(monkeypatch):
    case = make_case(histograms(), from_vectors())
    before = ask(case, epsilon=0.4)
    monkeypatch.setattr(ws.Fusion, "plan", lambda *_: pytest.fail("labels were matched again"))
    after = ask(case, 1, epsilon=0.4, weight=(1.0, 2.0, 3.0))
    np.testing.assert_allclose(after.plan.weights, [1 / 6, 1 / 3, 1 / 2])
    assert after.plan.members is before.plan.members


@pytest.mark.parametrize("mass", ["unbalanced", "balanced"])
def test_a_model_has_little_say_on_labels_that_it_has_no_word_for(mass):
    """A kernel from mistakes reaches every label; what fuse makes of it, the explorer does too."""
    spaces = (("cat", "lynx"), ("cat", "dog"))
    truth = {f"s{i}": label for i, label in enumerate(["cat", "lynx", "dog"] * 4)}
    models = [
        ws.Predictions(name, list(truth), labels, [[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]] * 4)
        for name, labels in zip("ab", spaces, strict=True)
    ]
    target = ("cat", "dog", "lynx")
    kernels = {m.model: ws.kernels.from_confusion(m, truth, target=target) for m in models}
    case = make_case(models, Similarity("mistakes", lambda epsilon: kernels))
    answer = ask(case, 1, mass=mass)
    rule = ws.Barycenter(answer.plan.rule.mass, max_sweeps=300, tolerance=1e-5)
    fusion = ws.Fusion(rule, kernels, kind="multiclass", target=target)
    wanted = fusion.fuse(models).scores[1]
    np.testing.assert_allclose(answer.consensus.scores, wanted, rtol=1e-4)
    assert answer.plan.is_label_aware
    assert "keeps 5 % of its weight." in " ".join(present_answer(case, answer, View())["facts"])


def test_entropies_are_in_nats_and_tops_fall():
    answer = ask(make_case(similarity=from_vectors()))
    for line in answer.lines:
        assert line.entropy == pytest.approx(float(entropy(line.scores)))
        top = [score for _, score in line.top(5)]
        assert top == sorted(top, reverse=True)


def test_scores_are_unbalanced_and_may_not_be_balanced():
    case = make_case(scores(), from_vectors())
    assert not ask(case).plan.rule.is_balanced
    with pytest.raises(ws.InvalidInputError, match="no mass in common"):
        ask(case, mass="balanced")


def test_a_weight_for_each_model_and_one_above_zero():
    case = make_case()
    with pytest.raises(ws.InvalidInputError, match="one weight for each of 'model 0'"):
        ask(case, weight=(1.0,))
    with pytest.raises(ws.InvalidInputError, match="above 0"):
        ask(case, weight=(0.0, 0.0, 0.0))


@pytest.mark.parametrize("mass", ["balanced", "unbalanced"])
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_flows_into_a_label_are_its_mass(mass, epsilon):
    case = make_case(histograms(labels=[*LABELS[:4], *map(str, range(30))]), _spread())
    answer = ask(case, mass=mass, epsilon=epsilon)
    for label, score in answer.consensus.top(4):
        flows = find_flows(answer, label)
        assert flows.mass == pytest.approx(score)
        assert sum(flow.mass for flow in flows.flows) == pytest.approx(score)


def _spread():
    rng = np.random.default_rng(1)
    names = [*LABELS[:4], *map(str, range(30))]
    return from_vectors(ws.inputs.Embeddings(names, rng.normal(size=(34, 4))))


def test_a_flow_is_the_same_from_both_ends():
    answer = ask(make_case(similarity=from_vectors()), mass="unbalanced")
    label = answer.consensus.top(1)[0][0]
    named = [flow for flow in find_flows(answer, label).flows if flow.label]
    assert named
    for flow in named:
        away = find_flows(answer, flow.label, flow.model)
        back = next(each for each in away.flows if each.label == label)
        assert back.mass == pytest.approx(flow.mass, rel=1e-6)


def test_a_model_without_weight_sends_nothing():
    answer = ask(make_case(similarity=from_vectors()), weight=(1.0, 1.0, 0.0))
    assert find_flows(answer, "cat", "model 2").flows == ()
    into = find_flows(answer, "cat").flows
    assert {flow.model for flow in into} == {"model 0", "model 1"}


def test_neighbours_are_the_kernels_column_and_row():
    case = make_case(similarity=from_vectors())
    answer = ask(case, epsilon=0.4)
    kernel = ws.kernels.from_word_vectors(LABELS, embeddings=VECTORS, epsilon=0.4).to_dense()
    for model in ("", "model 1"):
        found = {each.label: each.similarity for each in find_neighbors(case, answer, "dog", model)}
        wanted = dict(zip(LABELS, kernel[:, 1].tolist(), strict=True))
        assert found == pytest.approx({k: v for k, v in wanted.items() if v > 0}, rel=1e-4)


def test_different_label_sets_meet_by_name():
    first = ws.Predictions("a", ["x"], ["cat", "lynx"], [[0.3, 0.7]])
    second = ws.Predictions("b", ["x"], ["cat", "dog"], [[0.55, 0.45]])
    answer = ask(make_case([first, second]))
    assert answer.consensus.top(1)[0][0] == "lynx"
    assert not answer.plan.rule.is_balanced


def test_targets_of_other_names_get_means_through_the_kernel():
    kernel = ws.kernels.from_ratings([[1, 0], [1, 0], [0, 1]], ["a", "b", "c"], ["car", "bike"])
    models = histograms(2, 2, ["a", "b", "c"])
    case = make_case(models, given_kernel(kernel))
    assert not case.means_by_name
    answer = ask(case)
    assert list(answer.lines[1].labels) == ["car", "bike"]
    mean = np.mean([m.scores[0] for m in models], axis=0)
    np.testing.assert_allclose(answer.lines[1].scores, [mean[0] + mean[1], mean[2]], rtol=1e-6)


def test_the_most_disputed_sample_comes_first():
    calm, apart = [[0.9, 0.1], [0.9, 0.1]], [[0.9, 0.1], [0.1, 0.9]]
    first = ws.Predictions("a", ["same", "other"], ["cat", "dog"], calm)
    second = ws.Predictions("b", ["same", "other"], ["cat", "dog"], apart)
    vectors = from_vectors(ws.inputs.Embeddings(["cat", "dog"], [[1, 0], [0, 1]]))
    for similarity in ({}, {"similarity": vectors}):
        ranking = rank_samples(make_case([first, second], **similarity))
        assert ranking.order.tolist() == [1, 0]


def test_nobody_answered():
    silent = [ws.Predictions(m, ["x"], ["a", "b"], [[np.nan, np.nan]]) for m in "mn"]
    with pytest.raises(ws.InvalidInputError, match="some model must have answered"):
        ask(make_case(silent))


def test_a_tag_is_a_label_like_any_other():
    answer = ask(make_case(similarity=from_vectors()))
    assert TAG in [label for label, _ in answer.lines[1].top(5)]


# -- label sets that are cut ---------------------------------------------------------------


def wide_case(n_labels=2000, n_samples=3):
    rng = np.random.default_rng(3)
    names = [f"w{i}" for i in range(n_labels)]
    vectors = ws.inputs.Embeddings(names, rng.normal(size=(n_labels, 8)))
    return make_case(histograms(3, n_samples, names), from_vectors(vectors))


def test_a_large_label_set_is_cut_and_says_what_was_left_out():
    case = wide_case()
    answer = ask(case, epsilon=0.1)
    kept = set(answer.plan.target)
    assert case.is_cut
    assert len(kept) == 500
    left = [
        1 - sum(s for name, s in zip(m.labels, m.scores[0], strict=True) if name in kept)
        for m in case.table.models
    ]
    assert answer.cut.dropped == pytest.approx(max(left))
    assert 0 < answer.cut.dropped < 0.5
    best = {max(zip(m.scores[0], m.labels, strict=True))[1] for m in case.table.models}
    assert best <= kept
    rows = [m.scores[0] for m in case.table.models]
    np.testing.assert_allclose(
        answer.lines[1].scores, ws.ARITHMETIC.fuse(rows).consensus, rtol=1e-12
    )


def test_a_cut_consensus_is_near_that_of_all_labels():
    case = wide_case(900)
    models = case.table.models
    answer = ask(case, epsilon=0.1)
    kernel = case.similarity.at(0.1)(models[0].labels, case.target).kernel
    whole = ws.solve_barycenter([m.scores[0] for m in models], kernel, normalize=True).barycenter
    places = case.target.places(answer.plan.target)
    # Each histogram moves by at most twice what it lost; transport does not make it more.
    assert np.abs(answer.consensus.scores - whole[places]).sum() < 4 * answer.cut.dropped


def test_a_label_that_was_cut_off_takes_no_part():
    answer = ask(wide_case(), epsilon=0.1)
    left_out = next(name for name in answer.whole if name not in answer.plan.target)
    assert find_flows(answer, left_out).flows == ()
    assert find_flows(answer, left_out, "model 1").mass == 0
    with pytest.raises(ws.InvalidInputError, match="got 'nothing'"):
        find_flows(answer, "nothing")


def test_no_warning_is_raised_by_a_row_that_does_not_converge():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = ask(make_case(similarity=from_vectors()), epsilon=1e-5)
    assert answer.status in (ws.Status.MAX_SWEEPS, ws.Status.CONVERGED)
