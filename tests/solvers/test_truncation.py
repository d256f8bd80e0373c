"""Large label sets cut to their largest entries, with what that cost."""

import numpy as np
import pytest
from problems import MASSES, as_low_rank, as_sparse, make_case, rule_with, solve_with

import wassemble as ws

pytestmark = pytest.mark.usefixtures("sweeps")


def truncated_by_hand(histograms, n_top, *, rescale):
    kept = []
    for histogram in histograms:
        cut = np.sort(histogram, axis=1)[:, -n_top][:, None]
        top = np.where(histogram >= cut, histogram, 0)
        if rescale:
            top = top * (histogram.sum(axis=1) / top.sum(axis=1))[:, None]
        kept.append(top)
    return kept


@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.parametrize("kind", [np.asarray, as_sparse, as_low_rank])
@pytest.mark.parametrize("n_top", [1, 3, 8])
def test_truncation_equals_histograms_cut_by_hand(mass, kind, n_top):
    case = make_case(1, n_source=8, n_target=6, mass=mass)
    kernel = kind(case.kernels[0])
    balanced = isinstance(mass, ws.Balanced)
    by_hand = case.but(
        histograms=truncated_by_hand(case.histograms, n_top, rescale=balanced), kernels=kernel
    )
    options = {"max_sweeps": 6, "tolerance": None}
    got = case.but(kernels=kernel).solve(n_top=n_top, **options)
    expected = by_hand.solve(**options)
    np.testing.assert_allclose(got.barycenter, expected.barycenter, rtol=1e-9)
    np.testing.assert_allclose(got.coupling(1, 2), expected.coupling(1, 2), rtol=1e-9)


def test_the_dropped_mass_is_that_of_the_model_hit_hardest():
    first, second = [[0.5, 0.3, 0.2]], [[0.9, 0.06, 0.04]]
    result = ws.solve_barycenter([first, second], np.ones((3, 3)), ws.Barycenter(n_top=2))
    np.testing.assert_allclose(result.dropped_mass, [0.2])
    assert ws.solve_barycenter([first, second], np.ones((3, 3))).dropped_mass.tolist() == [0]
    single = ws.solve_barycenter([first[0], second[0]], np.ones((3, 3)), ws.Barycenter(n_top=1))
    assert single.dropped_mass == pytest.approx(0.5)


def test_keeping_everything_changes_nothing():
    case = make_case(2)
    np.testing.assert_array_equal(case.solve(n_top=5).barycenter, case.solve().barycenter)


def test_what_is_kept_does_not_depend_on_the_other_rows():
    case = make_case(3, n_samples=40, n_source=12)
    whole = case.solve(n_top=4, max_sweeps=5, tolerance=None).barycenter
    for sample in (0, 17, 39):
        alone = case.but(histograms=[h[sample] for h in case.histograms])
        alone = alone.solve(n_top=4, max_sweeps=5, tolerance=None)
        np.testing.assert_allclose(alone.barycenter, whole[sample], rtol=1e-9)


@pytest.mark.parametrize("mass", MASSES)
def test_of_equal_entries_at_the_border_all_are_kept(mass):
    histograms = np.array([[[0.1, 0.3, 0.3, 0.3]], [[0.4, 0.2, 0.2, 0.2]]])
    kernel = ws.kernels.IdentityKernel(4)
    result = solve_with(histograms, kernel, mass=mass, n_top=2)
    whole = truncated_by_hand(histograms, 2, rescale=isinstance(mass, ws.Balanced))
    expected = solve_with(whole, kernel, mass=mass)
    np.testing.assert_allclose(result.barycenter, expected.barycenter, rtol=1e-9)
    np.testing.assert_allclose(result.dropped_mass, [0.1])


def test_a_diagonal_kernel_keeps_its_closed_form():
    case = make_case(4, n_source=5, n_target=5, mass=MASSES[1])
    result = case.but(kernels=ws.kernels.IdentityKernel(5)).solve(n_top=2)
    expected = case.but(
        histograms=truncated_by_hand(case.histograms, 2, rescale=False),
        kernels=ws.kernels.IdentityKernel(5),
    ).solve()
    np.testing.assert_allclose(result.barycenter, expected.barycenter)


def test_fuse_warns_when_much_is_dropped():
    case = make_case(5, n_source=20)
    with pytest.warns(ws.ConvergenceWarning, match=r"`n_top` dropped up to \d+% of a model's mass"):
        ws.fuse(case.histograms, kernel=case.kernels[0], rule=rule_with(n_top=2, max_sweeps=20_000))


@pytest.mark.parametrize("n_top", [0, -1, 2.5, "all"])
def test_n_top_must_be_a_whole_number(n_top):
    with pytest.raises(ws.InvalidInputError, match="`n_top` must be"):
        make_case(6).solve(n_top=n_top)


def test_n_top_refuses_tensors():
    torch = pytest.importorskip("torch")
    with pytest.raises(ws.InvalidInputError, match="`n_top` serves NumPy arrays only"):
        ws.solve_barycenter([torch.ones(3) / 3], np.ones((3, 3)), ws.Barycenter(n_top=2))


def test_a_model_without_any_mass_is_truncated_to_nothing():
    scores = [np.zeros((2, 3)), np.full((2, 3), 0.2)]
    kernel = np.exp(-np.random.default_rng(0).uniform(size=(3, 4)))
    for kind in (np.array, as_sparse, as_low_rank):
        kernels = [kind(kernel), kind(kernel)]
        options = {"mass": ws.Unbalanced(2.0, epsilon=0.3)}
        cut = solve_with(scores, kernels, n_top=3, **options)
        whole = solve_with(scores, kernels, **options)
        np.testing.assert_allclose(cut.barycenter, whole.barycenter, rtol=1e-6)
        assert np.isfinite(solve_with(scores, kernels, n_top=1, **options).barycenter).all()
