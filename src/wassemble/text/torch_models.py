"""torch modules as next-word models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from wassemble._extras import load_extra
from wassemble.text.vocabulary import Vocabulary

__all__ = ["TorchNextWord", "log_softmax", "select_rows"]


class TorchNextWord:
    """A torch module as a `NextWordModel`.

    Parameters
    ----------
    module : torch.nn.Module
        Called as ``module(words, state)`` with an integer tensor of shape (n_rows,) on
        the device of its parameters; returns logits of shape (n_rows, n_words) and the
        next state. It is put into evaluation mode.
    vocabulary : Vocabulary
    start : callable
        From the context to the first state: tensors, or tuples, lists, dicts and
        dataclasses of them.
    row_axis : int
        The axis of the state's tensors that runs over rows; 1 for the states of
        ``torch.nn.LSTM``.
    """

    def __init__(
        self,
        module: Any,
        vocabulary: Vocabulary,
        start: Callable[[Any], Any],
        *,
        row_axis: int = 0,
    ) -> None:
        self.vocabulary = vocabulary
        self._torch = load_extra("torch", "torch", purpose="A torch model")
        self._module = module.eval()
        self._start = start
        self._row_axis = row_axis

    def start(self, context: Any) -> Any:
        """The module's first state."""
        with self._torch.inference_mode():
            return self._start(context)

    def step(self, state: Any, words: np.ndarray) -> tuple[np.ndarray, Any]:
        """Log probabilities of the next word, and the module's next state."""
        first = next(self._module.parameters(), None)
        device = None if first is None else first.device
        with self._torch.inference_mode():
            logits, state = self._module(self._torch.as_tensor(words, device=device), state)
            return log_softmax(logits), state

    def reorder(self, state: Any, rows: np.ndarray) -> Any:
        """The state's tensors with ``rows``."""
        with self._torch.inference_mode():
            return select_rows(state, self._torch.as_tensor(rows), self._row_axis)


def log_softmax(logits: Any) -> np.ndarray:
    """Log probabilities of a tensor of logits, as a float32 array."""
    return np.asarray(logits.float().log_softmax(dim=-1).cpu().numpy())


def select_rows(state: Any, rows: Any, axis: int) -> Any:
    """The same structure of tensors, with ``rows`` of their axis ``axis``."""
    if is_dataclass(state) and not isinstance(state, type):
        names = [field.name for field in fields(state) if field.init]
        return replace(state, **{n: select_rows(getattr(state, n), rows, axis) for n in names})
    if isinstance(state, dict):
        return {name: select_rows(part, rows, axis) for name, part in state.items()}
    if isinstance(state, list | tuple):
        parts = [select_rows(part, rows, axis) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    return None if state is None else state.index_select(axis, rows.to(state.device))
