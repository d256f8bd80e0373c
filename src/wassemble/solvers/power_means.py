"""The weighted power mean of line p, on logarithms and on the numbers themselves."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.lib.introspect import opt_func_info

from wassemble._arrays import Array, log_of, namespace
from wassemble.solvers.exchange import ALONE, Exchange
from wassemble.solvers.native_sweep import find_native

# Below this order sum(w * x^order) is too close to 1 for its logarithm to be exact.
_SMALL_ORDER = 1e-3
# Above this order the mean is the largest number, and products with it may leave float32.
_LARGE_ORDER = 1e30
# How far log(sum(w * (x / guess)^order)) may be from 0 for a guess of the mean to be good.
_LOG_NEAR = 7.0


@cache
def log_and_exp(dtype: np.dtype) -> tuple[np.ufunc, np.ufunc]:
    """Logarithm and exponential of the base that NumPy is faster in, on this processor.

    With AVX-512 that is 2. Elsewhere it has code for vectors of base e alone, twice as fast.
    """
    used = {
        name: opt_func_info(func_name=f"^{name}$").get(name, {}).get(2 * dtype.char, {})
        for name in ("exp", "exp2")
    }
    plain = {
        name: found.get("current", "baseline").startswith("baseline")
        for name, found in used.items()
    }
    return (np.log, np.exp) if plain["exp2"] and not plain["exp"] else (np.log2, np.exp2)


def log_power_mean(
    log_images: Array,
    weights: Array,
    *,
    order: float,
    exchange: Exchange = ALONE,
    log_guess: Array | None = None,
) -> Array:
    """Weighted power mean over the first axis, in logs on both ends.

    ``order`` 0 is the geometric mean (Alg. 1, line p), 1 the arithmetic mean;
    ``epsilon / (epsilon + mass_penalty)`` is Alg. 2, line p. ``weights`` broadcast
    against ``log_images``.

    The mean is over the models of every rank. Powers are taken relative to the largest
    image, which ranks must exchange first; a ``log_guess`` of the mean that all of them
    have, such as the last sweep's, saves that. Where it turns out far off, it is not used.
    """
    xp = namespace(log_images)
    # A model with weight zero must not veto a label it scores zero: 0 * -inf is nan.
    votes = (log_images > -xp.inf) & (weights > 0)
    finite = xp.where(votes, log_images, 0.0)
    if order == 0:
        vetoed = xp.any(~votes & (weights > 0), axis=0)
        return exchange.sum(xp.where(vetoed, -xp.inf, xp.sum(weights * finite, axis=0)))
    if log_guess is not None:
        with np.errstate(all="ignore"):  # of a poor guess
            log_mean, log_total = _log_mean_near(log_guess, finite, votes, weights, order, exchange)
            near = (log_guess == -xp.inf) | (abs(log_total) <= _LOG_NEAR)
        if near.all():
            return log_mean
    top = exchange.largest(xp.max(xp.where(votes, log_images, -xp.inf), axis=0))
    return _log_mean_near(top, finite, votes, weights, order, exchange)[0]


def _log_mean_near(
    top: Array, finite: Array, votes: Array, weights: Array, order: float, exchange: Exchange
) -> tuple[Array, Array]:
    """Power mean with powers relative to ``top``, and the log of their sum; in logs."""
    xp = namespace(finite)
    any_vote = top > -xp.inf
    top = xp.where(any_vote, top, 0.0)
    below = xp.where(votes, order * (finite - top), 0.0)
    if order < _SMALL_ORDER:
        # log(sum w e^x) = log1p(sum w (e^x - 1)) because the weights sum to 1.
        terms = xp.where(votes, xp.expm1(below), -1.0)
        total = exchange.sum(xp.sum(weights * terms, axis=0))
        # Without a vote it is -1, but for the rounding of the weights.
        counts = total > -1
        log_total = xp.where(counts, xp.log1p(xp.where(counts, total, 0.0)), -xp.inf)
    else:
        terms = xp.where(votes, xp.exp(below), 0.0)
        log_total = log_of(exchange.sum(xp.sum(weights * terms, axis=0)))
    return xp.where(any_vote, top + log_total / order, -xp.inf), log_total


def power_mean_of(values: Array, weights: Array, *, order: float) -> Array:
    """Weighted power mean of non-negative ``values`` over the first axis.

    Through `log_power_mean` where it matters, on the numbers themselves where that is
    exact: in NumPy, for orders that powers can resolve and weights that all count.
    """
    xp, order = namespace(values), min(order, _LARGE_ORDER)
    if order == 1:
        return (
            weighted_sum(weights, values)
            if isinstance(values, np.ndarray)
            else xp.sum(values * weights, axis=0)
        )
    is_plain = isinstance(values, np.ndarray) and bool((weights > 0).all())
    if not is_plain or 0 < order < 1e6 * float(xp.finfo(values.dtype).eps):
        mean = xp.exp(log_power_mean(log_of(values), weights, order=order))
        return xp.astype(mean, values.dtype, copy=False)
    if order > 1:  # powers are relative to the largest number, or they would leave the range
        top = values.max(axis=0)
        top[top == 0] = 1
        return top * _mean_of_powers(values / top, weights, order, 1 / order)
    return _mean_of_powers(values, weights, order, 1 / order if order else 1.0)


def mean_of_powers(
    values: np.ndarray,
    weights: np.ndarray,
    *,
    order: float,
    exponent: float,
    check: Callable[[], None] | None,
) -> np.ndarray:
    """sum(w * x^order)^exponent over the first axis; order 0 is the geometric mean.

    For ``values`` of shape (n_models, n_rows, n_labels) and ``weights`` that all count; native
    where NumPy has no fast code for powers of base 2, and where powers need no logarithms. Native
    code notices values that are negative or not finite; otherwise ``check`` is to refuse them.
    """
    is_slow = log_and_exp(values.dtype)[0] is np.log
    has_table = values.dtype == np.float32 and 0 < order <= 1
    native = find_native() if is_slow or has_table else None
    if native is not None:
        means = native.take_means(values, weights, order=order, exponent=exponent)
        if means is not None:
            return np.asarray(means)
    if check is not None:
        check()
    return _mean_of_powers(values, weights, order, exponent)


def _mean_of_powers(
    values: np.ndarray, weights: np.ndarray, order: float, exponent: float
) -> np.ndarray:
    log, exp = log_and_exp(values.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):  # log 0 = -inf is what a zero means
        powers = log(values)
        if order != 0:  # a logarithm and an exponential cost half of `numpy.power`
            np.multiply(powers, order, out=powers)
            exp(powers, out=powers)
        mean = weighted_sum(weights, powers)
        if order != 0:
            log(mean, out=mean)
            mean *= exponent
        return np.asarray(exp(mean, out=mean))


def weighted_sum(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum over models, ``(n_models, n_rows, n_labels)`` to ``(n_rows, n_labels)``.

    ``weights`` have three axes, of which those of rows and labels may have length 1.
    """
    weights = weights.astype(values.dtype, copy=False)
    if weights.shape[1:] == (1, 1):  # one pass through BLAS; a slice of samples is no copy
        flat = values.reshape(len(values), -1)
        return np.dot(weights.ravel(), flat).reshape(values.shape[1:])
    total = weights[0] * values[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total += weight * value
    return total


def bind_weighted_sum(
    weights: np.ndarray, values: np.ndarray, out: np.ndarray
) -> Callable[[], object]:
    """A call that writes `weighted_sum` into ``out``, as often as the arrays' contents change."""
    weights = weights.astype(values.dtype, copy=False)
    if weights.shape[1:] == (1, 1):
        return partial(np.dot, weights.ravel(), values.reshape(len(values), -1), out.reshape(-1))

    def add() -> None:
        out[...] = weighted_sum(weights, values)

    return add
