"""A trained captioner: from a file, as a next-word model.

Its context is the grid features of pictures. A captioner file is an ``.npz`` with the
weights in float16, the words, and a JSON account of how it was trained.
"""

from __future__ import annotations

import json
import zipfile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from wassemble._checks import as_float_array, fail
from wassemble._extras import load_extra
from wassemble._files import whole_file
from wassemble.labels import LabelSpace
from wassemble.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paper.captioners.network import CaptionerNetwork, NetworkState

_WEIGHTS = "weights/"


@final
class Captioner:
    """A trained network that captions pictures, and how it was trained; a `NextWordModel`.

    The vocabulary has one word for each of the network's; the unknown word is never said.
    """

    def __init__(
        self, network: CaptionerNetwork, vocabulary: Vocabulary, account: dict[str, Any]
    ) -> None:
        self.network, self.vocabulary, self.account = network.eval(), vocabulary, account

    def start(self, context: Any) -> NetworkState:
        """State for features of shape (n_images, n_cells, n_features), one row for each image.

        A captioner that is told concepts wants them in the last rows, and looks at no other: see
        `load_captions`.
        """
        import torch

        features = as_float_array(context, "context")
        self._check_shape(features.shape)
        with torch.inference_mode():
            return self.network.start(torch.as_tensor(features, dtype=torch.float32))

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        n_concepts = self.network.n_concepts
        if n_concepts:
            if len(shape) != 3 or n_concepts % shape[2] or n_concepts > shape[1] * shape[2]:
                fail(
                    f"`context` must have {n_concepts} concepts in the last rows of its features;"
                    f" got shape {shape}.",
                    hint="`load_captions` gives them if asked to",
                )
        elif len(shape) != 3 or shape[2] != self.network.cells.in_features:
            fail(
                "`context` must be grid features of shape (n_images, n_cells,"
                f" {self.network.cells.in_features}); got shape {shape}."
            )

    def step(self, state: NetworkState, words: np.ndarray) -> tuple[np.ndarray, NetworkState]:
        """Read one word per row; log-probabilities of the next and the state after it."""
        import torch

        with torch.inference_mode():
            meaning, state = self.network.step(state, torch.as_tensor(words))
            logits = self.network.logits(meaning)
            if self.vocabulary.unknown_index is not None:
                logits[:, self.vocabulary.unknown_index] = -torch.inf
            return logits.log_softmax(dim=1).numpy(), state

    def reorder(self, state: NetworkState, rows: np.ndarray) -> NetworkState:
        """State with the given rows, in this order."""
        import torch

        return state.take(torch.as_tensor(rows))


def write_captioner(captioner: Captioner, path: str | PathLike[str]) -> None:
    """Write a captioner as an ``.npz`` file, weights in float16."""
    weights = captioner.network.state_dict().items()
    with whole_file(Path(path)) as temporary:
        np.savez_compressed(
            temporary,
            words=np.array(list(captioner.vocabulary.words)),
            account=json.dumps(captioner.account),
            **{_WEIGHTS + name: tensor.numpy().astype(np.float16) for name, tensor in weights},
        )


def read_captioner(path: str | PathLike[str]) -> Captioner:
    """The captioner in a file that `write_captioner` wrote."""
    load_extra("torch", "captions", purpose="a captioner")
    import torch

    from paper.captioners.network import CaptionerNetwork

    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            weights = {
                name.removeprefix(_WEIGHTS): torch.from_numpy(arrays[name].astype(np.float32))
                for name in arrays.files
                if name.startswith(_WEIGHTS)
            }
            words, account = arrays["words"].tolist(), json.loads(str(arrays["account"]))
        n_words, n_embedding = weights["words.weight"].shape
        n_units = weights["lstm.weight_hh"].shape[1]
        n_features, n_concepts = (
            weights[name].shape[1] if name in weights else 0
            for name in ("cells.weight", "told.weight")
        )
        sizes = n_words, n_features, n_units, n_embedding
        network = CaptionerNetwork(*sizes, dropout=0.0, n_concepts=n_concepts)
        network.load_state_dict(weights)
    except (ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile) as error:
        fail(
            f"{path}: must be a captioner file; {error}.",
            hint="`python -m paper train-captioners` writes them",
        )
    return Captioner(network, Vocabulary(LabelSpace(words)), account)
