"""A fusion is a value: it compares, is kept in files, and makes each plan once."""

import copy
import dataclasses
import json
import pickle
import warnings

import numpy as np
import pytest

import wassemble as ws
from wassemble import Fusion, InvalidInputError, Predictions
from wassemble.ensemble import plan as plans

LABELS = ["cat", "dog", "cow"]
SIMILAR = [[1.0, 0.5, 0.2], [0.5, 1.0, 0.2], [0.2, 0.2, 1.0]]
RULES = [
    ws.USUAL_RULE,
    ws.Barycenter(),
    ws.Barycenter(ws.Unbalanced(1.0, epsilon=0.5), max_sweeps=5, tolerance=None),
    ws.ARITHMETIC,
    ws.GEOMETRIC,
    ws.PowerMean(0.25),
    ws.GatedMean(1.0, n_top=1, floor=0.5),
    ws.GatedBarycenter(0.75, n_top=1, floor=0.5),
    ws.Single("b"),
]


def model(name, rng, n_samples=4, labels=LABELS, **options):
    scores = rng.dirichlet(np.ones(len(labels)), n_samples)
    return Predictions(name, [f"s{i}" for i in range(n_samples)], labels, scores, **options)


@pytest.fixture
def models(rng):
    return [model("a", rng), model("b", rng, labels=LABELS[::-1])]


def kernel(origin="by hand"):
    return ws.LabelledKernel(SIMILAR, LABELS, LABELS, origin)


FUSIONS = {
    "usual": Fusion(),
    "mean": Fusion(ws.ARITHMETIC, leftover=0.2),
    "few sweeps": Fusion(ws.Barycenter(max_sweeps=5, tolerance=None)),
    "weights by name": Fusion(weights={"a": 0.3, "b": 0.7}),
    "weights": Fusion(weights=[0.3, 0.7]),
    "weights per label": Fusion(weights=np.array([[0.3, 0.5, 1.0], [0.7, 0.5, 0.0]])),
    "one kernel": Fusion(kernel=kernel()),
    "kernels by name": Fusion(kernel={"a": kernel(), "b": kernel("other")}),
    "kernels": Fusion(kernel=[kernel(), kernel("other")]),
    "names": Fusion(
        target=LABELS,
        aliases=ws.Aliases([("a", "cow", "dog"), (None, "ox", "cow", 2.0)]),
        other={"b": "cow"},
        fold=True,
        samples="common",
        allow_disjoint=True,
        kind="multiclass",
        unobserved="drop",
        hard_confidence=0.5,
    ),
}


@pytest.mark.parametrize("name", FUSIONS)
def test_what_was_saved_is_loaded(name, tmp_path, models):
    fusion = FUSIONS[name]
    fusion.save(tmp_path / "saved")
    loaded = Fusion.load(tmp_path / "saved")
    assert loaded == fusion
    assert hash(loaded) == hash(fusion)
    if name != "names":
        found, expected = loaded.run(models), fusion.run(models)
        np.testing.assert_array_equal(found.consensus.scores, expected.consensus.scores)
    for other, another in FUSIONS.items():
        assert (loaded == another) == (other == name)


def test_a_table_of_weights_is_saved_by_name(tmp_path, models):
    pd = pytest.importorskip("pandas")
    weights = pd.DataFrame([[0.2, 0.5, 1.0], [0.8, 0.5, 0.0]], index=["b", "a"], columns=LABELS)
    fusion = Fusion(weights=weights, target=LABELS)
    fusion.save(tmp_path)
    loaded = Fusion.load(tmp_path)
    assert loaded == fusion
    expected = fusion.fuse(models).scores
    np.testing.assert_allclose(loaded.fuse(models[::-1]).scores, expected, rtol=1e-9)


