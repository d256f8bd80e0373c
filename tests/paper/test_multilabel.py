"""Objects in images: the rules' laws, what is tuned where, and figures known beforehand."""

from dataclasses import replace

import numpy as np
import pytest

from paper.multilabel import experiment as multilabel
from paper.multilabel.study import (
    GATE,
    GATED_MEAN,
    IDENTITY,
    PAPERS,
    Candidate,
    Grid,
    Study,
    generics,
    load_task,
    rank,
    visual_embeddings,
    without_transport,
)
from paper.record import judging
from paper.record.findings import Figure, paper_figures
from wassemble.solvers import GatedMean, PowerMean

SMALL = {
    "n_tops": (2,),
    "zetas": (0.05,),
    "floors": (0.7,),
    "mass_penalties": (3.0,),
    "orders": (0.5,),
}


@pytest.fixture
def scores(rng):
    return rng.uniform(0.01, 1, (3, 6, 5))


def candidate(name, **knobs):
    """The only candidate of its name."""
    (only,) = without_transport(["a"], Grid(**SMALL | knobs))[name]
    return only


def test_a_gated_mean_lowers_labels_outside_every_top(scores):
    fused = candidate(GATED_MEAN, n_tops=(1,), floors=(0.25,)).fuse(scores)
    mean = scores.mean(axis=0)
    is_top = (scores == scores.max(axis=2, keepdims=True)).any(axis=0)
    np.testing.assert_allclose(fused, np.where(is_top, mean, mean / 4))


def test_without_a_gate_the_diagonal_barycenter_is_a_power_of_a_power_mean(scores):
    f = 3 / (3 + 1)
    mean = PowerMean(f / (1 + f)).fuse(scores).scores
    np.testing.assert_allclose(candidate(IDENTITY).fuse(scores), mean**f)


@pytest.mark.parametrize("name", [GATE, PAPERS])
def test_sweeps_tend_to_the_closed_form(scores, name):
    converged = candidate(name, zetas=(0.1,))
    few, many = (converged.with_sweeps(n).fuse(scores) for n in (5, 200))
    fixed = converged.fuse(scores)
    np.testing.assert_allclose(many, fixed, rtol=1e-6)
    assert np.abs(few - fixed).max() > 1e-4


def test_a_narrow_generic_kernel_transports_nothing_and_a_wide_one_does(scores):
    narrow, wide = generics(1 - np.eye(5), (0.02, 0.5), (3.0,), 5)
    flat = candidate(IDENTITY).with_sweeps(5).fuse(scores)
    np.testing.assert_allclose(narrow.fuse(scores), flat)
    assert np.abs(wide.fuse(scores) - flat).max() > 0.05


def test_a_visual_embedding_is_the_mean_of_the_images_that_have_the_label():
    features = np.array([[1.0, 0.0], [3.0, 2.0], [10.0, 10.0]])
    labels = np.array([[1, 0], [1, 0], [0, 1]])
    assert visual_embeddings(features, labels).tolist() == [[2, 1], [10, 10]]


def test_similar_objects_look_alike():
    task = load_task("coco", least_score=0.0)
    names = list(task.task.target)
    cost = task.costs["visual embeddings"]
    near = names[np.argsort(cost[names.index("car")])[1]]
    assert near in ("truck", "bus", "traffic light")


@pytest.fixture(scope="module")
def voc():
    return load_task("voc", least_score=0.001)


def test_a_silent_detector_has_no_veto(voc):
    assert voc.scores.min() == np.float32(0.001)
    geometric = voc.test.score(PowerMean(0.0).fuse(voc.part(True)).scores)
    assert geometric > 0.94  # with zeros it is 0.87


def test_tuning_puts_the_best_first_and_keeps_the_order_of_equals(voc):
    rules = (PowerMean(8.0), PowerMean(1.0), GatedMean(1.0, 20, 0.5))  # the last two are one
    candidates = [Candidate(str(rule), rule) for rule in rules]
    found = rank(candidates, voc.part(False), voc.validation)
    assert list(found) == [candidates[1], candidates[2], candidates[0]]


def test_nothing_is_chosen_on_test_images(voc, rng):
    grid = Grid(n_tops=(1, 2), floors=(0.3, 0.8), zetas=(0.1,), mass_penalties=(1.0, 10.0))
    candidates = without_transport(voc.described, grid)
    spoilt = voc.scores.copy()
    is_test = voc.task.is_test
    spoilt[:, is_test] = rng.uniform(0.1, 1, spoilt[:, is_test].shape)
    first, second = (
        Study(
            task,
            {
                name: rank(candidates[name], task.part(False), task.validation)
                for name in (GATED_MEAN, GATE)
            },
        )
        for task in (voc, replace(voc, scores=spoilt))
    )
    assert first.best == second.best
    assert first.tried == second.tried


def test_the_papers_rows_agree_with_themselves():
    figures = paper_figures("multilabel").figures
    models = {name: row for name, row in figures.items() if "trained" in row}
    assert len(models) == 8
    for row in models.values():
        for kind in "CO":
            precision, recall = row[f"P-{kind}"], row[f"R-{kind}"]
            f1 = 2 * precision * recall / (precision + recall)
            assert row[f"F1-{kind}"] == pytest.approx(f1, abs=0.0015)
    assert figures["best single model"]["mAP"] == max(row["mAP"] for row in models.values())


@pytest.fixture(scope="module")
def findings():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "_N_RESAMPLES", 3)
        return multilabel.run(multilabel.Config(**SMALL, epsilons=(0.05, 0.5)))


def rows_of(findings, title):
    (table,) = [each for each in findings.tables if each.title == title]
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_figures_that_were_known_beforehand(findings):
    rows = rows_of(findings, "COCO: mAP")
    test = {name: row["test"].value for name, row in rows.items()}
    assert test["arithmetic mean"] == pytest.approx(0.629, abs=0.0006)
    assert test["geometric mean"] == pytest.approx(0.625, abs=0.0006)
    assert test["gated arithmetic mean"] == pytest.approx(0.632, abs=0.0006)
    assert test["best single model"] == pytest.approx(0.621, abs=0.0006)
    assert rows["diagonal K, the paper's"]["paper, test"] == 0.651
    assert rows["arithmetic mean"]["gain over arithmetic mean"] is None


def test_a_wide_generic_kernel_is_worse_than_the_tuned_one(findings):
    for row in rows_of(findings, "Generic kernels").values():
        assert row["distance to I"] < row["widest: distance to I"]
        assert row["validation mAP"] > row["widest: validation mAP"]


def test_a_tuned_threshold_serves_better_than_one_half(findings):
    for row in rows_of(findings, "COCO: decisions at 0.5").values():
        assert row["F1-O there"] > row["F1-O"]


@pytest.mark.parametrize(("low", "said"), [(0.001, "Better than"), (-0.001, "No diagonal")])
def test_the_text_says_whether_a_barycenter_beats_the_gated_mean(low, said):
    gain = Figure(0.002, low, 0.003, is_gain=True)
    rows = [["diagonal", "gated arithmetic mean", gain], ["other", "K = I", replace(gain, low=1)]]
    table = multilabel.Table("", ["rule", "over", "COCO"], rows)
    assert multilabel._verdict(table).startswith(said)
