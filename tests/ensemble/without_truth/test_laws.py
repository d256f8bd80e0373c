"""What must hold of every rung, whatever the votes."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from simulated_models import draw_answers, draw_truth

from wassemble.ensemble.without_truth import (
    RUNGS,
    Confusions,
    Equal,
    Known,
    Reliability,
    Votes,
    find_relatives,
    rank_votes,
)
from wassemble.errors import InvalidInputError
from wassemble.labels import LabelSpace

seeds = st.integers(0, 10_000)


def draw_votes(seed, *, n_samples=60, accuracies=(0.9, 0.7, 0.6, 0.5), n_labels=3):
    """Votes of models with some gaps and some silences, and the truth."""
    rng = np.random.default_rng(seed)
    truth = draw_truth(rng, n_samples, n_labels)
    rows = []
    for model, accuracy in enumerate(accuracies):
        for sample, answer in enumerate(draw_answers(rng, truth, accuracy, n_labels)):
            if rng.random() < 0.9:
                rows.append((f"m{model}", sample, str(answer) if rng.random() < 0.9 else None))
    order = rng.permutation(len(rows))
    models, samples, labels = zip(*(rows[i] for i in order), strict=True)
    target = LabelSpace(range(n_labels)).on_line()
    return Votes.of_table(models, samples, labels, target=target), truth


def fit(rung, votes):
    return rung.fit(votes, Known(np.ones(votes.n_models)))


@pytest.mark.parametrize("rung", RUNGS, ids=str)
@settings(max_examples=5)
@given(seed=seeds)
def test_a_consensus_is_a_histogram(rung, seed):
    votes, _ = draw_votes(seed)
    fitted = fit(rung, votes)
    voted = votes.answers.sum(axis=1) > 0
    np.testing.assert_allclose(fitted.consensus[voted].sum(axis=1), 1)
    assert (fitted.consensus >= 0).all()


@pytest.mark.parametrize("rung", RUNGS, ids=str)
@settings(max_examples=5)
@given(seed=seeds)
def test_the_order_of_models_and_samples_changes_nothing(rung, seed):
    votes, _ = draw_votes(seed)
    rng = np.random.default_rng(seed)
    rows, models = rng.permutation(votes.n_samples), rng.permutation(votes.n_models)
    columns = np.concatenate([np.flatnonzero(votes.owner == model) for model in models])
    permuted = replace(
        votes,
        samples=votes.samples[rows],
        models=tuple(votes.models[model] for model in models),
        given=votes.given[rows][:, columns],
        meant=votes.meant[columns],
        silent=votes.silent[rows][:, models],
    )
    one, other = fit(rung, votes), fit(rung, permuted)
    np.testing.assert_allclose(other.consensus, one.consensus[rows], atol=1e-6)
    np.testing.assert_allclose(other.reliability, one.reliability[models], atol=1e-6)


@pytest.mark.parametrize("rung", RUNGS, ids=str)
@settings(max_examples=5)
@given(seed=seeds)
def test_other_names_of_labels_change_nothing(rung, seed):
    votes, _ = draw_votes(seed)
    order = np.random.default_rng(seed).permutation(len(votes.target))
    columns = np.concatenate(
        [np.flatnonzero(votes.owner == m)[order] for m in range(votes.n_models)]
    )
    renamed = replace(
        votes,
        target=LabelSpace.locate([votes.target[place] for place in order], votes.target),
        given=votes.given[:, columns],
        meant=votes.meant[columns][:, order],
    )
    one, other = fit(rung, votes), fit(rung, renamed)
    np.testing.assert_allclose(other.consensus, one.consensus[:, order], atol=1e-6)


def dawid_skene(answers, n_labels, n_rounds=60):
    """The method as its authors wrote it down, sample by sample; -1 is no answer."""
    believed = np.array(
        [np.bincount(row[row >= 0], minlength=n_labels) / (row >= 0).sum() for row in answers]
    )
    for _ in range(n_rounds):
        confusions = np.full((answers.shape[1], n_labels, n_labels), 1e-3)
        for sample, model in np.argwhere(answers >= 0):
            confusions[model, :, answers[sample, model]] += believed[sample]
        confusions /= confusions.sum(axis=2, keepdims=True)
        balance = believed.mean(axis=0)
        for sample, row in enumerate(answers):
            likely = [confusions[model, :, row[model]] for model in np.flatnonzero(row >= 0)]
            believed[sample] = balance * np.prod(likely, axis=0)
        believed /= believed.sum(axis=1, keepdims=True)
    return believed


def test_confusions_are_those_of_a_plain_dawid_and_skene():
    rng = np.random.default_rng(0)
    truth = draw_truth(rng, 400)
    answers = np.stack([draw_answers(rng, truth, x) for x in (0.9, 0.8, 0.7, 0.6, 0.5)], axis=1)
    answers[rng.random(answers.shape) < 0.2] = -1
    answers = answers[(answers >= 0).any(axis=1)]
    sample, model = np.nonzero(answers >= 0)
    votes = Votes.of_table(model.tolist(), sample.tolist(), answers[sample, model].tolist())
    own, plain = fit(Confusions(), votes).consensus, dawid_skene(answers, 3)
    assert np.mean(own.argmax(axis=1) == plain.argmax(axis=1)) > 0.98
    assert np.abs(own - plain).mean() < 0.02


@settings(max_examples=5)
@given(seed=seeds)
def test_a_copy_shares_the_vote_of_its_model(seed):
    votes, _ = draw_votes(seed, n_samples=200)
    first = np.flatnonzero(votes.owner == 0)
    twice = replace(
        votes,
        models=(*votes.models, "copy"),
        given=sp.csr_array(sp.hstack([votes.given, votes.given[:, first]])),
        owner=np.concatenate([votes.owner, np.full(len(first), votes.n_models)]),
        meant=np.vstack([votes.meant, votes.meant[first]]),
        silent=sp.csr_array(sp.hstack([votes.silent, votes.silent[:, [0]]])),
    )
    relatives = find_relatives(twice, Known(np.ones(twice.n_models)))
    assert relatives.kinship[0, -1] == 1
    shares = Known(relatives.shares)
    alone = find_relatives(votes, Known(np.ones(votes.n_models))).shares
    for rung in RUNGS:
        one, other = rung.fit(votes, Known(alone)), rung.fit(twice, shares)
        same = one.consensus.argmax(axis=1) == other.consensus.argmax(axis=1)
        # Nothing but what the copy adds to what all models have in common.
        assert same.mean() > 0.9
    np.testing.assert_allclose(relatives.shares[[0, -1]], 0.5)
    assert (relatives.shares[1:-1] == 1).all()


def test_one_perfect_model_among_coins_is_found_as_samples_grow():
    found = []
    for n_samples in (20, 1500):
        votes, truth = draw_votes(1, n_samples=n_samples, accuracies=(1.0, *[0.4] * 6))
        ranking = rank_votes(votes, Known(np.ones(votes.n_models)))
        told = votes.answers[:, [votes.models.index("m0")]].toarray()[:, 0] > 0
        right = ranking.consensus.scores.argmax(axis=1) == truth[votes.samples.astype(int)]
        found.append(np.mean(right[told]))
    assert found[1] > max(0.95, found[0])
    assert ranking.models[0].model == "m0"


@settings(max_examples=5)
@given(seed=seeds)
def test_equally_reliable_models_give_what_the_mean_gives(seed):
    votes, _ = draw_votes(seed, n_samples=400, accuracies=[0.75] * 5)
    mean, weighed = fit(Equal(), votes).consensus, fit(Reliability(), votes).consensus
    ordered = np.sort(mean, axis=1)
    clear = ordered[:, -1] > ordered[:, -2] + 1e-9
    same = mean.argmax(axis=1) == weighed.argmax(axis=1)
    assert same[clear].mean() > 0.95


@pytest.mark.parametrize("rung", RUNGS, ids=str)
def test_new_votes_change_the_sums(rung):
    votes, truth = draw_votes(3, n_samples=400)
    first, second = votes.on(np.arange(300)), votes.on(np.arange(300, 400))
    fitted = fit(rung, first)
    later = fitted.update(second)
    n_voted = sum((part.answers.sum(axis=1) > 0).sum() for part in (first, second))
    is_mean = fitted.meaning is None
    assert later.sums.believed.sum() == pytest.approx(n_voted if is_mean else 400)
    right = later.consensus.argmax(axis=1) == truth[second.samples.astype(int)]
    assert right.mean() > 0.6
    with pytest.raises(InvalidInputError, match="new votes must be of the same models"):
        fitted.update(second.of(np.arange(2)))
    whole = fit(rung, votes).reliability
    np.testing.assert_allclose(later.reliability, whole, atol=0.05)


def test_many_votes_take_little():
    rng = np.random.default_rng(0)
    n_votes, n_models, n_samples = 60_000, 2_000, 10_000
    votes = Votes.of_table(
        rng.integers(n_models, size=n_votes).tolist(),
        rng.integers(n_samples, size=n_votes).tolist(),
        rng.integers(4, size=n_votes).tolist(),
    )
    fitted = fit(Reliability(), votes)
    held = votes.given.data.nbytes + votes.meant.nbytes + fitted.consensus.nbytes
    assert held < 3_000_000  # a dense table of the votes would take 640 MB


def test_functions_that_say_one_thing_keep_the_mean_and_silence_tells():
    rng = np.random.default_rng(0)
    truth = draw_truth(rng, 500, 2)
    rows = []
    for place, label in enumerate((0, 0, 0, 0, 0, 1)):
        speaks = rng.random(500) < np.where(truth == label, 0.5, 0.1)
        rows += [(f"f{place}", i, str(label) if speaks[i] else None) for i in range(500)]
    votes = Votes.of_table(*zip(*rows, strict=True))
    assert votes.says_one_thing.all()
    assert rank_votes(votes, Known(np.ones(6))).belief == "equal weights"
    # Of a sample about which nobody spoke a mean knows nothing.
    alone = votes.answers.sum(axis=1) == 0
    assert alone.sum() > 50
    assert not fit(Equal(), votes).consensus[alone].any()
    told = fit(Confusions(), votes).consensus[alone].argmax(axis=1)
    assert np.mean(told == truth[alone]) > 0.8


def draw_grades(seed, *, n_samples=150, n_models=9, n_grades=5):
    """Grades by models that are right half of the time, and else a grade off, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_grades, size=n_samples)
    step = rng.choice([0, -1, 1], p=[0.5, 0.25, 0.25], size=(n_models, n_samples))
    said = np.clip(truth + step, 0, n_grades - 1)
    model, sample = np.indices(said.shape).reshape(2, -1)
    named = [f"m{place}" for place in model.tolist()]
    grades = LabelSpace(range(n_grades))
    return named, sample.tolist(), said.ravel().tolist(), grades, truth


