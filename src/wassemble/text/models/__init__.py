"""Next-word models: what one must do, n-gram models, and adapters for the user's own.

A search knows this protocol alone; captioners, language models and several of them fused
into one all look the same to it. Arrays at the seam are NumPy's.
"""

from typing import Any, Protocol

import numpy as np

from wassemble.text.vocabulary import Vocabulary

__all__ = ["NextWordModel"]


class NextWordModel(Protocol):
    """Gives, for each row of a batch of unfinished sentences, a histogram of the next word.

    The state between steps is the model's own; a search only hands it back. A step must
    not change the state that it was given.
    """

    vocabulary: Vocabulary

    def start(self, context: Any) -> Any:
        """State with one row for each item of the context, such as an image's features."""

    def step(self, state: Any, words: np.ndarray) -> tuple[np.ndarray, Any]:
        """Read one word per row; say what may come next.

        Parameters
        ----------
        state : what `start`, `step` or `reorder` returned
        words : int array of shape (n_rows,)
            Last word of each row, by number.

        Returns
        -------
        log_probabilities : float32 array of shape (n_rows, n_words)
        state : the state after these words
        """

    def reorder(self, state: Any, rows: np.ndarray) -> Any:
        """State with the rows ``rows`` of ``state``, in this order; repeats are allowed."""
