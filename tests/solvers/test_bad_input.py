"""Every argument of `solve_barycenter`: what must hold, what was got, where, the way out."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from problems import solve_with

import wassemble as ws

GOOD = np.array([[[0.2, 0.3, 0.5]], [[0.1, 0.1, 0.8]]])
KERNEL = np.exp(-np.abs(np.subtract.outer(np.arange(3.0), np.arange(4.0))))
UNBALANCED = ws.Unbalanced(2.0, epsilon=0.3)


def changed(value):
    histograms = GOOD.copy()
    histograms[1, 0, 2] = value
    return histograms


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # histograms
        ({"histograms": None}, "`histograms` must be one array per model; got NoneType"),
        ({"histograms": 1.0}, "`histograms` must be one array per model; got float"),
        ({"histograms": "scores"}, "`histograms` must hold real numbers"),
        ({"histograms": [["a", "b", "c"]]}, "must hold real numbers; got an array of dtype"),
        ({"histograms": [[object()] * 3]}, "must hold real numbers; got an object of type list"),
        ({"histograms": [[1j, 0, 0]]}, "must hold real numbers; got an array of dtype complex"),
        ({"histograms": torch.ones((1, 1, 3)) * 1j}, "must hold real numbers; got a tensor"),
        ({"histograms": []}, "at least one model; got none"),
        ({"histograms": [[[0.2, 0.8], [1.0]]]}, "rows of different lengths"),
        ({"histograms": [GOOD]}, r"one array of shape \(n_samples, n_source\)"),
        ({"histograms": [GOOD[0], GOOD[0, 0]]}, r"got shapes \(1, 3\), \(3,\)"),
        (
            {"histograms": [GOOD[0], np.repeat(GOOD[0], 2, axis=0)]},
            "same samples .* got 1, 2 samples",
        ),
        ({"histograms": np.empty((2, 1, 0))}, "one row per source label; got 3 rows and 0 labels"),
        (
            {"histograms": changed(-0.8)},
            "must not be negative; got -0.8 at model 1, sample 0, source label 2",
        ),
        (
            {"histograms": changed(np.nan)},
            "must not be nan; got nan at model 1, sample 0, source label 2",
        ),
        (
            {"histograms": changed(np.inf)},
            "must be finite; got inf at model 1, sample 0, source label 2",
        ),
        (
            {"histograms": changed(0.5)},
            r"sum to 1 in each row.*; got 0.7 at model 1, sample 0.\nhint: normalize=True",
        ),
        (
            {"histograms": np.zeros((1, 1, 3)), "normalize": True},
            "a row of zeros at model 0, sample 0",
        ),
        # kernels
        ({"kernels": "cosine"}, "`kernel` must hold real numbers; got an array of dtype"),
        ({"kernels": []}, "`kernel` must have two axes"),
        ({"kernels": np.ones(3)}, r"`kernel` must have two axes, .*; got shape \(3,\)"),
        ({"kernels": [KERNEL] * 3}, "one kernel for all 2 models or one per model; got 3"),
        (
            {"kernels": KERNEL.T},
            "one row per source label; got 4 rows and 3 labels.\nhint: .*`kernel.T` swaps",
        ),
        (
            {"histograms": [GOOD[0], GOOD[0, :, :2] * 2]},
            "model 1 .* got 3 rows and 2 labels.\nhint: .*a kernel each",
        ),
        ({"histograms": {"a": GOOD[0]}}, "got a dict.\nhint: list"),
        ({"kernels": np.ones((5, 6))}, "one row per source label; got 5 rows and 3 labels.$"),
        ({"kernels": [KERNEL, KERNEL[:, :2]]}, "same target labels .* got 4, 2 of them"),
        (
            {"kernels": ws.kernels.DiagonalKernel(np.ones((2, 3)))},
            "one diagonal for each of the 1 samples; got 2",
        ),
        (
            {"kernels": -KERNEL},
            "`kernel` must not be negative; got -1 at source label 0, target label 0",
        ),
        (
            {"kernels": sp.csr_array(-KERNEL)},
            "`kernel` must not be negative; got -1 at source label 0",
        ),
        # weights
        (
            {"weights": [0.5, 0.6]},
            r"`weights` must sum to 1 over the models; got 1.1.\nhint: divide by the sum",
        ),
        ({"weights": [1.5, -0.5]}, "`weights` must not be negative; got -0.5 at model 1"),
        ({"weights": [np.nan, 1.0]}, "`weights` must not be nan; got nan at model 0"),
        ({"weights": [np.inf, 1.0]}, "`weights` must be finite; got inf at model 0"),
        ({"weights": []}, r"`weights` must have shape \(2,\)"),
        ({"weights": [1.0]}, r"`weights` must have shape \(2,\), one per model, or \(2, 4\)"),
        (
            {"weights": np.full((2, 3), 0.5)},
            r"or \(2, 4\), one per model and target label .*; got \(2, 3\)",
        ),
        ({"weights": [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.4, 0.5]]}, "got 0.9 at target label 2"),
        ({"weights": "equal"}, "`weights` must hold real numbers"),
        # mass
        ({"mass": None}, r"`mass` must be Balanced\(\) or Unbalanced.*; got None"),
        ({"mass": "balanced"}, r"`mass` must be Balanced\(\) or Unbalanced"),
        ({"mass": ws.Balanced}, r"`mass` must be Balanced\(\) or Unbalanced"),
        # numbers
        ({"max_sweeps": 0}, "`max_sweeps` must be at least 1; got 0"),
        ({"max_sweeps": 2.5}, "`max_sweeps` must be a whole number; got 2.5"),
        ({"max_sweeps": True}, "`max_sweeps` must be a whole number; got True"),
        ({"max_sweeps": "5"}, "`max_sweeps` must be a whole number; got '5'"),
        ({"tolerance": 0.0}, "`tolerance` must be finite and above 0; got 0.0"),
        ({"tolerance": -1e-6}, "`tolerance` must be finite and above 0"),
        ({"tolerance": np.nan}, "`tolerance` must be finite and above 0; got nan"),
        ({"tolerance": "small"}, "`tolerance` must be a number above 0; got 'small'"),
        ({"n_threads": 0}, "`n_threads` must be at least 1; got 0"),
        # debias
        ({"debias": True}, "one kernel, declared symmetric, .*\nhint: DenseKernel"),
        ({"debias": True, "kernels": np.eye(3)}, "declared symmetric"),
        (
            {
                "debias": True,
                "kernels": [
                    ws.kernels.DenseKernel(np.eye(3), symmetric=True),
                    ws.kernels.IdentityKernel(3),
                ],
            },
            "one kernel",
        ),
        (
            {"debias": True, "kernels": ws.kernels.IdentityKernel(3), "mass": UNBALANCED},
            r"`debias=True` must go with mass=Balanced\(\)",
        ),
        # initial
        ({"initial": np.ones(4)}, "`initial` must be an earlier BarycenterResult; got ndarray"),
        (
            {"initial": ws.solve_barycenter(GOOD[:1], KERNEL)},
            r"shape of this problem, .* = \(2, 1, 4\); got \(1, 1, 4\)",
        ),
    ],
)
def test_bad_input_gets_one_clear_error(arguments, words):
    given = {"histograms": GOOD, "kernels": KERNEL} | arguments
    with pytest.raises(ws.InvalidInputError, match=words):
        solve_with(given.pop("histograms"), given.pop("kernels"), **given)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "two", None, [1.0, 2.0]])
@pytest.mark.parametrize("name", ["mass_penalty", "epsilon"])
def test_penalty_and_epsilon_must_be_positive_numbers(name, value):
    arguments = {"mass_penalty": 2.0, "epsilon": 0.3} | {name: value}
    with pytest.raises(ws.InvalidInputError, match=f"`{name}` must be"):
        ws.Unbalanced(**arguments)


def test_the_place_of_a_bad_entry_counts_from_the_whole_batch():
    histograms = np.full((2, 200_000, 3), 1 / 3)
    histograms[1, 154_321, 0] = np.nan
    with pytest.raises(ws.InvalidInputError, match="model 1, sample 154321, source label 0"):
        ws.solve_barycenter(histograms, np.ones((3, 3)))


def test_rows_off_by_rounding_of_their_own_type_are_accepted():
    rng = np.random.default_rng(0)
    exact = rng.dirichlet(np.ones(200), size=(2, 5))
    for dtype in (np.float16, np.float32, np.float64):
        result = ws.solve_barycenter(exact.astype(dtype), np.ones((200, 3)))
        assert result.converged.all()
    with pytest.raises(ws.InvalidInputError, match="must sum to 1"):
        ws.solve_barycenter(exact.astype(np.float16).astype(np.float64), np.ones((200, 3)))


def test_normalize_divides_rows_by_their_sums_and_is_recorded():
    result = ws.solve_barycenter(3 * GOOD, KERNEL, normalize=True)
    expected = ws.solve_barycenter(GOOD, KERNEL)
    np.testing.assert_allclose(result.barycenter, expected.barycenter, rtol=1e-12)
    assert result.normalized
    assert not expected.normalized
    np.testing.assert_allclose(result.coupling(0).sum(axis=1), GOOD[0, 0])


def test_integers_and_lists_are_numbers():
    result = ws.solve_barycenter([[1, 0, 0], [0, 1, 0]], KERNEL.tolist())
    assert result.barycenter.dtype == np.float64
    assert result.barycenter.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("dtype", "fine", "wrong", "words"),
    [
        (np.float64, 1e-13, -3.2e-5, r"got 1 - 3\.2e-05 at model 0, sample 1"),
        (np.float64, -9e-7, 2e-6, r"got 1 \+ 2e-06 at model 0, sample 1"),
        (np.float32, 9e-5, -2e-4, r"got 1 - 0\.0002 at model 0, sample 1"),
        (np.float16, 1e-3, -0.1, r"got 0\.9\d+ at model 0, sample 1"),
    ],
)
def test_histograms_may_be_off_by_what_rounding_leaves(dtype, fine, wrong, words):
    rows = np.full((1, 2, 4), 0.25)
    rows[0, 1, 0] += fine
    result = ws.solve_barycenter(rows.astype(dtype), np.ones((4, 4)))
    assert result.converged.all()
    rows[0, 1, 0] = 0.25 + wrong
    with pytest.raises(ws.InvalidInputError, match=words):
        ws.solve_barycenter(rows.astype(dtype), np.ones((4, 4)))


def test_weights_show_the_digits_that_matter():
    with pytest.raises(ws.InvalidInputError, match=r"sum to 1 over the models; got 1 - 1e-12\."):
        ws.solve_barycenter([[0.5, 0.5]] * 2, np.ones((2, 2)), weights=[0.5, 0.5 - 1e-12])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keeps_scalings", [True, False])
@pytest.mark.parametrize(
    ("entry", "words"),
    [(np.nan, "must not be nan"), (np.inf, "must be finite"), (-1e-30, "must not be negative")],
)
def test_a_formula_refuses_what_is_no_number_wherever_it_stands(
    entry, words, keeps_scalings, dtype, rng
):
    scores = rng.uniform(0.1, 1, size=(3, 4, 40)).astype(dtype)
    kernel = ws.kernels.DiagonalKernel(rng.uniform(0.3, 1, size=40).astype(dtype))
    rule = ws.Barycenter(UNBALANCED)

    def solve(scores):
        if keeps_scalings:
            return ws.solve_barycenter(scores, kernel, rule).barycenter
        return ws.fuse(scores, kernel=kernel, rule=rule, kind="multilabel")

    for label in (3, 39):  # in a whole vector, and in what is left of one
        bad = scores.copy()
        bad[2, 1, label] = entry
        with pytest.raises(
            ws.InvalidInputError, match=f"{words}; .* at model 2, sample 1, source label {label}"
        ):
            solve(bad)
    assert np.isfinite(solve(scores)).all()