def test_errors_near_the_truth_are_learned_where_labels_have_an_order():
    near = Reliability(per_label=True, near=True)
    gains = []
    for seed in range(10):
        *table, grades, truth = draw_grades(seed)
        votes = Votes.of_table(*table, target=grades.on_line())
        right = [
            np.mean(fit(rung, votes).consensus.argmax(axis=1) == truth)
            for rung in (near, Reliability(per_label=True))
        ]
        gains.append(right[0] - right[1])
    assert np.mean(gains) > 0.01


@settings(max_examples=5)
@given(seed=seeds)
def test_turning_an_order_round_changes_nothing(seed):
    *table, grades, _ = draw_grades(seed, n_samples=40)
    near = Reliability(per_label=True, near=True)
    up = Votes.of_table(*table, target=grades.on_line())
    down = replace(up, target=LabelSpace(grades, positions=range(0, -len(grades), -1)))
    one, other = (fit(near, votes).consensus for votes in (up, down))
    np.testing.assert_allclose(other, one, atol=1e-6)


def test_without_an_order_no_error_is_near():
    *table, grades, _ = draw_grades(0)
    told = [
        " ".join(rank_votes(votes, Known(np.ones(votes.n_models))).reasons)
        for votes in (
            Votes.of_table(*table, target=target) for target in (grades, grades.on_line())
        )
    ]
    assert ["errors near" in reasons for reasons in told] == [False, True]


