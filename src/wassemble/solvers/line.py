"""Labels on a line: exact barycenters by distribution functions.

The distribution function F of a histogram has a number for each gap between neighbours: the mass
before it. Transport on a line keeps the order of mass, so that distances are integrals: W1 is the
sum of |F - G| times the gaps, W2 squared the integral of the squared difference of quantile
functions, the inverses of F and G.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np

from wassemble._arrays import Array, convert_like, is_torch_array, namespace, without_gradient
from wassemble._checks import Constraints, as_float_array, fail
from wassemble.solvers.exact import (
    ExactBarycenter,
    are_equal,
    distribution_functions,
    has_numbers,
)
from wassemble.solvers.weights import check_weights

# Weights on both sides of a median that differ by less are equal, in float32 too.
_ROUNDING = 1e-6
# The last bits of a float64 that may be lent to a sort.
_MOST_PLACES = 2**12 - 1


def _check_power(value: Any, name: str) -> int:
    if isinstance(value, bool) or value not in (1, 2):
        fail(f"`{name}` must be 1 or 2; got {value!r}.")
    return int(value)


def _check_positions(value: Any, name: str) -> tuple[float, ...] | None:
    if value is None:
        return None
    positions = np.asarray(as_float_array(value, name), dtype=np.float64)
    if positions.ndim != 1 or not np.isfinite(positions).all():
        fail(f"`{name}` must be finite numbers, one for each label; got {value!r}.")
    if len(np.unique(positions)) < len(positions):
        fail(f"`{name}` must differ; got {positions.tolist()}.")
    return tuple(positions.tolist())


@final
@dataclass(frozen=True)
class LineBarycenter(ExactBarycenter):
    """Exact Wasserstein barycenter of labels on a line, such as grades: no epsilon, no sweeps.

    Labels with names lie where their `LabelSpace` says; without positions, in their order, one step
    apart. Power 1 takes the weighted median of the models' distribution functions at each gap,
    halfway between both where two are medians; how wide gaps are does not matter. Power 2 takes the
    weighted mean of their quantile functions, whose mass may lie between two labels. It is shared
    by them in proportion to nearness, which keeps both mass and mean: the distribution function at
    a gap is then the barycenter's mean over that gap.

    Parameters
    ----------
    power : {1, 2}
        Mass that moves by d costs d ** power.
    positions : sequence of float, optional
        For arrays, whose labels have no names: where each target label lies on the line. One step
        apart, in their order, if not given.

    Examples
    --------
    >>> sure = [[1.0, 0, 0, 0, 0], [0, 0, 1.0, 0, 0], [0, 0, 0, 0, 1.0]]
    >>> LineBarycenter(1).fuse(sure).scores  # the middle one
    array([[0., 0., 1., 0., 0.]])
    >>> LineBarycenter(2).fuse(sure, weights=[0.25, 0.5, 0.25]).scores
    array([[0., 0., 1., 0., 0.]])
    >>> LineBarycenter(2).fuse(sure[:2], weights=[0.25, 0.75]).scores  # 1.5 on the line
    array([[0. , 0.5, 0.5, 0. , 0. ]])
    """

    key: ClassVar[str] = "line barycenter"
    label_order: ClassVar[Literal["line", "given", "any"]] = "line"
    constraints: ClassVar[Constraints] = {"power": _check_power, "positions": _check_positions}

    power: int
    positions: Sequence[float] | None = None

    def on_line(self, positions: Sequence[float] | None) -> LineBarycenter:
        if self.positions is not None:
            fail(
                "labels with names must have their positions themselves; got some of the rule.",
                hint=f"LineBarycenter({self.power}), and target=LabelSpace(names, positions=...)",
            )
        return replace(self, positions=positions)

    def _check_labels(self, n_target: int) -> None:
        if self.positions is not None and len(self.positions) != n_target:
            fail(
                f"`positions` must be one for each of the {n_target} target labels;"
                f" got {len(self.positions)}."
            )

    def _order(self, n_target: int) -> np.ndarray:
        """Places of the labels, from the first on the line to the last."""
        return np.arange(n_target) if self.positions is None else np.argsort(self.positions)

    def _gaps(self, n_target: int) -> np.ndarray:
        """How far each label on the line is from the next."""
        positions = np.arange(n_target) if self.positions is None else np.sort(self.positions)
        return np.diff(positions)

    def _find(self, shares: Array, weights: Array) -> Array:
        order = self._order(shares.shape[-1])
        if _is_sorted(order):
            return self._find_in_order(shares, weights)
        fused = self._find_in_order(_take_columns(shares, order), weights)
        return _take_columns(fused, np.argsort(order))

    def _find_in_order(self, shares: Array, weights: Array) -> Array:
        """The barycenter of histograms over labels in the order of the line."""
        functions, gaps = distribution_functions(shares), self._gaps(shares.shape[-1])
        if self.power == 1 or not len(gaps):
            fused = median_over_models(functions, weights)
        elif are_equal(weights) and np.ptp(gaps) <= _ROUNDING * gaps[0]:
            fused = _mean_quantiles_alike(functions)
        else:
            find = _mean_quantiles if has_numbers(functions) else _draw_mean_quantiles
            fused = find(functions, weights, np.concatenate([[0.0], np.cumsum(gaps)]))
        xp = namespace(fused)
        edges = xp.zeros_like(shares[0, :, :1], dtype=fused.dtype)
        # Rounding can make a difference of equal numbers negative.
        return xp.clip(xp.diff(fused, axis=-1, prepend=edges, append=edges + 1), 0, None)

    def fuse_quantiles(self, quantiles: Any, weights: Any = None) -> np.ndarray:
        """The barycenter of forecasts of a number, each told by the same quantiles.

        Distances are integrals over levels too: power 2 takes the weighted mean at each level,
        power 1 the weighted median.

        Parameters
        ----------
        quantiles : array of shape (n_models, n_samples, n_levels)
            Not falling from level to level; nan at all levels where a model has no forecast.
        weights : array of shape (n_models,), optional
            On the simplex; uniform if not given. Models that have no forecast for a sample leave
            their weight to the others.

        Returns
        -------
        consensus : array of shape (n_samples, n_levels)
            nan where no model has a forecast.

        Examples
        --------
        >>> LineBarycenter(2).fuse_quantiles([[[1.0, 2.0, 3.0]], [[3.0, 3.0, 9.0]]])
        array([[2. , 2.5, 6. ]])
        """
        if self.positions is not None:
            fail("forecasts of a number have no labels; got `positions` of labels.")
        values = np.asarray(as_float_array(quantiles, "quantiles"))
        answered = _find_forecasts(values)
        votes = check_weights(weights, len(values), 1)[:, None] * answered
        sums = votes.sum(axis=0)
        votes = np.divide(votes, sums, out=np.zeros_like(votes), where=sums > 0)
        known = np.where(answered[..., None], values, 0.0)
        fuse = median_over_models if self.power == 1 else _mean_over_models
        return np.where((sums > 0)[:, None], fuse(known, votes), np.nan)

    def couple(self, model: np.ndarray, consensus: np.ndarray) -> np.ndarray:
        """The coupling that keeps the order of mass, which is optimal for both powers."""
        order = self._order(len(model))
        ends = [np.minimum(np.cumsum(each[order]), 1.0) for each in (model, consensus)]
        ends[0][-1] = ends[1][-1] = 1.0
        starts = [np.concatenate([[0.0], each[:-1]]) for each in ends]
        shared = np.minimum.outer(*ends) - np.maximum.outer(*starts)
        back = np.argsort(order)
        return np.maximum(shared, 0)[np.ix_(back, back)]

    def distances(self, models: np.ndarray, consensus: np.ndarray) -> np.ndarray:
        n_target = models.shape[-1]
        order = self._order(n_target)
        first, second = (distribution_functions(each[..., order]) for each in (models, consensus))
        return np.asarray((np.abs(first - second) * self._gaps(n_target)).sum(axis=-1))

    def __str__(self) -> str:
        return {1: "median on a line", 2: "mean of quantiles"}[self.power]


def _is_sorted(order: np.ndarray) -> bool:
    return bool((np.diff(order) > 0).all())


def _take_columns(values: Array, places: np.ndarray) -> Array:
    return namespace(values).take(values, convert_like(places, values), axis=-1)


def _find_forecasts(quantiles: np.ndarray) -> np.ndarray:
    """Which models have a forecast for which samples, (n_models, n_samples)."""
    if quantiles.ndim != 3 or 0 in quantiles.shape:
        fail(
            "`quantiles` must have shape (n_models, n_samples, n_levels), with at least one of"
            f" each; got {quantiles.shape}."
        )
    missing = np.isnan(quantiles)
    wrong = (missing.any(axis=2) & ~missing.all(axis=2)) | (np.diff(quantiles, axis=2) < 0).any(2)
    wrong |= np.isinf(quantiles).any(axis=2)
    if wrong.any():
        model, sample = np.argwhere(wrong)[0]
        fail(
            "quantiles must be finite and not fall from level to level, or be nan at all levels;"
            f" got {quantiles[model, sample].tolist()} at model {model}, sample {sample}."
        )
    return ~missing.any(axis=2)


def _mean_over_models(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.einsum("ms,msl->sl", weights, values)


def median_over_models(values: Array, weights: Array) -> Array:
    """Weighted median over the first axis; halfway between both where two are medians.

    Parameters
    ----------
    values : array of shape (n_models, n_rows, n_columns)
    weights : array of shape (n_models, 1 or n_rows)
        On the simplex over models; a model of weight 0 has no say.
    """
    xp = namespace(values)
    n_models = len(values)
    if are_equal(weights):
        values = xp.sort(values, axis=0)
        return (values[(n_models - 1) // 2] + values[n_models // 2]) / 2
    order = xp.argsort(without_gradient(values), axis=0)
    columns = without_gradient(weights)[..., None] + xp.zeros_like(values)
    up_to = xp.cumulative_sum(xp.take_along_axis(columns, order, axis=0), axis=0)
    values = xp.take_along_axis(values, order, axis=0)
    lower = xp.min(xp.where(up_to < 0.5 - _ROUNDING, values[-1:], values), axis=0)
    upper = xp.min(xp.where(up_to <= 0.5 + _ROUNDING, values[-1:], values), axis=0)
    return (lower + upper) / 2


def _mean_quantiles_alike(functions: Array) -> Array:
    """`_mean_quantiles` of models that count alike, on labels that are equally far apart.

    Every step of every distribution function is as wide: sorted, a gap has one per model.
    """
    xp = namespace(functions)
    n_models, n_rows, n_gaps = functions.shape
    levels = _by_row(functions)
    if is_torch_array(levels):
        levels = xp.sort(levels, axis=-1)
    else:
        # Of numbers that are not negative, bits are in the same order; stable sorts know runs.
        levels.view(np.int64).sort(axis=-1, kind="stable")
    return xp.reshape(levels, (n_rows, n_gaps, n_models)) @ xp.full_like(
        levels[0, :n_models], 1 / n_models
    )


def _mean_quantiles(functions: Array, weights: Array, points: np.ndarray) -> Array:
    """Distribution function of the weighted mean of quantile functions, its mean over each gap.

    As its argument rises, the quantile function of a model jumps over a gap where its
    distribution function has a level: the mean of all jumps by the gap times the weight. Sorted by
    level, the jumps lie one after another on the line.
    """
    xp = namespace(functions)
    points = convert_like(points, functions, functions.dtype)
    gaps = xp.diff(points)
    levels, order = _sort_rows(_by_row(functions))
    jumps = _by_row(weights[..., None] * gaps)  # one row where weights are the same for all
    jumps = jumps[0][order] if len(jumps) == 1 else xp.take_along_axis(jumps, order, axis=-1)
    ends = xp.cumulative_sum(jumps, axis=-1)
    areas = xp.cumulative_sum(levels * jumps, axis=-1)
    # The area up to a point: whole jumps, and a part of the next.
    place = xp.clip(_count_up_to(without_gradient(ends), points), 0, levels.shape[-1] - 1)
    ends, areas, levels = (
        xp.take_along_axis(each, place, axis=-1) for each in (ends, areas, levels)
    )
    return xp.diff(areas - levels * (ends - points), axis=-1) / gaps


def _draw_mean_quantiles(functions: Array, weights: Array, points: np.ndarray) -> Array:
    """`_mean_quantiles` in a graph, without a search: every jump is looked at for every point."""
    xp = namespace(functions)
    gaps = np.diff(points)
    jumps = xp.concat(list(weights[..., None] * gaps + xp.zeros_like(functions)), axis=-1)
    levels = xp.concat(list(functions), axis=-1)
    order = xp.argsort(levels, axis=-1)
    levels, jumps = (xp.take_along_axis(each, order, axis=-1) for each in (levels, jumps))
    starts = xp.cumulative_sum(jumps, axis=-1) - jumps
    reached = xp.clip(points[:, None] - starts[:, None], 0, None)
    areas = xp.sum(levels[:, None] * xp.minimum(reached, jumps[:, None]), axis=-1)
    return xp.diff(areas, axis=-1) / gaps


def _sort_rows(levels: Array) -> tuple[Array, Array]:
    """The levels of each row in order, and where each stood."""
    xp = namespace(levels)
    mask = (1 << (levels.shape[1] - 1).bit_length()) - 1
    if is_torch_array(levels) or mask > _MOST_PLACES:
        order = xp.argsort(without_gradient(levels), axis=-1, stable=True)
        return xp.take_along_axis(levels, order, axis=-1), order
    # Places ride in the last bits, which costs no more than a sort, and a level 1e-12 of itself.
    keys = levels.view(np.int64)
    keys &= ~mask
    keys |= np.arange(levels.shape[1])
    keys.sort(axis=-1, kind="stable")  # which knows runs that are in order already
    order = keys & mask
    keys &= ~mask
    return levels, order


def _by_row(values: Array) -> Array:
    """(n_models, n_rows, n_columns) as (n_rows, n_models * n_columns), always a copy."""
    xp = namespace(values)
    rows = xp.reshape(xp.moveaxis(values, 0, 1), (values.shape[1], -1))
    return xp.asarray(rows, copy=True) if len(values) == 1 else rows


def _count_up_to(ends: Array, points: Array) -> Array:
    """How many of the ``ends`` of each row, in order, are at most each point."""
    n_rows, n_ends = ends.shape
    if is_torch_array(ends):
        import torch

        return torch.searchsorted(ends, points.expand(n_rows, -1).contiguous(), right=True)
    # Rows one after another are one long array in order.
    rows = np.arange(n_rows)[:, None]
    shifts = rows * 2 * points[-1]
    found = np.searchsorted((ends + shifts).ravel(), points + shifts, side="right")
    return found - rows * n_ends
