"""Leaps, on sweeps that are a linear map of log v with known modes."""

import numpy as np
import pytest

from wassemble.solvers.extrapolation import CYCLE, LeapingSweep, Trail


class Linear:
    """Sweeps that shrink label j of every model by a rate of its own, per row."""

    hopeless = False

    def __init__(self, rates, start=1.0):
        rates = np.asarray(rates, dtype=np.float64)
        self.rates, self.log_v = rates[None], np.full((1, *rates.shape), start)
        self.n_leaps, self._trail = 0, Trail()

    def step(self, n_sweeps=1, *, watch):
        self.log_v = self.log_v * self.rates**n_sweeps
        return np.abs(self.log_v).max(axis=(0, 2)) if watch else None

    def cycle(self):
        path = [self.log_v]
        for _ in range(CYCLE):
            found = self.step(watch=True)
            path.append(self.log_v)
        return found, self._trail.follow(path)

    def leap(self, back):
        self.n_leaps = self.n_leaps + back.any(axis=1)
        self.log_v = self.log_v + self._trail.leap(back)

    def keep(self, rows):
        self.rates, self.log_v = self.rates[:, rows], self.log_v[:, rows]
        self._trail.keep(rows)


def cycles(sweep, n_cycles):
    for _ in range(n_cycles):
        residual = sweep.step(CYCLE, watch=True)
    return residual


def test_as_many_slow_modes_as_a_cycle_looks_back_on_are_put_to_rest():
    rates = [[0.9, 0.95, 0.99]]
    assert cycles(LeapingSweep(Linear(rates), 1), 3)[0] < 0.01
    assert cycles(Linear(rates), 3)[0] > 0.8


def test_rows_leap_each_for_itself():
    rates = [[0.5, 0.9, 0.97], [0.3, 0.99, 0.999]]
    both = LeapingSweep(Linear(rates), 2)
    found = cycles(both, 2)
    for row, own in enumerate(rates):
        assert found[row] == pytest.approx(cycles(LeapingSweep(Linear([own]), 1), 2)[0])


def test_rows_that_leave_take_their_history_with_them():
    rates = [[0.5, 0.9, 0.97], [0.3, 0.99, 0.999]]
    both = LeapingSweep(Linear(rates), 2)
    cycles(both, 2)
    both.keep(np.array([False, True]))
    alone = LeapingSweep(Linear(rates[1:]), 1)
    assert cycles(both, 1)[0] == pytest.approx(cycles(alone, 3)[0])


def test_labels_out_of_reach_stay_there():
    linear = Linear([[0.9, 0.95, 0.99]])
    linear.log_v[..., 1] = -np.inf
    cycles(LeapingSweep(linear, 1), 3)
    assert linear.log_v[0, 0, 1] == -np.inf
    assert np.abs(linear.log_v[0, 0, [0, 2]]).max() < 1e-4


def test_rows_whose_steps_grow_sweep_on_and_leap_no_more_after_some_failures():
    linear = Linear([[0.5, 0.9, 0.97], [0.5, 0.9, 0.97]])
    leaping = LeapingSweep(linear, 2)
    for _ in range(30):
        linear.log_v[:, 0] *= 100  # whatever a leap did, the row is farther off
        linear.log_v[:, 1] *= 0.9
        cycles(leaping, 1)
    assert linear.n_leaps[0] <= 1 < 20 < linear.n_leaps[1]


def test_only_whole_cycles_leap():
    rates = [[0.9, 0.95, 0.99]]
    linear, plain = Linear(rates), Linear(rates)
    leaping = LeapingSweep(linear, 1)
    cycles(leaping, 1)
    leaping.step(CYCLE - 1, watch=True)
    leaping.step(CYCLE, watch=True)
    plain.step(3 * CYCLE - 1, watch=False)
    np.testing.assert_allclose(linear.log_v, plain.log_v)


def test_a_row_at_rest_stays():
    linear = Linear([[0.9, 0.95, 0.99]], start=0.0)
    assert cycles(LeapingSweep(linear, 1), 3)[0] == 0


def test_a_drift_is_hardly_hastened():
    class Drift(Linear):
        def step(self, n_sweeps=1, *, watch):
            super().step(n_sweeps, watch=watch)
            self.log_v[..., 0] += 0.3 * n_sweeps
            return np.ones(1) if watch else None

    drift, plain = Drift([[1.0, 0.9]]), Drift([[1.0, 0.9]])
    cycles(LeapingSweep(drift, 1, may_drift=True), 8)
    plain.step(8 * CYCLE, watch=False)
    assert drift.log_v[0, 0, 0] < 2 * plain.log_v[0, 0, 0]
