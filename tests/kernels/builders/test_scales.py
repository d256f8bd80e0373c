"""Scales that are cut differently: near grades are joined, and coarser scales keep the mean."""

import numpy as np
import pytest

import wassemble as ws
from wassemble.kernels import from_scales


def carry(histogram, kernel):
    return np.asarray(ws.ARITHMETIC.fuse([histogram], kernel.kernel, holds="histograms").scores)[0]


def test_the_same_scale_is_joined_to_itself_alone():
    grades = ["bad", "fair", "good"]
    np.testing.assert_array_equal(from_scales(grades, ["1", "2", "3"]).to_dense(), np.eye(3))


@pytest.mark.parametrize("n_source", [5, 9, 10, 101])
def test_a_coarser_scale_keeps_the_mean(n_source, rng):
    kernel = from_scales([f"{i}" for i in range(n_source)], list("abcde"))
    histogram = rng.dirichlet(np.ones(n_source))
    carried = carry(histogram, kernel)
    mean = histogram @ np.linspace(0, 1, n_source)
    assert carried @ np.linspace(0, 1, 5) == pytest.approx(mean)


def test_both_ways_are_one_kernel():
    first, second = ["fail", "pass"], ["0", "1", "2", "3"]
    there, back = from_scales(first, second).to_dense(), from_scales(second, first).to_dense()
    np.testing.assert_allclose(there, back.T)


def test_positions_say_where_grades_lie():
    numbers = ws.LabelSpace(["0", "60", "10", "100"], positions=[0, 60, 10, 100])
    for ends in (["low", "high"], ws.LabelSpace(["low", "high"], positions=[0, 100])):
        kernel = from_scales(numbers, ends)
        np.testing.assert_allclose(kernel.to_dense()[:, 1], [0, 0.6, 0.1, 1])
    numbers = ws.LabelSpace(["0", "9"], positions=[0, 9])
    beyond = from_scales(numbers, ws.LabelSpace(["a", "b"], positions=[2, 3]))
    np.testing.assert_allclose(beyond.to_dense()[[0, 1], [0, 1]], [1, 1])  # the nearest there is


def test_the_same_names_may_lie_elsewhere():
    names = ["1", "2", "3"]
    first, second = (ws.LabelSpace(names, positions=each) for each in ([1, 2, 3], [1, 3, 5]))
    np.testing.assert_allclose(from_scales(first, first).to_dense(), np.eye(3))
    np.testing.assert_allclose(from_scales(first, second).to_dense()[1], [0.5, 0.5, 0])


@pytest.mark.parametrize("target", [list("abcde"), ["1", "2", "3", "4", "5"]])
def test_numbers_lie_where_numbers_lie_in_any_order(target):
    kernel = from_scales(["5", "1", "4", "3", "2"], target)
    np.testing.assert_array_equal(kernel.to_dense(), np.eye(5)[[4, 0, 3, 2, 1]])
    assert kernel.notes == ("1 < 2 < 3 < 4 < 5",)
    np.testing.assert_array_equal(from_scales(["3", "1", "2"]).to_dense(), np.eye(3))


@pytest.mark.parametrize("grades", [["0", "1", "3"], ["0", "3", "1"]])
def test_numbers_keep_their_gaps(grades):
    kernel = from_scales(grades, ["low", "high"]).to_dense()
    np.testing.assert_allclose(kernel[:, 1], [int(grade) / 3 for grade in grades])


@pytest.mark.parametrize("n_grades", [4, 7, 10, 50])
def test_equal_steps_are_joined_without_rounding(n_grades):
    numbers = [f"{i}" for i in range(1, n_grades + 1)]
    names = [f"grade {i}" for i in numbers]
    np.testing.assert_array_equal(from_scales(numbers, names).to_dense(), np.eye(n_grades))


def test_the_order_of_names_is_told():
    assert from_scales(["bad", "fair", "good"], ["1", "2"]).notes == ("bad < fair < good",)
    assert from_scales(["1", "2"], ["bad", "good"]).notes == ()
    assert from_scales(list("abcdefghij"), ["1", "2"]).notes == ("a < b < c < d < e < ... < j",)


def test_what_is_no_scale_is_refused():
    with pytest.raises(ws.InvalidInputError, match="at least two grades"):
        from_scales(["a"], ["1", "2"])
    with pytest.raises(ws.InvalidInputError, match="positions` must differ"):
        from_scales(["1", "1.0"], ["a", "b"])
    with pytest.raises(ws.InvalidInputError, match=r"target scale of numbers.*\n?.*positions="):
        from_scales(["bad", "good"], ["2", "1"])


def test_five_and_ten_grades_are_fused_on_the_line():
    five = ws.Predictions("five", ["x"], ["1", "2", "3", "4", "5"], [[0, 0, 0, 0, 1.0]])
    ten = ws.Predictions("ten", ["x"], [f"{i}" for i in range(1, 11)], [[1.0] + [0] * 9])
    fusion = ws.Fusion(ws.LineBarycenter(2), from_scales, target=["1", "2", "3", "4", "5"])
    fused = fusion.run([five, ten]).consensus
    np.testing.assert_allclose(fused.scores, [[0, 0, 1, 0, 0]], atol=1e-12)


def test_a_scale_says_nothing_of_grades_beyond_its_end():
    low = ws.LabelSpace(["0", "1", "2", "3"], positions=range(4))
    high = ws.LabelSpace(["1", "2", "3", "4", "5"], positions=range(1, 6))
    expected = [[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    assert from_scales(low, high).to_dense().tolist() == expected