def test_a_kernel_that_models_share_is_saved_once(tmp_path):
    shared = kernel()
    Fusion(kernel={"a": shared, "b": shared, "c": kernel()}).save(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.npz")) == ["kernel-0.npz", "kernel-1.npz"]
    loaded = Fusion.load(tmp_path).kernel
    assert loaded["a"] is loaded["b"]


@pytest.mark.parametrize("given", [np.eye(3), ws.kernels.IdentityKernel(3), ws.kernels.from_names])
def test_kernels_without_names_are_not_saved(given, tmp_path):
    with pytest.raises(InvalidInputError, match=r"kernels that have names.*\nhint: LabelledKernel"):
        Fusion(kernel=given).save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def nested(depth):
    """A list in a list in a list ..."""
    return json.loads("[" * depth + "]" * depth)


def broken(**changes):
    entries = {"format": "wassemble fusion 1", "kernel": None, **Fusion().to_dict(), **changes}
    return json.dumps(entries)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must be JSON; it is damaged"),
        ("[]", "must be a fusion that `Fusion.save` wrote"),
        (broken(format="wassemble fusion 0"), "must be a fusion that `Fusion.save` wrote"),
        (broken(rule={"rule": "vote"}), "damaged: a rule must be one of"),
        (broken(leftover=7), "damaged: `leftover` must be from 0 to 1; got 7"),
        (broken(colour="red"), "damaged: a fusion must have .*; got 'colour'"),
        (broken(target=3), "damaged"),
        (broken(kernel=nested(800)), "damaged: it is nested too deeply"),
        (broken(weights=nested(40)), "damaged: it is nested too deeply"),
        (broken(leftover=10**400), "damaged"),
        ("[" * 100_000, "must be JSON; it is damaged"),
        (broken(weights={"models": ["a"]}), "damaged"),
        (broken(kernel="../kernel-0.npz"), "a kernel must be a file of the folder"),
        (broken(kernel=7), "a kernel must be a file of the folder"),
        (broken(kernel="kernel-9.npz"), "there is none"),
    ],
)
def test_a_damaged_file_is_refused(text, message, tmp_path):
    (tmp_path / "fusion.json").write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        Fusion.load(tmp_path)


def test_a_folder_without_a_fusion_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"must hold fusion\.json"):
        Fusion.load(tmp_path / "nothing")


def test_equal_fusions_are_one_in_a_set():
    assert len({Fusion(kernel=kernel()), Fusion(kernel=kernel()), Fusion()}) == 2
    assert Fusion(kernel=kernel()) != Fusion(kernel=ws.LabelledKernel(np.eye(3), LABELS, LABELS))
    assert Fusion(kernel=np.eye(2)) == Fusion(kernel=np.eye(2))
    assert Fusion(kernel=[[1, 0.5], [0.5, 1]]) != Fusion(kernel=[[1, 0], [0, 1]])
    assert Fusion(kernel=ws.kernels.IdentityKernel(2)) != Fusion(
        kernel=ws.kernels.DiagonalKernel([1.0, 0.5])
    )
    assert Fusion() != 3


def test_a_fusion_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Fusion().leftover = 0.5
    assert Fusion(fold=True).replace(leftover=0.5) == Fusion(leftover=0.5, fold=True)


def test_a_fusion_says_what_is_not_usual():
    assert repr(Fusion()) == "Fusion()"
    found = repr(Fusion(ws.ARITHMETIC, target=["cat"], fold=True))
    assert found == "Fusion(rule=PowerMean(order=1.0), target=['cat'], fold=True)"


def test_a_plan_is_made_once(models, monkeypatch):
    made = []
    init = plans.FusionPlan.__init__

    def counted(self, *arguments):
        made.append(arguments)
        init(self, *arguments)

    monkeypatch.setattr(plans.FusionPlan, "__init__", counted)
    fusion = Fusion()
    first = fusion.plan(models)
    again = [Predictions(m.model, m.samples, list(m.labels), m.scores) for m in models]
    assert fusion.plan(again) is first
    assert fusion.run(models).plan is first
    assert fusion.plan({m.model: m for m in models}) is first
    assert len(made) == 1
    # Other names, labels or another kind make another plan.
    assert fusion.plan(models[::-1]) is not first
    assert fusion.plan([m.replace(kind="multilabel") for m in models]) is not first
    assert len(made) == 3


def test_few_plans_are_kept(rng):
    fusion = Fusion()
    kept = fusion.plan([model("0", rng)])
    for number in range(1, 20):
        fusion.plan([model(str(number), rng)])
    assert fusion.plan([model("0", rng)]) is not kept
    assert len(fusion._kept_plans) < 10


def test_a_plan_travels_without_what_made_the_kernel(models):
    def make(source, target):  # no pickle knows it
        return ws.kernels.from_names(source, target)

    plan = Fusion(kernel=make).plan(models)
    found = pickle.loads(pickle.dumps(plan)).fuse(models)
    np.testing.assert_array_equal(found.scores, plan.fuse(models).scores)


