"""What a solve found, and how far it can be trusted."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._arrays import Array, convert_like, detached, log_quotient, namespace, new_zeros
from wassemble._checks import as_float_array, check_index, check_nonnegative, fail
from wassemble._pictures import N_MODELS, Bars, draw_beside, show
from wassemble.solvers.arithmetics import Solver
from wassemble.solvers.loop import Status
from wassemble.solvers.problem import BarycenterProblem


@dataclass(frozen=True, repr=False)
class BarycenterResult:
    """A consensus with its evidence, as `solve_barycenter` returns it.

    Properties without a sample axis belong to a problem that was given without one.

    Attributes
    ----------
    problem : BarycenterProblem
        What was solved; ``problem.tolerance`` is the tolerance in force, raised to what
        the floating type can resolve.
    solver : Solver
        Which arithmetic ran, and why.
    n_log_rows : int
        Rows solved in log arithmetic.
    n_half_sweeps : int
        Sweeps of each row, the first, whose products were in half precision
        (``mixed_precision``); residuals never come from them.
    """

    problem: BarycenterProblem
    solver: Solver
    barycenters: Array
    statuses: np.ndarray
    residuals: np.ndarray
    sweeps: np.ndarray
    n_log_rows: int
    log_v: Array | None
    dropped: np.ndarray | None
    n_half_sweeps: int = 0

    @property
    def barycenter(self) -> Array:
        """The consensus, ``(n_samples, n_target)`` or ``(n_target,)``."""
        return self.barycenters[0] if self.problem.drops_sample_axis else self.barycenters

    @property
    def status(self) -> np.ndarray | Status:
        """How each row ended: codes to compare with `Status`, or one `Status`."""
        if self.problem.drops_sample_axis:
            return Status(int(self.statuses[0]))
        return self.statuses

    @property
    def residual(self) -> np.ndarray | float:
        """By how much the couplings' target marginals moved in the last sweep.

        L1, relative to the consensus, of the model that moved most; 0 at the fixed
        point. Balanced, it is by how much they still differ from the consensus.
        """
        return self._per_row(self.residuals)

    @property
    def n_sweeps(self) -> np.ndarray | int:
        """Sweeps until each row stopped; 0 for a closed form.

        A Newton step and the sweep after it count as one.
        """
        return self._per_row(self.sweeps)

    @property
    def converged(self) -> np.ndarray | bool:
        """Whether the residual reached the tolerance; never for a fixed number of sweeps."""
        if self.problem.tolerance is None:
            reached = self.sweeps == 0
        else:
            reached = (self.residuals <= self.problem.tolerance) & (
                self.statuses != Status.DIVERGED
            )
        return self._per_row(reached)

    @property
    def dropped_mass(self) -> np.ndarray | float:
        """Share of its mass that the model hit hardest by ``n_top`` lost; 0 without it."""
        dropped = np.zeros(self.problem.n_samples) if self.dropped is None else self.dropped
        return self._per_row(dropped)

    @property
    def normalized(self) -> bool:
        """Whether rows were divided by their sums first."""
        return self.problem.normalize

    def _per_row(self, values: np.ndarray) -> Any:
        return values[0].item() if self.problem.drops_sample_axis else values

    # -- couplings -------------------------------------------------------------------

    def coupling(self, model: int, sample: int = 0) -> Array:
        """Transport plan between a model and the consensus, ``(n_source, n_target)``.

        Balanced, its rows sum to the model's histogram and, at convergence, its columns to
        the consensus; unbalanced, the weighted sum over models of its columns is the
        consensus. Before convergence the columns are off by about the residual. Where
        kernels join labels only within groups (a diagonal kernel: each label alone) and
        models put different mass on a group, no balanced coupling can have both
        marginals; its columns are then the consensus up to a factor for each group.
        """
        return convert_like(self._coupling(model, sample).to_dense(), self.problem.like)

    def _coupling(self, model: int, sample: int) -> Any:
        sample = self._check_sample(sample)
        model = self._check_model(model, sample)
        log_u, log_v = self._log_scalings_of(model, sample)
        kernel = self.problem.kernels[model].take(slice(sample, sample + 1))
        return kernel.scaled(log_u, log_v)

    def mass_sent(self, label: int, sample: int = 0) -> list[Array]:
        """Mass that each source label sends to one consensus label: a column of each coupling.

        Returns
        -------
        sent : list of arrays of shape (n_source,), one per model
            All 0 for a model of weight 0.
        """
        sample = self._check_sample(sample)
        label = check_index(label, "label", self.problem.n_target)
        sent = []
        for model in range(self.problem.n_models):
            if not self.problem.votes(model, sample):
                n_source = self.problem.kernels[model].shape[0]
                sent.append(new_zeros((n_source,), self.problem.like))
                continue
            log_u, log_v = self._log_scalings_of(model, sample)
            xp = namespace(log_u)
            places = convert_like(np.arange(log_v.shape[0]), log_v)
            only = xp.where(places == label, log_v, -xp.inf)
            kernel = self.problem.kernels[model].take(slice(sample, sample + 1))
            sent.append(xp.exp(log_u + xp.reshape(kernel.log_apply(only), log_u.shape)))
        return sent

    def contributions(self, label: int, sample: int = 0) -> list[Array]:
        """Where the mass of one consensus label came from (the paper's mapping table).

        Returns
        -------
        shares : list of arrays of shape (n_source,), one per model
            Percent of the label's mass in the model's own coupling that each source label
            sent; all 0 for a model that sent nothing there or has weight 0.
        """
        shares = []
        for sent in self.mass_sent(label, sample):
            xp = namespace(sent)
            total = xp.sum(sent)
            shares.append(100 * sent / xp.where(total > 0, total, 1.0))
        return shares

    def transport_cost(self, costs: Any) -> Array:
        """Cost of moving each model onto the consensus, <C_l, coupling>.

        Parameters
        ----------
        costs : array of shape (n_source, n_target), or one per model
            Finite and non-negative.

        Returns
        -------
        cost : array of shape (n_models, n_samples) or (n_models,)
            0 for a model of weight 0, which has no coupling.
        """
        problem = self.problem
        each = costs if isinstance(costs, list | tuple) else [costs] * problem.n_models
        if len(each) != problem.n_models:
            fail(
                f"`costs` must be one array for all {problem.n_models} models or one per model;"
                f" got {len(each)}."
            )
        each = [self._check_cost(cost, model) for model, cost in enumerate(each)]
        total = new_zeros((problem.n_models, problem.n_samples), problem.like)
        for model in problem.model_order:
            for sample in range(problem.n_samples):
                if problem.votes(model, sample):
                    total[model, sample] = self._coupling(model, sample).inner(each[model])
        return total[:, 0] if problem.drops_sample_axis else total

    def _check_cost(self, cost: Any, model: int) -> Array:
        cost = as_float_array(cost, "costs", like=self.problem.like)
        shape = self.problem.kernels[model].shape
        if tuple(cost.shape) != shape:
            fail(
                f"the cost of model {model} must have the shape of its kernel, {shape};"
                f" got {tuple(cost.shape)}."
            )
        check_nonnegative(cost, "costs", "source label {}, target label {}".format)
        return cost

    # -- scalings --------------------------------------------------------------------

    def log_scalings(self) -> Array:
        """Logs of v, ``(n_models, n_samples, n_target)``: what `initial=` starts from."""
        if self.log_v is None:
            fail("this result was computed without its scalings.", hint="use `solve_barycenter`")
        return self.log_v

    def _log_scalings_of(self, model: int, sample: int) -> tuple[Array, Array]:
        problem = self.problem
        log_v = self.log_scalings()[model, sample]
        kernel = problem.kernels[model].take(slice(sample, sample + 1))
        xp = namespace(log_v)
        log_kv = xp.reshape(kernel.log_apply(log_v[None]), (-1,))
        log_source = problem.log_histogram(model, sample)
        return problem.mass.exponent * log_quotient(log_source, log_kv), log_v

    def _check_model(self, model: int, sample: int) -> int:
        model = check_index(model, "model", self.problem.n_models)
        if not self.problem.votes(model, sample):
            where = f" on sample {sample}" if self.problem.weights.ndim == 3 else ""
            fail(f"model {model} has weight 0{where}: it took no part and has no coupling.")
        return model

    def _check_sample(self, sample: int) -> int:
        return check_index(sample, "sample", self.problem.n_samples)

    # -- pictures --------------------------------------------------------------------

    def plot(self, sample: int = 0) -> Any:
        """Draw models of a sample, at most eight, beside their consensus; the figure.

        Labels are numbers here; `FusionResult.plot` has names.
        """
        return draw_beside(self._pictures(self._check_sample(sample)))

    def _pictures(self, sample: int) -> list[Bars]:
        logs = [
            detached(self.problem.log_histogram(model, sample))
            for model in range(min(self.problem.n_models, N_MODELS))
        ]
        rows = [(f"model {model}", np.exp(log)) for model, log in enumerate(logs)]
        rows.append(("consensus", detached(self.barycenters[sample])))
        return [Bars.largest(title, range(len(row)), row) for title, row in rows]

    def _repr_html_(self) -> str | None:
        return show(self._pictures(0), repr(self)) if len(self.statuses) else None

    def __repr__(self) -> str:
        counts = np.bincount(self.statuses, minlength=len(Status))
        ends = [
            f"{count} {s.name.lower()}" for s, count in zip(Status, counts, strict=True) if count
        ]
        worst = self.residuals.max(initial=0)
        half = f", {self.n_half_sweeps} sweeps in half precision" if self.n_half_sweeps else ""
        return (
            f"BarycenterResult({self.problem.n_samples} samples, {self.problem.n_target} target"
            f" labels: {', '.join(ends) or 'none'}; residual at most {worst:.2g};"
            f" {self.solver.name}{half})"
        )
