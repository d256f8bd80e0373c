"""Results show themselves: as HTML in notebooks, and drawn by matplotlib."""

import re

import matplotlib as mpl
import numpy as np
import pytest

import wassemble as ws
from wassemble._pictures import Bars

mpl.use("agg")
from matplotlib import pyplot as plt

LABELS = ["cat", "<dog>", "lynx"]
KERNEL = ws.LabelledKernel([[1.0, 0.2, 0], [0.2, 1.0, 0], [0, 0, 1.0]], LABELS)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def make_result():
    models = [
        ws.Predictions("a", ["x", "y"], LABELS, [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]),
        ws.Predictions("b", ["x", "y"], LABELS[:2], [[0.6, 0.4], [np.nan, np.nan]]),
    ]
    return ws.Fusion(kernel=None).run(models)


def make_votes(n_samples=40):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=n_samples)
    return truth, [
        ws.Predictions(
            name,
            range(n_samples),
            ["no", "yes"],
            np.eye(2)[np.where(rng.random(n_samples) < right, truth, 1 - truth)],
        )
        for name, right in {"good": 0.95, "fair": 0.8, "poor": 0.6}.items()
    ]


def bars_of(axes):
    """What a panel says: the largest label first."""
    ticks = [tick.get_text() for tick in axes.get_yticklabels()]
    return dict(zip(ticks, [bar.get_width() for bar in axes.patches], strict=True))


def test_a_sample_is_drawn_with_each_model_beside_the_consensus():
    result = make_result()
    axes = result.plot("x").axes
    assert [each.get_title() for each in axes] == ["a", "b", "consensus"]
    assert bars_of(axes[0]) == {"cat": 0.7, "<dog>": 0.2, "lynx": 0.1}
    consensus = dict(zip(result.consensus.labels, result.consensus.scores[0], strict=True))
    assert bars_of(axes[2]) == pytest.approx(consensus)


def test_a_model_that_did_not_answer_has_no_bars():
    assert bars_of(make_result().plot("y").axes[1]) == {}


def test_html_of_a_result_escapes_names_and_shows_the_consensus():
    shown = make_result()._repr_html_()
    assert "&lt;dog&gt;" in shown
    assert "<dog>" not in shown
    assert "<caption>consensus</caption>" in shown
    assert "<script" not in shown


def test_the_largest_bar_is_as_wide_as_its_column():
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", make_result()._repr_html_())]
    assert max(widths) == 100
    assert min(widths) >= 0


def test_of_many_models_the_first_eight_stand_beside_the_consensus():
    result = ws.solve_barycenter(np.full((20, 2), 0.5), np.eye(2))
    titles = [axes.get_title() for axes in result.plot().axes]
    assert titles == [*(f"model {number}" for number in range(8)), "consensus"]


def test_bars_of_losses_and_of_what_is_not_known_have_a_width():
    shown = Bars("log_loss", ["a", "b", "c"], [-0.5, -1.0, np.nan]).to_html()
    assert re.findall(r"width:([\d.]+)%", shown) == ["50.0", "100.0", "0.0"]
    assert "nan" in shown


def test_a_kernel_is_drawn_with_names_and_its_own_entries():
    axes = KERNEL.plot()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == LABELS
    assert np.array_equal(axes.images[0].get_array(), KERNEL.to_dense())
    assert "&lt;dog&gt;" in KERNEL._repr_html_()


@pytest.mark.parametrize(
    "kernel",
    [
        ws.kernels.IdentityKernel(3),
        ws.kernels.DiagonalKernel([[1.0, 0.5, 0.2], [0.1, 1.0, 1.0]]),
        ws.kernels.LowRankKernel(np.ones((3, 1))),
        ws.kernels.SparseKernel(KERNEL.kernel.to_sparse()),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_any_kernel_shows_itself(kernel):
    assert "<table>" in kernel._repr_html_()
    assert kernel.plot().images[0].get_array().shape == (3, 3)


def test_a_kernel_that_is_too_large_to_see_says_what_to_do():
    large = ws.kernels.IdentityKernel(50_000)
    assert large._repr_html_() is None
    with pytest.raises(ws.InvalidInputError, match=r"(?s)to be drawn.*hint: .*select"):
        large.plot()


def test_a_large_grid_shows_its_corner_and_says_so():
    shown = ws.kernels.IdentityKernel(100)._repr_html_()
    assert "its corner" in shown
    assert shown.count("<tr>") == 17


def test_a_barycenter_is_drawn_by_numbers():
    result = ws.solve_barycenter([[0.7, 0.3], [0.4, 0.6]], np.eye(2))
    axes = result.plot().axes
    assert [each.get_title() for each in axes] == ["model 0", "model 1", "consensus"]
    assert bars_of(axes[0]) == pytest.approx({"0": 0.7, "1": 0.3})
    assert "converged" in result._repr_html_()


def test_a_fusion_shows_its_rule_and_its_kernels():
    shown = ws.Fusion(ws.GEOMETRIC, kernel={"a": KERNEL, "b": KERNEL})._repr_html_()
    assert "geometric mean" in shown
    assert shown.count("<table>") == 2
    assert ws.Fusion(kernel=[KERNEL, KERNEL])._repr_html_().count("<table>") == 2
    assert ws.Fusion(kernel=KERNEL)._repr_html_().count("<table>") == 1
    assert "<table>" not in ws.Fusion(kernel=KERNEL.kernel.to_sparse().tocoo())._repr_html_()
    assert "<table>" not in ws.Fusion()._repr_html_()


def test_a_leaderboard_has_a_line_for_each_rule_and_marks_the_chosen_one():
    truth, models = make_votes()
    names = [["no", "yes"][label] for label in truth]
    learned = ws.learn_ensemble(models, names, n_folds=2, time_budget=2)
    axes = learned.plot()
    lines = [tick.get_text() for tick in axes.get_yticklabels()]
    assert len(lines) == len(learned.leaderboard)
    assert sum(line.endswith("(chosen)") for line in lines) == 1
    assert learned.metric in axes.get_title()
    assert "(chosen)" in learned._repr_html_()


def test_a_ranking_is_drawn_best_first():
    ranking = ws.rank_models(make_votes()[1])
    lines = [tick.get_text() for tick in ranking.plot().get_yticklabels()]
    assert lines == [each.model for each in ranking.models]
    assert "good" in ranking._repr_html_()


def test_calibration_is_drawn_on_given_axes():
    _, axes = plt.subplots()
    scores = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]
    bins = ws.metrics.calibration_bins(scores, [0, 1, 1], n_bins=2)
    assert bins.plot(axes) is axes
    assert axes.lines[1].get_ydata().tolist() == pytest.approx([2 / 3])