def test_a_fusion_travels_without_its_plans(models):
    fusion = Fusion(kernel=kernel())
    fusion.plan(models)
    for other in (pickle.loads(pickle.dumps(fusion)), copy.copy(fusion)):
        assert other == fusion
        assert not other._kept_plans


def test_a_plan_by_labels_needs_the_kind():
    spaces = {"a": ws.LabelSpace(LABELS)}
    assert Fusion(kind="multilabel").plan(spaces).kind == "multilabel"
    with pytest.raises(InvalidInputError, match="`kind` must be given where models are known by"):
        Fusion().plan(spaces)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_is_fused_is_the_consensus_of_the_run(rule, models):
    fusion = Fusion(rule, kernel())
    consensus = fusion.fuse(models)
    np.testing.assert_array_equal(consensus.scores, fusion.run(models).consensus.scores)
    np.testing.assert_allclose(consensus.scores.sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore::wassemble.InputWarning")
@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        *((rule, "multiclass") for rule in RULES),
        *((rule, "multilabel") for rule in RULES if not rule.is_balanced),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": kernel()},
        {"target": ["cat", "dog"]},
        {"target": ["cat", "dog", "cow", "lynx"], "aliases": {"cow": "dog"}},
        {"weights": {"a": 0.2, "b": 0.8}},
        {"weights": {"a": 1, "b": 0}},
        {"weights": [[0.2, 0.5, 1.0], [0.8, 0.5, 0.0]]},
    ],
    ids=str,
)
def test_a_prepared_fusion_gives_the_same(rule, options, kind, models, rng):
    if isinstance(rule, ws.Single):
        options = {name: given for name, given in options.items() if name != "weights"}
    fusion = Fusion(rule, **options, kind=kind)
    fuser = fusion.prepare(models)
    new = [m.replace(scores=rng.dirichlet(np.ones(3), 4)) for m in models]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ws.ConvergenceWarning)
        expected = fusion.fuse(new).scores
    found = fuser({m.model: m.scores for m in new})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(fuser([m.scores for m in new]), found)
    one = fuser([m.scores[1] for m in new])
    np.testing.assert_allclose(one, expected[1], rtol=1e-5, atol=1e-9)
    gaps = [m.scores.copy() for m in new]
    gaps[0][0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ws.ConvergenceWarning)
        silent = fusion.fuse([m.replace(scores=s) for m, s in zip(new, gaps, strict=True)])
    np.testing.assert_array_equal(fuser(gaps), silent.scores)


def test_a_prepared_fusion_keeps_the_type_of_the_scores(models):
    fuser = Fusion().prepare(models)
    for dtype in (np.float32, np.float64):
        assert fuser([m.scores.astype(dtype) for m in models]).dtype == dtype


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.2, 0.3, 0.5]], "each of 'a', 'b'; got 1 arrays"),
        ({"a": [0.2, 0.3, 0.5], "c": [0.2, 0.3, 0.5]}, "got those of 'a', 'c'"),
        ([[0.2, 0.8], [0.2, 0.8]], r"the scores of 'a' must have shape .*got \(1, 2\)"),
        ([[0.2, 0.3, 0.5], [0.2, 0.9, -0.1]], "must not be negative"),
        ([[0.2, 0.3, 0.5], [2.0, 0.9, 0.1]], "histograms must sum to 1 at most"),
    ],
)
def test_a_prepared_fusion_refuses_other_scores(scores, message, models):
    with pytest.raises(InvalidInputError, match=message):
        Fusion().prepare(models)(scores)


