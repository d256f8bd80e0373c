"""Every rule through every kernel, frozen: a head answers as the library does."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import wassemble as ws
from wassemble.export import export_onnx, load_head, verify_head
from wassemble.inputs import Predictions
from wassemble.kernels import (
    DenseKernel,
    DiagonalKernel,
    LabelledKernel,
    LowRankKernel,
    SparseKernel,
)
from wassemble.labels import LabelSpace

onnx = pytest.importorskip("onnx", reason="heads need the extra onnx")
pytest.importorskip("onnxruntime", reason="heads need the extra onnx")

NAMES = [f"label {i}" for i in range(7)]
FIVE_SWEEPS = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), max_sweeps=5, tolerance=None)
RULES = (
    ws.ARITHMETIC,
    ws.GEOMETRIC,
    ws.PowerMean(0.3),
    ws.PowerMean(300.0),
    ws.GatedMean(1.0, n_top=2, floor=0.5),
    ws.GatedBarycenter(0.75, n_top=2, floor=0.7),
    ws.GatedBarycenter(1.0, n_top=2, floor=0.0),
    ws.Single("b"),
    ws.USUAL_RULE,
    FIVE_SWEEPS,
    ws.Barycenter(),
    ws.Barycenter(max_sweeps=20, tolerance=None),
    ws.Barycenter(n_top=3, max_sweeps=20, tolerance=None),
    ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3), n_top=3, max_sweeps=5, tolerance=None),
    ws.LineBarycenter(1),
    ws.LineBarycenter(2),
    ws.TreeBarycenter((7, 7, 8, 8, 9, 9, 9, 9, 9, -1)),
)


def make_kernel(name):
    rng = np.random.default_rng(3)
    entries = np.exp(-2 * rng.random((7, 7)))
    entries = (entries + entries.T) / 2
    kernel = {
        "dense": DenseKernel(entries, symmetric=True),
        "sparse": SparseKernel(sp.csr_array(np.where(entries > 0.45, entries, 0) + np.eye(7))),
        "low rank": LowRankKernel(rng.random((7, 2)) + 0.1, rng.random((7, 2)) + 0.1),
        "diagonal": DiagonalKernel(rng.random(7) + 0.2),
        "logs": DenseKernel.from_log(-900 * (1 - np.eye(7)) * rng.random((7, 7))),
    }[name]
    return LabelledKernel(kernel, NAMES, NAMES)


def spaces(*, differ=False):
    labels = {"a": LabelSpace(NAMES), "b": LabelSpace(NAMES), "c": LabelSpace(NAMES[::-1])}
    if differ:
        labels["c"] = LabelSpace([*NAMES[3:], "another"])
    return labels


def check(fusion, models, tmp_path, **options):
    about = export_onnx(fusion, tmp_path / "head.onnx", models=models, **options)
    verdict = verify_head(tmp_path / "head.onnx")
    assert verdict.holds
    assert about["gap"] <= 1e-5
    return about


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("kernel", ["dense", "sparse", "low rank", "diagonal", "logs"])
def test_a_head_answers_as_its_rule_through_any_kernel(rule, kernel, tmp_path):
    if rule.stops_at_tolerance and kernel in ("sparse", "logs"):
        pytest.skip("models that are sure of different labels take thousands of sweeps there")
    fusion = ws.Fusion(rule, make_kernel(kernel), target=NAMES, kind="multiclass")
    check(fusion, spaces(), tmp_path)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("kind", ["multiclass", "multilabel"])
def test_a_head_knows_labels_by_name_and_what_was_not_reported(rule, kind, tmp_path):
    if kind == "multilabel" and rule.is_balanced:
        pytest.skip("scores have no mass in common")
    aliases, target = {"label 5": "label 4"}, [*NAMES[:5], NAMES[6], "another"]
    fusion = ws.Fusion(rule, target=target, kind=kind, aliases=aliases)
    check(fusion, spaces(differ=True), tmp_path, gaps=True)


@pytest.mark.parametrize("positions", [(0, 1, 3, 3.5, 4, 9, 10), (3, 0, 1, 9, 4, 3.5, 10)])
@pytest.mark.parametrize("power", [1, 2])
def test_a_head_knows_where_labels_lie(power, positions, tmp_path):
    target = LabelSpace(NAMES, positions=positions)
    check(ws.Fusion(ws.LineBarycenter(power), target=target, kind="multiclass"), spaces(), tmp_path)


@pytest.mark.parametrize("model", ["b", 1])
def test_a_head_of_one_model_says_its_name(model, tmp_path):
    about = check(ws.Fusion(ws.Single(model), kind="multiclass"), spaces(), tmp_path)
    assert about["rule"] == "b alone"


@pytest.mark.parametrize("unobserved", ["spread", "renormalize", "drop"])
def test_a_head_completes_lists_as_the_fusion_says(unobserved, tmp_path):
    fusion = ws.Fusion(ws.HELLINGER, kind="multiclass", unobserved=unobserved)
    check(fusion, spaces(differ=True), tmp_path, gaps=True)


@pytest.mark.parametrize("rule", [ws.GEOMETRIC, FIVE_SWEEPS], ids=str)
def test_a_head_leaves_nothing_to_gaps_in_rows_that_it_divides_by_their_sums(rule, tmp_path):
    fusion = ws.Fusion(rule, kind="multiclass", normalize=True)
    check(fusion, spaces(), tmp_path, gaps=True)
    scores = np.random.default_rng(0).random((60, 7))
    tables = {name: scores.copy() for name in "abc"}
    tables["a"][:, :2] = np.nan
    samples = [Predictions(name, range(60), NAMES, table) for name, table in tables.items()]
    tables["c"] = tables["c"][:, ::-1]
    found = load_head(tmp_path / "head.onnx")(tables)["scores"]
    np.testing.assert_allclose(found, fusion.fuse(samples).scores, atol=1e-6)


def test_mass_that_leads_nowhere_is_less_of_a_say(tmp_path):
    fusion = ws.Fusion(ws.USUAL_RULE, kind="multiclass", target=NAMES[:4], normalize=True)
    check(fusion, spaces(differ=True), tmp_path)


def test_a_debiased_barycenter_is_frozen_too(tmp_path):
    rule = ws.Barycenter(debias=True, max_sweeps=20, tolerance=None)
    alike = {name: LabelSpace(NAMES) for name in "ab"}  # one kernel for all
    about = check(ws.Fusion(rule, make_kernel("dense"), kind="multiclass"), alike, tmp_path)
    assert about["sweeps"] == 20


@pytest.mark.parametrize("is_used", [True, False])
def test_weights_per_label_are_those_of_the_fusion(is_used, tmp_path):
    weights = np.random.default_rng(0).dirichlet(np.ones(3), size=7).T
    weights[:, 2] = [0.0, 0.0, 1.0]
    weights[1] *= is_used
    weights /= weights.sum(axis=0)
    fusion = ws.Fusion(ws.USUAL_RULE, make_kernel("dense"), kind="multiclass", weights=weights)
    check(fusion, spaces(), tmp_path)


def test_sweeps_are_as_many_as_samples_need(tmp_path):
    fusion = ws.Fusion(ws.USUAL_RULE, make_kernel("dense"), kind="multiclass")
    few = check(fusion, spaces(), tmp_path, tolerance=1e-2)["sweeps"]
    many = check(fusion, spaces(), tmp_path, tolerance=1e-6)["sweeps"]
    assert 1 <= few < many <= 300
    with pytest.raises(ws.InvalidInputError, match=r"must come within .* in 2 sweeps"):
        export_onnx(fusion, tmp_path / "head.onnx", models=spaces(), max_sweeps=2)


def test_numbers_beyond_float32_are_computed_in_float64(tmp_path):
    kernel = LabelledKernel(DenseKernel(np.eye(7) + 1e-60), NAMES, NAMES)
    fusion = ws.Fusion(FIVE_SWEEPS, kernel, kind="multiclass")
    assert check(fusion, spaces(), tmp_path)["arithmetic"].startswith("float64")


@pytest.mark.parametrize("kernel", ["dense", "sparse"])
def test_none_of_these_is_heard_though_no_sample_said_so(kernel, tmp_path, rng):
    rule = ws.Barycenter(ws.Unbalanced(20.0, epsilon=0.05), max_sweeps=9, tolerance=None)
    fusion = ws.Fusion(rule, make_kernel(kernel), kind="multilabel")
    tables = {name: rng.random((9, 7)) for name in "ab"}
    samples = [Predictions(name, range(9), NAMES, tables[name]) for name in tables]
    check(fusion, samples, tmp_path, samples=samples)
    tables["a"][:] = 0
    samples = [Predictions(name, range(9), NAMES, tables[name]) for name in tables]
    found = load_head(tmp_path / "head.onnx")(tables)["scores"]
    np.testing.assert_allclose(found, fusion.fuse(samples).scores, atol=1e-5)


def test_a_model_without_weight_is_not_asked_for(tmp_path):
    fusion = ws.Fusion(ws.ARITHMETIC, kind="multiclass", weights={"a": 0.5, "b": 0.0, "c": 0.5})
    about = check(fusion, spaces(), tmp_path)
    assert (list(about["models"]), about["unused"]) == (["a", "c"], ["b"])


@pytest.mark.parametrize("kind", ["multiclass", "multilabel"])
def test_models_of_one_kind_take_their_steps_together(kind, tmp_path):
    n_steps = []
    for n_models in (2, 6):
        models = {f"model {place}": LabelSpace(NAMES) for place in range(n_models)}
        check(ws.Fusion(FIVE_SWEEPS, make_kernel("dense"), kind=kind), models, tmp_path, gaps=True)
        n_steps.append(len(onnx.load(tmp_path / "head.onnx").graph.node))
    assert n_steps[0] == n_steps[1]


def make_models(n_samples=200, seed=0):
    """Three models with three label sets, one of which names single labels; and the truth."""
    rng = np.random.default_rng(seed)
    true = rng.integers(5, size=n_samples)
    models = []
    for name, labels, noise in (
        ("a", [0, 1, 2, 3, 4], 1.0),
        ("b", [0, 1, 2], 0.7),
        ("c", [2, 3, 4], 1.5),
    ):
        logits = 2.0 * (true[:, None] == labels) + noise * rng.normal(size=(n_samples, len(labels)))
        scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        scores[rng.random(n_samples) < 0.1] = np.nan
        models.append(Predictions(name, range(n_samples), [NAMES[i] for i in labels], scores))
    hard = np.where(
        np.arange(5) == np.where(rng.random(n_samples) < 0.6, true, 0)[:, None], 1, np.nan
    )
    models.append(
        Predictions("d", range(n_samples), NAMES[:5], hard, kind="multiclass", is_hard=True)
    )
    return models, [NAMES[i] for i in true]


@pytest.fixture(scope="module")
def learned():
    models, truth = make_models()
    return ws.learn_ensemble(models, truth, n_folds=3)


@pytest.mark.filterwarnings("ignore::wassemble.ConvergenceWarning")  # samples without an answer
def test_every_rule_of_a_leaderboard_is_frozen_and_agrees_on_new_samples(learned, tmp_path):
    known, test = make_models()[0], make_models(seed=1)[0]
    rules = {each.fusion.rule.key for each in (learned.fitted, *learned.rivals)}
    assert {"stacked consensus", "logistic stacking", "power mean"} <= rules
    for place, fitted in enumerate((learned.fitted, *learned.rivals)):
        path = tmp_path / f"{place}.onnx"
        export_onnx(fitted.fusion, path, models=dict(learned.models), samples=known)
        expected = fitted.fusion.run(test).consensus.scores
        np.testing.assert_allclose(load_head(path).fuse(test).scores, expected, atol=1e-5)


def test_a_learned_ensemble_keeps_its_temperature(learned, tmp_path):
    known, test = make_models()[0], make_models(seed=1)[0]
    assert learned.temperature != 1
    export_onnx(learned, tmp_path / "head.onnx", samples=known)
    expected = learned.predict(test).scores
    np.testing.assert_allclose(
        load_head(tmp_path / "head.onnx").fuse(test).scores, expected, atol=1e-5
    )


def test_what_was_learned_without_truth_is_frozen_too(tmp_path):
    models = [
        Predictions(name, range(300), NAMES[:3], np.eye(3)[answers])
        for name, answers in _votes().items()
    ]
    learned = ws.learn_ensemble(models)
    assert learned.fitted.fusion.rule.key == "vote product"
    export_onnx(learned, tmp_path / "head.onnx", samples=models)
    expected = learned.predict(models).scores
    np.testing.assert_allclose(
        load_head(tmp_path / "head.onnx").fuse(models).scores, expected, atol=1e-5
    )


def _votes():
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=300)
    return {
        f"rater {i}": np.where(rng.random(300) < right, true, rng.integers(3, size=300))
        for i, right in enumerate((0.95, 0.9, 0.5, 0.3, 0.2))
    }


def test_thresholds_decide_labels(tmp_path):
    rng = np.random.default_rng(0)
    truth = (rng.random((120, 3)) < 0.4).astype(int)
    tables = {name: truth * 0.4 + rng.random((120, 3)) * 0.6 for name in "ab"}
    models = [
        Predictions(name, range(120), NAMES[:3], scores, kind="multilabel")
        for name, scores in tables.items()
    ]
    learned = ws.learn_ensemble(models, truth, target=NAMES[:3], kind="multilabel", n_folds=2)
    export_onnx(learned, tmp_path / "head.onnx", samples=models)
    found = load_head(tmp_path / "head.onnx")({m.model: m.scores for m in models})
    scores = learned.predict(models).scores
    clear = np.abs(scores - learned.thresholds) > 1e-5
    assert (found["label"] == (scores >= learned.thresholds))[clear].all()


def test_a_scikit_learn_ensemble_goes_through_the_same_door(tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    X, y = datasets.load_iris(return_X_y=True)
    members = [
        ("line", LogisticRegression(max_iter=500)),
        ("tree", DecisionTreeClassifier(max_depth=2)),
    ]
    classifier = ws.WassersteinClassifier(members, n_folds=2).fit(X, y)
    export_onnx(classifier, tmp_path / "head.onnx")
    head = load_head(tmp_path / "head.onnx")
    answers = dict(
        zip(classifier.names_, [m.predict_proba(X) for m in classifier.members_], strict=True)
    )
    found = head({name: answers[name] for name in head.about["models"]})
    np.testing.assert_allclose(found["scores"], classifier.predict_proba(X), atol=1e-5)


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    path = tmp_path_factory.mktemp("head") / "head.onnx"
    export_onnx(ws.Fusion(FIVE_SWEEPS, kind="multiclass"), path, models=spaces(differ=True))
    return load_head(path)


def even_scores(head, n_samples=2):
    return {
        name: np.full((n_samples, len(labels)), 1 / len(labels))
        for name, labels in head.about["models"].items()
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"b": None}, "got none of 'b'"),
        ({"d": [[1.0]]}, "got those of 'd' too"),
        ({"b": np.ones((2, 6))}, r"'b' must have shape \(n_samples, 7\); got \(2, 6\)"),
        ({"b": np.ones(7)}, r"got \(7\)"),
        ({"b": np.full((3, 7), 1 / 7)}, "same number of samples; got 2 of 'a' and 3 of 'b'"),
        ({"b": [["x"] * 7] * 2}, "'b' must be numbers; got something else"),
        ({"b": np.full((2, 7), np.nan)}, r"nan at sample 0, label 'label 0'.\nhint: export with"),
        ({"b": np.full((2, 7), np.inf)}, "must be finite"),
        ({"b": np.full((2, 7), -0.1)}, "must not be negative"),
        ({"b": np.full((2, 7), 0.5)}, "must sum to 1 at most; got 3.5000 at sample 0 of 'b'"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_words(head, change, words):
    scores = even_scores(head) | change
    with pytest.raises(ws.InvalidInputError, match=words):
        head({name: each for name, each in scores.items() if each is not None})


def test_the_mask_must_be_a_mask(head):
    with pytest.raises(ws.InvalidInputError, match=r"`answered` must have shape \(n_samples, 3\)"):
        head(even_scores(head), [[1, 0]])


def test_scores_of_a_model_that_did_not_answer_do_not_matter(head):
    scores = even_scores(head)
    silent = np.array([[1, 1, 0], [1, 1, 1]])
    expected = head(scores, silent)["scores"]
    scores["c"][0] = np.nan
    np.testing.assert_array_equal(head(scores, silent)["scores"], expected)


def test_a_sample_that_nobody_answered_has_no_label(head):
    found = head(even_scores(head), np.array([[0, 0, 0], [1, 1, 1]]))
    assert found["label"][0] == -1
    assert not found["scores"][0].any()
    assert found["label"][1] >= 0


def test_the_file_says_what_it_is(head):
    about = head.about
    assert about["models"]["c"] == [*NAMES[3:], "another"]
    assert about["target"] == [*NAMES, "another"]
    assert (about["sweeps"], about["opset"], len(about["ensemble"])) == (5, 18, 64)
    assert json.dumps(about)


def test_another_ensemble_has_another_hash(tmp_path):
    hashes = set()
    for epsilon in (0.3, 0.4):
        rule = ws.Barycenter(ws.Unbalanced(2.0, epsilon=epsilon), max_sweeps=5, tolerance=None)
        fusion = ws.Fusion(rule, kind="multiclass")
        hashes.add(export_onnx(fusion, tmp_path / "head.onnx", models=spaces())["ensemble"])
    assert len(hashes) == 2


def test_golden_vectors_that_differ_are_found(tmp_path):
    export_onnx(
        ws.Fusion(ws.ARITHMETIC, kind="multiclass"), tmp_path / "head.onnx", models=spaces()
    )
    golden = tmp_path / "head.golden.json"
    record = json.loads(golden.read_text())
    record["outputs"]["scores"][0][0] += 1e-3
    golden.write_text(json.dumps(record))
    verdict = verify_head(tmp_path / "head.onnx")
    assert not verdict.holds
    assert verdict.gap == pytest.approx(1e-3, rel=0.01)


def test_what_cannot_be_frozen_is_refused(tmp_path):
    with pytest.raises(ws.InvalidInputError, match="a head is made of a learned ensemble"):
        export_onnx(ws.ARITHMETIC, tmp_path / "head.onnx", models=spaces())


def test_gaps_in_samples_make_a_head_that_takes_gaps(tmp_path):
    rows = np.array([[0.6, 0.3, np.nan], [0.2, np.nan, 0.5]])
    models = [Predictions(name, ["x", "y"], NAMES[:3], rows) for name in "ab"]
    fusion = ws.Fusion(ws.ARITHMETIC, kind="multiclass")
    assert export_onnx(fusion, tmp_path / "head.onnx", models=models, samples=models)["gaps"]
    with pytest.raises(ws.InvalidInputError, match="a head without gaps"):
        export_onnx(fusion, tmp_path / "head.onnx", models=models, samples=models, gaps=False)


def test_scores_that_float32_cannot_hold_ask_for_float64(tmp_path):
    rows = np.array([[1.0, 1e-60]])
    models = [
        Predictions(name, ["x"], NAMES[:2], each)
        for name, each in {"a": rows, "b": rows[:, ::-1]}.items()
    ]
    fusion = ws.Fusion(ws.GEOMETRIC, kind="multiclass")
    with pytest.raises(
        ws.InvalidInputError, match=r'must agree with the library.*\nhint: dtype="float64"'
    ):
        export_onnx(fusion, tmp_path / "head.onnx", models=models, samples=models)
    export_onnx(fusion, tmp_path / "head.onnx", models=models, samples=models, dtype="float64")
    np.testing.assert_allclose(load_head(tmp_path / "head.onnx").fuse(models).scores, [[0.5, 0.5]])


@pytest.mark.parametrize("kernel", ["dense", "sparse"])
def test_a_file_declares_the_shapes_that_it_gives(kernel, tmp_path):
    fusion = ws.Fusion(FIVE_SWEEPS, make_kernel(kernel), kind="multilabel")
    path = tmp_path / "head.onnx"
    export_onnx(fusion, path, models=spaces(), abstentions=False)
    outputs = pytest.importorskip("onnx").load(path).graph.output
    (scores,) = [each.type.tensor_type.shape.dim for each in outputs if each.name == "scores"]
    assert [scores[0].dim_param, scores[1].dim_value] == ["n_samples", 7]