@pytest.mark.parametrize("n_own", [2, 3, 5, 7])
def test_turning_round_scales_of_other_lengths_changes_nothing(n_own):
    rng = np.random.default_rng(n_own)
    truth = rng.integers(4, size=80)
    scales = {f"m{model}": [f"g{k}" for k in range(n_own)] for model in (3, 4)}
    rows = []
    for model in range(5):
        near = np.clip(truth + rng.choice([-1, 0, 0, 1], len(truth)), 0, 3)
        for sample, grade in enumerate(near.tolist()):
            own = f"g{round(grade * (n_own - 1) / 3)}" if model > 2 else str(grade)
            rows.append((f"m{model}", sample, own))
    table, near = list(zip(*rows, strict=True)), Reliability(per_label=True, near=True)
    found = []
    for way in (1, -1):
        target = LabelSpace([str(k) for k in range(4)][::way]).on_line()
        own = {name: scale[::way] for name, scale in scales.items()}
        votes = Votes.of_table(*table, target=target, scales=own)
        found.append(fit(near, votes).consensus[:, ::way])
    np.testing.assert_allclose(*found, atol=1e-9)


def test_copies_tell_how_near_errors_are_no_louder_than_one():
    *table, grades, _ = draw_grades(1, n_models=5)
    once = Votes.of_table(*table, target=grades.on_line())
    copied = [[*column, *(each[:150])] for column, each in zip(table, table, strict=True)]
    copied[0][-150:] = ["copy"] * 150
    twice = Votes.of_table(*copied, target=grades.on_line())
    shares = np.array([0.5, 1, 1, 1, 1, 0.5])
    near = Reliability(per_label=True, near=True)
    one, other = near.fit(once, Known(np.ones(5))), near.fit(twice, Known(shares))
    assert np.abs(one.consensus - other.consensus).max() < 0.01
