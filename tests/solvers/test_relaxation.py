"""The controller of longer steps, on residuals of known rates."""

import numpy as np
import pytest

from wassemble.solvers.relaxation import Relaxation


def feed(relaxation, rate, n_sweeps, start=1.0, first=1):
    """Residuals that shrink by ``rate`` per sweep, as the loop would show them."""
    residual = start
    for sweep in range(first, first + n_sweeps):
        residual *= rate
        if sweep <= 16 or sweep % 8 == 0:
            relaxation.update(sweep, np.full(len(relaxation.omega), residual))
    return residual


@pytest.mark.parametrize("rate", [0.7, 0.9, 0.99, 0.999])
def test_a_steady_rate_gives_the_best_omega(rate):
    relaxation = Relaxation(1)
    feed(relaxation, rate, 16)
    assert relaxation.omega[0] == pytest.approx(min(2 / (1 + np.sqrt(1 - rate)), 1.97))


def test_a_fast_row_is_left_alone():
    relaxation = Relaxation(1)
    feed(relaxation, 0.4, 40)
    assert relaxation.omega[0] == 1


def test_a_row_that_grows_goes_back_and_is_given_up_after_some_failures():
    relaxation, sweep = Relaxation(1), 0
    for _ in range(10):
        feed(relaxation, 0.99, 48, first=sweep + 1)
        feed(relaxation, 1.1, 48, first=sweep + 49)
        sweep += 96
    assert relaxation.omega[0] == 1
    feed(relaxation, 0.99, 48, first=sweep + 1)
    assert relaxation.omega[0] == 1


def test_omega_only_grows_while_rows_shrink():
    relaxation = Relaxation(1)
    residual = feed(relaxation, 0.9, 16)
    before = relaxation.omega[0]
    feed(relaxation, before - 1, 40, start=residual, first=17)  # the best rate there is
    assert relaxation.omega[0] == before


def test_rows_that_leave_take_their_history_with_them():
    relaxation = Relaxation(3)
    for sweep in (8, 16):
        relaxation.update(sweep, np.array([0.4**sweep, 0.9**sweep, 0.99**sweep]))
    relaxation.keep(np.array([False, True, True]))
    assert relaxation.omega.shape == (2,)
    assert 1 < relaxation.omega[0] < relaxation.omega[1]


def test_residuals_of_zero_do_no_harm():
    relaxation = Relaxation(1)
    for sweep in range(8, 80, 8):
        relaxation.update(sweep, np.zeros(1))
    assert relaxation.omega[0] == 1


def test_rows_near_the_end_come_back_to_ordinary_steps():
    relaxation = Relaxation(2)
    for sweep in (8, 16):
        relaxation.update(sweep, np.array([0.9**sweep, 0.99**sweep]))
    finished = np.array([False, False])
    assert not relaxation.hold_back(finished)
    finished[0] = True
    assert relaxation.hold_back(finished)
    assert not finished.any()
    assert relaxation.omega[0] == 1 < relaxation.omega[1]
    assert not relaxation.end(np.array([True, False]))
    assert relaxation.end(np.array([True, True]))
    assert not relaxation.end(np.array([True, True]))
    feed(relaxation, 0.99, 40, first=17)
    assert relaxation.omega.tolist() == [1, 1]


def test_a_fixed_number_of_sweeps_is_never_relaxed():
    relaxation = Relaxation(1, active=False)
    feed(relaxation, 0.99, 40)
    assert relaxation.omega[0] == 1
