"""`TableFuser`: new rows of known models, fused without matching or checking names again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wassemble._checks import as_float_array, fail
from wassemble.ensemble.plan import FusionPlan
from wassemble.inputs import Predictions
from wassemble.inputs.predictions.value import SUM_SLACK
from wassemble.labels import enumerate_names
from wassemble.solvers import Fuser


class TableFuser:
    """Fuses rows of the models of a plan; `Fusion.prepare` makes it.

    Attributes
    ----------
    plan : FusionPlan
    """

    def __init__(self, plan: FusionPlan) -> None:
        self.plan = plan
        self._models = [member.model for member in plan.members]
        # Rows of models whose labels all lead somewhere, each by itself, go straight to the rule.
        self._is_straight = bool((plan.weights > 0).all()) and all(
            member.groups is None and member.kernel.n_samples is None and not member.lost.any()
            for member in plan.members
        )
        self._fusers: dict[np.dtype, Fuser] = {}

    def __repr__(self) -> str:
        return f"TableFuser({self.plan!r})"

    def _fuser(self, dtype: np.dtype) -> Fuser:
        if dtype not in self._fusers:
            plan = self.plan
            self._fusers[dtype] = plan.placed_rule.prepare(
                [member.kernel for member in plan.members],
                plan.weights_of(np.arange(len(plan.members))),
                dtype=dtype,
                holds=plan.holds,
            )
        return self._fusers[dtype]

    def __call__(self, scores: Any) -> np.ndarray:
        """The consensus of some rows, ``(n_samples, n_target)`` or ``(n_target,)``.

        Parameters
        ----------
        scores : dict of model name to array, or one array per model
            Of shape (n_samples, n_labels), or (n_labels,) for one sample; in the order of the
            labels that the models had when this was made. nan where nothing was reported.
        """
        each = [as_float_array(given, f"scores of {model}") for model, given in self._named(scores)]
        is_one = all(given.ndim == 1 for given in each)
        rows = [np.atleast_2d(given) for given in each]
        for member, given in zip(self.plan.members, rows, strict=True):
            if given.shape != (len(rows[0]), len(member.labels)):
                fail(
                    f"the scores of {member.model!r} must have shape (n_samples, n_labels) ="
                    f" {(len(rows[0]), len(member.labels))}; got {given.shape}."
                )
        found = self._fuse_rows(rows)
        return found[0] if is_one else found

    def _named(self, scores: Any) -> list[tuple[str, Any]]:
        if not isinstance(scores, Mapping):
            if len(scores) != len(self._models):
                fail(
                    f"there must be scores of each of {enumerate_names(self._models)}; got"
                    f" {len(scores)} arrays."
                )
            return list(zip(self._models, scores, strict=True))
        if set(scores) != set(self._models):
            fail(
                f"there must be scores of each of {enumerate_names(self._models)}; got those of"
                f" {enumerate_names(scores)}."
            )
        return [(model, scores[model]) for model in self._models]

    def _fuse_rows(self, rows: list[np.ndarray]) -> np.ndarray:
        plan = self.plan
        is_multiclass = plan.kind == "multiclass"
        if self._is_straight:
            sums = np.array([given.sum(axis=1, dtype=np.float64) for given in rows])
            # A nan, or a row that is no histogram, needs the longer way.
            if (np.abs(sums - 1) <= SUM_SLACK).all() if is_multiclass else np.isfinite(sums).all():
                if is_multiclass:
                    rows = [
                        (given / total[:, None]).astype(given.dtype, copy=False)
                        for given, total in zip(rows, sums, strict=True)
                    ]
                dtype = np.result_type(np.float32, *rows)
                found: np.ndarray = np.asarray(self._fuser(dtype)(rows))
                return np.asarray(plan.rule.to_histograms(found)) if is_multiclass else found
        ids = np.arange(len(rows[0]))
        return plan.fuse(
            [
                Predictions(member.model, ids, member.labels, given, kind=plan.kind)
                for member, given in zip(plan.members, rows, strict=True)
            ]
        ).scores
