"""Learning a kernel through the solver: what it finds, when it stops, what it admits."""

import sys

import numpy as np
import pytest
import torch

from wassemble.ensemble import Fusion
from wassemble.ensemble.learning.kernels import learn_kernel
from wassemble.ensemble.learning.kernels.candidates import read_candidates
from wassemble.ensemble.learning.kernels.forms import LowRankForm, MixtureForm, mix_candidates
from wassemble.ensemble.learning.kernels.judging import Calibration, each_loss, fit_calibration
from wassemble.ensemble.learning.kernels.training import Adam, TorchFusion, Training, one_thread
from wassemble.ensemble.learning.trial import read_trial
from wassemble.errors import InvalidInputError, MissingExtraError
from wassemble.inputs import Predictions
from wassemble.kernels import DenseKernel, LabelledKernel, from_names, mix as mix_kernels
from wassemble.labels import LabelSpace
from wassemble.solvers import Balanced, Barycenter, Unbalanced

LABELS = ["ant", "bee", "cow", "dog", "eel"]
MASS = Unbalanced(0.7, epsilon=0.3)


@pytest.fixture(autouse=True)
def few_threads():
    """Problems are small: threads would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def named(table, source=LABELS, target=LABELS, origin="test"):
    return LabelledKernel(DenseKernel(table), source, target, origin)


def five_sweeps(mass):
    return Barycenter(mass, max_sweeps=5, tolerance=None)


def random_kernel(rng, n_source=5, n_target=5):
    """Few entries near 1, most near 0."""
    return rng.uniform(size=(n_source, n_target)) ** 3 + 0.02


def drawn_truth(rng, scores, names):
    """A label for each row, as likely as its score."""
    shares = np.cumsum(scores / scores.sum(axis=1, keepdims=True), axis=1)
    places = (rng.uniform(size=(len(scores), 1)) > shares).sum(axis=1)
    return [names[min(i, len(names) - 1)] for i in places.tolist()]


def drawn_problem(rng, kernel=None, n_samples=600, n_models=1):
    """Models whose truth was drawn from their consensus through ``kernel``."""
    kernel = named(np.eye(5) + 0.1) if kernel is None else kernel
    models = [
        Predictions(f"m{k}", range(n_samples), LABELS, rng.dirichlet(np.full(5, 0.4), n_samples))
        for k in range(n_models)
    ]
    fusion = Fusion(Barycenter(max_sweeps=5, tolerance=None), kernel).run(models)
    return models, drawn_truth(rng, fusion.consensus.scores, LABELS), fusion.consensus.scores


@pytest.fixture(scope="module")
def informative():
    """One candidate made the truth, the other is noise."""
    rng = np.random.default_rng(0)
    candidates = {"true": named(random_kernel(rng)), "noise": named(random_kernel(rng))}
    models, truth, _ = drawn_problem(rng, candidates["true"], n_models=2)
    learned = learn_kernel(
        models, truth, candidates=candidates, rule=five_sweeps(Balanced()), max_epochs=8
    )
    return learned, models, truth, candidates


# -- what is found -----------------------------------------------------------------------


def test_the_informative_candidate_gets_the_larger_share(informative):
    found = informative[0].parameters
    assert found["share of true"] > 0.7
    assert found["share of noise"] < 0.15


def test_the_true_kernel_is_the_best_candidate_and_noise_is_worse_than_learned(informative):
    learned = informative[0]
    judged = {each.name: each for each in learned.judged}
    assert learned.best_candidate.name == "true"
    assert judged["learned kernel"].loss < judged["noise"].loss - 0.1
    assert judged["learned kernel"].loss < judged["names"].loss - 0.05


def test_the_shuffled_control_is_worse(informative):
    learned = informative[0]
    assert learned.control.meaning_helped
    assert learned.control.comparison.difference > 0.05
    assert len(learned.shuffled) == learned.control.n_shuffles == 3


def test_a_report_admits_that_a_candidate_is_as_good(informative):
    learned = informative[0]
    assert not learned.is_better
    assert "not better than true by more than noise" in learned.report
    assert "use true" in learned.report
    assert "the meaning of the labels helped" in learned.report


def test_a_known_mixture_is_recovered_and_beats_its_parts():
    rng = np.random.default_rng(1)
    parts = {"a": named(random_kernel(rng)), "b": named(random_kernel(rng))}
    true = mix_kernels([(parts["a"], 0.6), (parts["b"], 0.4)])
    models, truth, consensus = drawn_problem(rng, true, n_samples=2000)
    learned = learn_kernel(
        models, truth, candidates=parts, rule=five_sweeps(Balanced()), max_epochs=12, batch_size=128
    )
    shares = learned.parameters["share of a"], learned.parameters["share of b"]
    assert shares[0] / sum(shares) == pytest.approx(0.6, abs=0.12)
    assert learned.parameters["share of names"] < 0.1
    assert learned.is_better
    assert "better than" in learned.report
    far = np.abs(learned.predict(models).scores - consensus).mean()
    for part in parts.values():
        alone = Fusion(Barycenter(max_sweeps=5, tolerance=None), part).run(models)
        assert far < 0.4 * np.abs(alone.consensus.scores - consensus).mean()


def test_shares_sum_to_one_and_the_first_block_has_no_scale(informative):
    found = informative[0].parameters
    shares = [value for name, value in found.items() if name.startswith("share")]
    assert sum(shares) == pytest.approx(1)
    assert [name for name in found if name.startswith("scale")] == ["scale of other labels"]


# -- the same in NumPy -------------------------------------------------------------------


@pytest.mark.parametrize("mass", [Balanced(), MASS])
def test_training_and_numpy_give_the_same_consensus(rng, mass):
    models, truth, _ = drawn_problem(rng, n_samples=40, n_models=3)
    models[1].scores[:10] = np.nan  # an abstention
    models[2].scores[5:15] = np.nan
    candidates = {"a": named(random_kernel(rng)), "b": named(random_kernel(rng))}
    learned = learn_kernel(
        models, truth, candidates=candidates, rule=five_sweeps(mass), max_epochs=2
    )
    trial = read_trial(models, truth)
    fusion = TorchFusion(torch, learned.fusion.plan(models), trial, dict.fromkeys(trial.names, 0))
    tables = [torch.as_tensor(learned.kernel.to_dense().copy())]
    consensus = fusion.fuse(tables, np.arange(40)).numpy()
    rule = five_sweeps(mass)
    consensus = rule.to_histograms(consensus)
    plan = learned.fusion.plan(models)
    np.testing.assert_allclose(plan.fuse(models).scores, consensus, rtol=1e-9)
    fused = Fusion(rule, learned.kernel).fuse(models)
    np.testing.assert_array_equal(fused.scores, learned.predict(models).scores)


def test_numpy_and_torch_mix_the_same_table(rng):
    candidates = {"a": named(random_kernel(rng)), "b": named(random_kernel(rng))}
    read = read_candidates(candidates, [("m", LabelSpace(LABELS))], LabelSpace(LABELS))
    numbers = {
        "share of a": 0.5,
        "share of b": 0.3,
        "share of names": 0.2,
        "scale of other labels": 0.7,
        "sharpness": 1.3,
    }
    form = MixtureForm(torch, read, numbers)
    np.testing.assert_allclose(
        form.tables()[0].detach().numpy(), mix_candidates(read, numbers)[0], rtol=1e-12
    )
    assert form.described() == pytest.approx(numbers)
    plain = numbers | {"scale of other labels": 1.0, "sharpness": 1.0}
    names = from_names(LABELS, LABELS)
    mixed = mix_kernels([(candidates["a"], 0.5), (candidates["b"], 0.3), (names, 0.2)])
    np.testing.assert_allclose(mix_candidates(read, plain)[0], mixed.to_dense(), rtol=1e-12)


def test_labels_that_no_candidate_joins_stay_apart(rng):
    table = random_kernel(rng)
    table[0, 3] = 0
    space = LabelSpace(LABELS)
    read = read_candidates({"a": named(table), "b": named(table**2)}, [("m", space)], space)
    numbers = {f"share of {name}": 1 / 3 for name in ("a", "b", "names")}
    numbers |= {"scale of other labels": 2.0, "sharpness": 0.5}
    mixed = MixtureForm(torch, read, numbers).tables()[0].detach().numpy()
    np.testing.assert_array_equal(mixed == 0, table == 0)


# -- gradients and stopping --------------------------------------------------------------


@pytest.mark.parametrize("form", ["mixture", "low rank"])
@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_gradients_are_those_of_finite_differences(rng, form, task):
    models, truth, _ = drawn_problem(rng, n_samples=30, n_models=2)
    if task == "multilabel":
        truth = (rng.uniform(size=(30, 5)) < 0.3).astype(float)
        truth[0, 1] = np.nan
    trial = read_trial(models, truth, target=LabelSpace(LABELS))
    sparse = random_kernel(rng)
    sparse[0, 1:3] = 0  # an entry of 0 must stay 0 and have no gradient of nan
    read = read_candidates(
        {"a": named(sparse), "b": named(random_kernel(rng))},
        [(m.model, m.labels) for m in models],
        trial.target,
    )
    if form == "mixture":
        numbers = {f"share of {name}": 1 / 3 for name in ("a", "b", "names")}
        made = MixtureForm(torch, read, numbers | {"scale of other labels": 0.5, "sharpness": 1.2})
    else:
        knobs = {"rank": 2, "own_factor": 1.0, "n_train": 999, "decay": 0.0, "seed": 0}
        made = LowRankForm(torch, read, 0, **knobs)
    rule = Barycenter(MASS, max_sweeps=3, tolerance=None)
    plan = Fusion(rule, kind="multiclass", target=trial.target).plan(models)
    fusion = TorchFusion(torch, plan, trial, read.places)
    training = Training(torch, made, fusion, trial, Calibration(task, 0.3, -0.2))
    rows = np.arange(30)
    gradients = torch.autograd.grad(training.loss(rows), training.numbers)
    step = 1e-6
    for number, gradient in zip(training.numbers, gradients, strict=True):
        flat, slopes = number.detach().view(-1), gradient.reshape(-1)
        for i in range(min(len(flat), 4)):
            before = float(flat[i])
            losses = []
            for moved in (before + step, before - step):
                flat[i] = moved
                losses.append(float(training.loss(rows).detach()))
            flat[i] = before
            slope = (losses[0] - losses[1]) / (2 * step)
            assert float(slopes[i]) == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_learning_stops_early_and_keeps_the_best_epoch(rng):
    models, _, _ = drawn_problem(rng, n_samples=120)
    truth = [LABELS[i] for i in rng.integers(5, size=120)]  # nothing to be learned
    options = {
        "candidates": {"a": named(random_kernel(rng))},
        "patience": 2,
        "rule": five_sweeps(MASS),
    }
    seen = []
    learned = learn_kernel(
        models, truth, max_epochs=50, progress=lambda *done: seen.append(done), **options
    )
    losses = [epoch.validation_loss for epoch in learned.history]
    assert len(losses) - 1 == learned.best_epoch.number + 2 < 50
    assert learned.best_epoch.validation_loss == min(losses)
    assert seen == [(epoch.number, 50) for epoch in learned.history[1:]]
    if learned.best_epoch.number:
        again = learn_kernel(models, truth, max_epochs=learned.best_epoch.number, **options)
        assert again.parameters == learned.parameters


def test_the_same_seed_gives_the_same_kernel(rng):
    models, truth, _ = drawn_problem(rng, n_samples=90)
    options = {
        "candidates": {"a": named(random_kernel(rng))},
        "rule": five_sweeps(MASS),
        "max_epochs": 2,
    }
    first, again = (learn_kernel(models, truth, **options) for _ in range(2))
    assert again.parameters == first.parameters
    assert again.history == first.history
    np.testing.assert_array_equal(again.kernel.to_dense(), first.kernel.to_dense())
    other = learn_kernel(models, truth, seed=1, **options)
    assert other.history[0] != first.history[0]


def test_adam_finds_the_bottom():
    number = torch.tensor([3.0, -2.0], dtype=torch.float64)
    adam = Adam(0.1)
    for _ in range(500):
        adam.step([number], [2 * (number - 1)])
    np.testing.assert_allclose(number.numpy(), 1, atol=1e-3)


def test_torch_gets_its_threads_back():
    torch.set_num_threads(2)
    with one_thread(torch):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


# -- other tasks -------------------------------------------------------------------------


def test_multi_label_truth_is_learned_by_binary_cross_entropy(rng):
    n_samples = 200
    true = random_kernel(rng)
    scores = rng.uniform(size=(n_samples, 5)) ** 3
    carried = scores @ (true / true.sum(axis=0))
    truth = (rng.uniform(size=carried.shape) < carried / carried.max()).astype(float)
    truth[:20, 0] = np.nan
    truth[20] = np.nan
    model = Predictions("m", range(n_samples), LABELS, scores, kind="multilabel")
    candidates = {"true": named(true), "noise": named(random_kernel(rng))}
    learned = learn_kernel(
        [model], truth, candidates=candidates, target=LABELS, max_epochs=5, rule=five_sweeps(MASS)
    )
    assert learned.calibration.task == "multilabel"
    assert "binary cross-entropy" in learned.report
    assert learned.n_train + learned.n_held_out == n_samples - 1
    found = learned.parameters
    assert found["share of true"] > found["share of noise"]
    assert learned.predict([model]).kind == "multilabel"


def test_label_sets_may_differ_and_share_the_mixture(rng):
    first, second = LABELS[:4], LABELS[2:]
    models = [
        Predictions("a", range(80), first, rng.dirichlet(np.ones(4), 80)),
        Predictions("b", range(80), second, rng.dirichlet(np.ones(3), 80)),
    ]
    truth = [LABELS[i] for i in rng.integers(5, size=80)]
    near = named(random_kernel(rng))
    own = {
        "a": named(random_kernel(rng, 4), first),
        "b": named(random_kernel(rng, 3), second),
    }
    learned = learn_kernel(
        models, truth, candidates={"near": near, "own": own}, target=LABELS, max_epochs=2
    )
    assert learned.fusion.plan(models).is_label_aware
    assert isinstance(learned.kernel, dict)
    assert learned.kernel["a"].source.names == tuple(first)
    assert learned.kernel["b"].shape == (3, 5)
    again = learned.remix({"near": near, "own": own})
    for name, kernel in again.items():
        np.testing.assert_allclose(kernel.to_dense(), learned.kernel[name].to_dense(), rtol=1e-12)
    other = learned.remix({"near": near, "own": dict.fromkeys(own, near)})
    assert not np.allclose(other["a"].to_dense(), learned.kernel["a"].to_dense())


def test_labels_without_a_common_name_have_no_share_of_names(rng):
    traits = ["small", "striped", "wet"]
    scores = rng.uniform(size=(60, 3))
    models = [
        Predictions("a", range(60), traits, scores, kind="multilabel"),
        Predictions("b", range(60), traits, scores**2, kind="multilabel"),
    ]
    table = random_kernel(rng, 3)
    truth = drawn_truth(rng, scores @ table, LABELS)
    learned = learn_kernel(
        models,
        truth,
        candidates={"t": named(table, traits), "u": named(random_kernel(rng, 3), traits)},
        target=LABELS,
        groups={"looks": ["small", "striped"]},
        max_epochs=2,
    )
    assert set(learned.parameters) == {
        "share of t",
        "share of u",
        "scale of other labels",
        "sharpness",
    }
    assert isinstance(learned.kernel, LabelledKernel)
    assert learned.calibration.task == "multiclass"


def test_a_group_scales_the_rows_of_its_labels(rng):
    space = LabelSpace(LABELS)
    read = read_candidates(
        {"a": named(random_kernel(rng))}, [("m", space)], space, {"insects": ["ant", "bee"]}
    )
    assert read.block_names == ("names", "insects", "other labels")
    numbers = {"share of a": 0.5, "share of names": 0.5, "sharpness": 1.0}
    plain = numbers | {"scale of insects": 1.0, "scale of other labels": 1.0}
    before = mix_candidates(read, plain)[0]
    after = mix_candidates(read, plain | {"scale of insects": 3.0})[0]
    ratio = after / before
    np.testing.assert_allclose(np.diag(ratio), 1)
    np.testing.assert_allclose(ratio[2:], 1)
    np.testing.assert_allclose(ratio[:2][~np.eye(5, dtype=bool)[:2]], 3)


# -- low rank ----------------------------------------------------------------------------


def test_a_low_rank_kernel_is_positive_and_held_near_its_start():
    rng = np.random.default_rng(0)
    true = named(random_kernel(rng))
    models, truth, _ = drawn_problem(rng, true, n_samples=200)
    options = {
        "candidates": {"a": true},
        "form": "low rank",
        "rank": 2,
        "rule": five_sweeps(Balanced()),
    }
    free = learn_kernel(models, truth, max_epochs=4, decay=0.0, **options)
    held = learn_kernel(models, truth, max_epochs=4, decay=1000.0, **options)
    assert free.kernel.to_dense().min() > 0
    assert held.parameters["way from the start"] < 0.05 < free.parameters["way from the start"]
    assert free.history[-1].train_loss < free.history[0].train_loss
    assert 0 < free.parameters["share of names"] < 1
    with pytest.raises(InvalidInputError, match='must have form="mixture" to be mixed anew'):
        free.remix({"a": true})


def test_a_low_rank_kernel_needs_enough_samples(rng):
    models, truth, _ = drawn_problem(rng, n_samples=50)
    words = 'form="low rank" must have at least 41 samples to train on.*81 numbers of rank 8.*35'
    with pytest.raises(InvalidInputError, match=words):
        learn_kernel(
            models,
            truth,
            candidates={"a": named(random_kernel(rng))},
            form="low rank",
            rule=five_sweeps(MASS),
        )


# -- calibration -------------------------------------------------------------------------


def test_a_calibration_keeps_the_order_and_lowers_the_loss(rng):
    scores = rng.dirichlet(np.ones(4), 200)
    truth = (scores**3).argmax(axis=1)
    found = fit_calibration(scores, truth, None, "multiclass")
    assert found.log_slope > 0  # truth is surer than the scores
    probabilities = found.apply(scores)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), truth)
    losses = [
        each_loss(scores, truth, each, "multiclass").mean() for each in ((0.0,), found.numbers)
    ]
    assert losses[1] < losses[0]


def test_a_row_without_mass_is_uniform_and_costs_a_finite_loss():
    scores = np.array([[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(Calibration("multiclass").apply(scores)[0], 0.5)
    assert np.isfinite(each_loss(scores, np.array([0, 1]), (0.0,), "multiclass")).all()
    present = np.array([[1.0, 0.0], [0.0, np.nan]])
    assert np.isfinite(each_loss(scores, present, (0.0, 0.0), "multilabel")).all()


# -- errors ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"candidates": {}}, "`candidates` must be a dict of names to kernels"),
        (
            {"candidates": {"a": np.eye(5)}},
            "candidate 'a' must be a LabelledKernel or a data frame",
        ),
        ({"candidates": {"a": {"other": 1}}}, "must have one for each model; 'm0' is missing"),
        ({"candidates": {"a": named(np.zeros((5, 5)))}}, "'a' must have an entry above 0"),
        ({"candidates": {"names": named(np.eye(5))}}, "another name than 'names'"),
        ({"form": "deep"}, "`form` must be one of mixture, low rank; got 'deep'"),
        ({"groups": {"g": ["gnu"]}}, "group 'g' must hold labels of the models; got 'gnu'"),
        ({"groups": {"g": ["ant"], "h": ["ant"]}}, "in one group; got 'ant' in two"),
        ({"validation_share": 1.5}, "`validation_share` must be below 1; got 1.5"),
        ({"validation_share": 0.01}, "must leave samples on both sides; got 0.01 of 20"),
        ({"rule": Barycenter(MASS)}, "`rule` must be a barycenter of a fixed number of sweeps"),
        ({"learning_rate": 0}, "`learning_rate` must be finite and above 0"),
        ({"sample_weight": [1.0] + [0.0] * 19}, "at least two samples must have an answer"),
        (
            {"candidates": {f"c{i}": named(np.ones((5, 5))) for i in range(9)}},
            "at most 10 numbers to learn; got 11 from 9 candidates and 2 blocks",
        ),
    ],
)
def test_errors_say_what_must_hold(rng, changes, words):
    models, truth, _ = drawn_problem(rng, n_samples=20)
    options = {"candidates": {"a": named(random_kernel(rng))}, "rule": five_sweeps(MASS)} | changes
    with pytest.raises(InvalidInputError, match=words):
        learn_kernel(models, truth, **options)


def test_a_model_that_was_learned_from_must_be_there(informative):
    learned, models, _, candidates = informative
    with pytest.raises(InvalidInputError, match="m1 is missing"):
        learned.predict(models[:1])
    with pytest.raises(InvalidInputError, match="candidates must be such that they have"):
        learned.remix({"true": candidates["true"]})


def test_without_torch_the_line_that_installs_it_is_told(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtraError, match=r"learning a kernel needs torch.*\n.*wassemble\[torch"
    ):
        learn_kernel([], [], candidates={})
