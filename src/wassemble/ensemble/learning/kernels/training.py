"""Following a loss back through the solver: batches, epochs, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble.ensemble.learning.kernels.forms import Form
from wassemble.ensemble.learning.kernels.judging import Calibration, each_loss
from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.plan import FusionPlan, group_by_voters
from wassemble.kernels import DenseKernel
from wassemble.solvers import Barycenter, BarycenterProblem
from wassemble.solvers.barycenter import solve


@dataclass(frozen=True)
class Epoch:
    """Losses at the end of one pass over the samples; number 0 is before the first."""

    number: int
    train_loss: float
    validation_loss: float


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn."""

    max_epochs: int
    patience: int
    learning_rate: float
    batch_size: int
    seed: int


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """Torch on one thread: batches are too small to share, and sums keep their order."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


class TorchFusion:
    """The fusion of a plan in torch, with kernels that change.

    Parameters
    ----------
    plan : FusionPlan
        Made with kernels that reach what the learned ones reach: weights and the scores
        themselves depend on that alone.
    places : dict of model name to int
        Which of the kernels is a model's.
    """

    def __init__(self, torch: Any, plan: FusionPlan, trial: Trial, places: dict[str, int]) -> None:
        self._torch = torch
        self._plan = plan
        self._places = [places[member.model] for member in plan.members]
        ready = plan.prepare(trial.models)
        self._scores = [torch.as_tensor(scores, dtype=torch.float64) for scores in ready.scores]
        self._say, self._votes = ready.say, ready.votes

    def fuse(self, tables: list[Any], rows: np.ndarray) -> Any:
        """Consensus of the samples ``rows``, each answered by some model."""
        torch = self._torch
        kernels = [DenseKernel(table) for table in tables]
        parts, order = [], []
        for voting, places in group_by_voters(self._votes[:, rows]):
            parts.append(self._solve(kernels, voting, torch.as_tensor(rows[places])))
            order.append(np.arange(len(rows))[places])
        back = np.argsort(np.concatenate(order))
        return torch.cat(parts)[torch.as_tensor(back)]

    def _solve(self, kernels: list[DenseKernel], voting: np.ndarray, rows: Any) -> Any:
        rule = self._plan.rule
        assert isinstance(rule, Barycenter)
        problem = BarycenterProblem(
            [self._scores[model][rows] for model in voting],
            [kernels[self._places[model]] for model in voting],
            rule,
            weights=self._torch.as_tensor(self._plan.weights_of(voting, self._say[:, rows])),
            normalize=rule.is_balanced,
        )
        return solve(problem, keep_scalings=False).barycenters


class Adam:
    """Steps of about equal length along smoothed gradients (Kingma and Ba 2015, Algorithm 1).

    torch.optim has it too, but loads a compiler first: that takes longer than the learning.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._means: list[Any] = []
        self._squares: list[Any] = []
        self._n_steps = 0

    def step(self, numbers: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Move ``numbers`` against their gradients."""
        if not self._means:
            self._means = [0 * gradient for gradient in gradients]
            self._squares = [0 * gradient for gradient in gradients]
        self._n_steps += 1
        for i, (number, gradient) in enumerate(zip(numbers, gradients, strict=True)):
            self._means[i] = 0.9 * self._means[i] + 0.1 * gradient
            self._squares[i] = 0.999 * self._squares[i] + 0.001 * gradient**2
            mean = self._means[i] / (1 - 0.9**self._n_steps)
            square = self._squares[i] / (1 - 0.999**self._n_steps)
            number.sub_(self.rate * mean / (square.sqrt() + 1e-8))


class Training:
    """A form under way to less loss on some samples, watched on others."""

    def __init__(
        self, torch: Any, form: Form, fusion: TorchFusion, trial: Trial, start: Calibration
    ) -> None:
        self._torch = torch
        self._form = form
        self._fusion = fusion
        self._task = trial.task
        self._truth = torch.as_tensor(trial.truth)
        weight = np.ones(trial.n_samples) if trial.sample_weight is None else trial.sample_weight
        self._weight = torch.as_tensor(weight, dtype=torch.float64)
        self._calibration = torch.tensor(start.numbers, dtype=torch.float64, requires_grad=True)

    @property
    def numbers(self) -> list[Any]:
        """Everything that is learned."""
        return [*self._form.numbers(), self._calibration]

    def loss(self, rows: np.ndarray) -> Any:
        """Mean loss of the samples ``rows``, without a penalty."""
        scores = self._fusion.fuse(self._form.tables(), rows)
        at = self._torch.as_tensor(rows)
        losses = each_loss(scores, self._truth[at], self._calibration, self._task)
        weight = self._weight[at]
        return (weight * losses).sum() / weight.sum()

    def measure(self, rows: np.ndarray, batch_size: int) -> float:
        """Mean loss of many samples, without a gradient."""
        total, mass = 0.0, 0.0
        with self._torch.no_grad():
            for batch in _cut(rows, batch_size):
                own = float(self._weight[self._torch.as_tensor(batch)].sum())
                total += own * float(self.loss(batch)) if own else 0.0
                mass += own
        return total / mass

    def step(self, adam: Adam, rows: np.ndarray) -> float:
        """Follow the gradient of one batch; its loss before."""
        loss = self.loss(rows)
        gradients = self._torch.autograd.grad(loss + self._form.penalty(), self.numbers)
        with self._torch.no_grad():
            adam.step(self.numbers, gradients)
        return float(loss.detach())

    def copy(self) -> list[Any]:
        """What was learned so far."""
        return [number.detach().clone() for number in self.numbers]

    def restore(self, kept: list[Any]) -> None:
        """Go back to what was kept."""
        with self._torch.no_grad():
            for number, value in zip(self.numbers, kept, strict=True):
                number.copy_(value)


def train(
    training: Training,
    rows: np.ndarray,
    held_out: np.ndarray,
    schedule: Schedule,
    progress: Callable[[int, int], None] | None,
) -> tuple[Epoch, ...]:
    """Learn until the held-out loss has not fallen for some epochs; ends at the best of them."""
    rng = np.random.default_rng(schedule.seed)
    adam = Adam(schedule.learning_rate)
    size = schedule.batch_size
    history = [Epoch(0, training.measure(rows, size), training.measure(held_out, size))]
    best, kept = history[0], training.copy()
    for number in range(1, schedule.max_epochs + 1):
        adam.rate = schedule.learning_rate / number**0.5  # batches are noisy: settle down
        losses = [
            (len(batch), training.step(adam, batch)) for batch in _cut(rng.permutation(rows), size)
        ]
        mean = sum(n * loss for n, loss in losses) / len(rows)
        history.append(Epoch(number, mean, training.measure(held_out, size)))
        if history[-1].validation_loss < best.validation_loss:
            best, kept = history[-1], training.copy()
        if progress is not None:
            progress(number, schedule.max_epochs)
        if number - best.number >= schedule.patience:
            break
    training.restore(kept)
    return tuple(history)


def _cut(rows: np.ndarray, size: int) -> list[np.ndarray]:
    """Batches of about equal size, none larger than ``size``."""
    return np.array_split(rows, max(1, -(-len(rows) // size)))