def test_everything_comes_back_as_what_it_was(models):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    fusion = Fusion(kernel=kernel())
    assert isinstance(fusion.fuse(models), Predictions)
    expected = fusion.fuse(models).scores
    for library in (pd, pl):
        frames = {
            m.model: library.DataFrame(
                {"sample": m.samples.astype(str)} | dict(zip(m.labels, m.scores.T, strict=True))
            )
            for m in models
        }
        found = fusion.fuse(frames)
        assert isinstance(found, library.DataFrame)
        np.testing.assert_array_equal(found[LABELS].to_numpy(), expected)
    arrays = [m.scores[:, [m.labels.place(name) for name in LABELS]] for m in models]
    found = Fusion(kernel=np.array(SIMILAR)).fuse(arrays)
    assert isinstance(found, np.ndarray)
    # Labels in another order: sums are rounded otherwise.
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    torch = pytest.importorskip("torch")
    tensors = [torch.as_tensor(array) for array in arrays]
    found = Fusion(kernel=np.array(SIMILAR)).fuse(tensors)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_a_single_model_is_left_as_it_is(models):
    for rule in (ws.Single("b"), ws.Single(1)):
        found = Fusion(rule, target=LABELS[::-1]).fuse(models)
        np.testing.assert_allclose(found.scores, models[1].scores)
    silent = [models[0], models[1].take(slice(1, None))]
    with pytest.warns(ws.ConvergenceWarning, match="1 of 4 samples: no model answered"):
        found = Fusion(ws.Single("b")).fuse(silent)
    assert np.isnan(found.scores[0]).all()
    for strange in (ws.Single("c"), ws.Single(2)):
        with pytest.raises(InvalidInputError, match="a single model must be one of 'a', 'b'"):
            Fusion(strange).fuse(models)
    with pytest.raises(InvalidInputError, match="`weights` must be left out for a single model"):
        Fusion(ws.Single("a"), weights=[0.5, 0.5])


def test_what_is_in_pieces_is_sent_elsewhere(models, tmp_path):
    given = [{"a": tmp_path}, [str(tmp_path)], str(tmp_path)]
    dask = pytest.importorskip("dask.array")
    given.append([dask.ones((2, 2))] * 2)
    for each in given:
        for call in (ws.fuse, Fusion().fuse, Fusion().run):
            with pytest.raises(InvalidInputError, match=r"in memory; got .*\nhint: .*fuse_lazily"):
                call(each)


@pytest.mark.parametrize("name", ["progress", "out"])
def test_what_is_for_arrays_is_refused_beside_names(name, models):
    with pytest.raises(InvalidInputError, match=f"`{name}` must go with arrays; got predictions"):
        Fusion().fuse(models, **{name: print})


def test_names_are_refused_beside_arrays():
    with pytest.raises(InvalidInputError, match="`weights` must be an array here, for"):
        Fusion(weights={"a": 0.5, "b": 0.5}).fuse([[0.5, 0.5], [0.2, 0.8]])


def test_a_plan_of_tables_reads_them_as_they_are_fused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"cat": [3, 1], "dog": [1, 4]})
    fusion = Fusion(by_row=True, normalize=True)
    assert fusion.plan({"a": frame, "b": frame}) is fusion.run({"a": frame, "b": frame}).plan


def test_labels_are_not_matched_again_where_only_rule_or_weights_change(models, monkeypatch):
    fusion = Fusion(target=LABELS)
    fusion.plan(models)
    rule, weights = ws.Barycenter(), {"a": 0.9, "b": 0.1}
    expected = Fusion(rule, target=LABELS, weights=weights).fuse(models).scores
    monkeypatch.setattr(plans.FusionPlan, "__init__", None)
    changed = fusion.replace(rule=rule, weights=weights)
    np.testing.assert_array_equal(changed.fuse(models).scores, expected)
    with pytest.raises(TypeError):
        fusion.replace(target=LABELS[:2]).plan(models)


def test_a_single_model_is_prepared_by_name():
    fuser = Fusion(ws.Single("a"), kind="multiclass").prepare({"a": ws.LabelSpace(["x", "y"])})
    np.testing.assert_allclose(fuser({"a": [0.3, 0.7]}), [0.3, 0.7])


@pytest.mark.parametrize(
    "weights",
    [
        {"a": None},
        "abc",
        10**400,
        [["a"]],
        {"models": ["a", "b"]},
        {"models": ["a", "b"], "labels": ["x", "y"], "weights": [[1]]},
    ],
)
def test_weights_of_a_damaged_file_are_refused(weights):
    with pytest.raises(ws.InvalidInputError, match="must be numbers, one per model"):
        Fusion.from_dict({"weights": weights})


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"a": 1.5, "b": -0.5}, "must not be negative; got -0.5 at 'b'"),
        (np.array([[1, 0, 2], [0, 1, -1]]), "got -1 at 'b', target label 'cow'"),
    ],
)
def test_a_weight_is_told_by_the_name_of_its_model(models, weights, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        Fusion(weights=weights, target=LABELS).fuse(models)
