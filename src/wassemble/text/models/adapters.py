"""The user's own models as next-word models: torch modules, and Hugging Face transformers.

Transformers come from a local folder: nothing is ever downloaded, and weights are read from
safetensors files alone.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.text.vocabulary import Vocabulary

_PURPOSE = "A model of Hugging Face transformers"
_RELATIVE = ("bloom", "mpt", "roformer")  # take no positions, and see distances alone


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
        self, module: Any, vocabulary: Vocabulary, start: Callable[[Any], Any], *, row_axis: int = 0
    ) -> None:
        self.vocabulary = vocabulary
        self._torch = load_extra("torch", "torch", purpose="A torch model")
        self._module = module.eval()
        self._start = start
        self._row_axis = row_axis

    def start(self, context: Any) -> Any:
        with self._torch.inference_mode():
            return self._start(context)

    def step(self, state: Any, words: np.ndarray) -> tuple[np.ndarray, Any]:
        first = next(self._module.parameters(), None)
        device = None if first is None else first.device
        with self._torch.inference_mode():
            logits, state = self._module(self._torch.as_tensor(words, device=device), state)
            return _log_softmax(logits), state

    def reorder(self, state: Any, rows: np.ndarray) -> Any:
        with self._torch.inference_mode():
            return _select_rows(state, self._torch.as_tensor(rows), self._row_axis)


@dataclass(frozen=True)
class _State:
    """What a step needs beside the words; every tensor has a row for each row."""

    cache: tuple[Any, ...]  # keys and values of each layer; none before the first step
    mask: Any  # (n_rows, n_read): 1 for words, 0 for padding; of the encoder, if there is one
    encoded: Any = None  # (n_rows, n_read, n_units): what the encoder made of the context
    prompts: Any = None  # (n_rows, n_read): words to read with the first one


class _Transformer:
    """What both kinds of models share."""

    _auto: ClassVar[str]  # the library's class that loads such models

    def __init__(self, model: Any, vocabulary: Vocabulary) -> None:
        self._torch = load_extra("torch", "text", purpose=_PURPOSE)
        self._library = load_extra("transformers", "text", purpose=_PURPOSE)
        self._model = model.eval()
        self.vocabulary = vocabulary
        n_logits = model.config.get_text_config(decoder=True).vocab_size
        if len(vocabulary) > n_logits:
            fail(
                f"the vocabulary must have at most the model's {n_logits} words;"
                f" got {len(vocabulary)}."
            )

    @classmethod
    def load(cls, folder: str | PathLike[str], vocabulary: Vocabulary | None = None) -> Self:
        """The model in a local folder; without a vocabulary, its tokenizer's words are used."""
        library = load_extra("transformers", "text", purpose=_PURPOSE)
        if not (Path(folder) / "config.json").is_file():
            fail(
                f"{folder} must be a local folder with a model's config.json; got none.",
                hint="models are never downloaded: save_pretrained writes such a folder",
            )
        local = {"local_files_only": True, "trust_remote_code": False}
        loader = getattr(library, cls._auto)
        try:
            model = loader.from_pretrained(folder, use_safetensors=True, **local)
        except OSError as error:
            fail(f"{folder} must hold the model's weights as safetensors: {error}")
        if vocabulary is None:
            tokenizer = library.AutoTokenizer.from_pretrained(folder, **local)
            vocabulary = _read_vocabulary(tokenizer, model)
        return cls(model, vocabulary)

    def reorder(self, state: _State, rows: np.ndarray) -> _State:
        return _select_rows(state, self._torch.as_tensor(rows), 0)

    def _tensor(self, numbers: np.ndarray) -> Any:
        return self._torch.as_tensor(numbers, device=self._model.device)

    def _encode(self, texts: Any, *, pad_left: bool) -> tuple[Any, Any]:
        """Numbers of the words of each text, padded on one side, and where words are."""
        numbers = [self.vocabulary.encode(text) for text in texts]
        width = max((len(row) for row in numbers), default=0)
        padded = np.zeros((len(numbers), width), dtype=np.int64)
        mask = np.zeros_like(padded)
        for row, text in enumerate(numbers):
            first = width - len(text) if pad_left else 0
            padded[row, first : first + len(text)] = text
            mask[row, first : first + len(text)] = 1
        return self._tensor(padded), self._tensor(mask)

    def _read(self, output: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
        """Log probabilities of the next word, and the cache as plain tensors.

        Logits beyond the vocabulary are padding of the model's table.
        """
        logs = _log_softmax(output.logits[:, -1, : len(self.vocabulary)])
        return logs, tuple(tuple(layer) for layer in output.past_key_values)


class CausalNextWord(_Transformer):
    """A causal language model as a `NextWordModel`.

    Each item of the context is a list of words that the sentence goes on from, read after
    the vocabulary's start word; an empty list starts anew. A model with absolute positions
    that takes no ``position_ids`` needs items of one length.

    Parameters
    ----------
    model : transformers.PreTrainedModel
    vocabulary : Vocabulary
        Its words, by number.
    """

    _auto = "AutoModelForCausalLM"

    def __init__(self, model: Any, vocabulary: Vocabulary) -> None:
        super().__init__(model, vocabulary)
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters

    def start(self, context: Any) -> _State:
        prompts, mask = self._encode(context, pad_left=True)  # the next word comes last
        kind = self._model.config.model_type
        if not (self._takes_positions or kind in _RELATIVE or mask.all()):
            lengths = ", ".join(str(length) for length in mask.sum(dim=1).unique().tolist())
            fail(
                f"items for a {kind} model, which takes no position_ids, must have one length;"
                f" got lengths {lengths}.",
                hint="give items of different lengths one by one",
            )
        return _State((), mask, prompts=prompts)

    def step(self, state: _State, words: np.ndarray) -> tuple[np.ndarray, _State]:
        torch = self._torch
        with torch.inference_mode():
            column = self._tensor(words)[:, None]
            mask = torch.cat([state.mask, torch.ones_like(column)], dim=1)
            read = column
            if state.prompts is not None:
                read, mask = self._with_start(state.prompts, state.mask, column)
            # Padding has no position: a row's words count from 0 wherever they begin.
            positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -read.shape[1] :]
            output = self._model(
                input_ids=read,
                attention_mask=mask,
                past_key_values=self._library.DynamicCache(state.cache or None),
                use_cache=True,
                **({"position_ids": positions} if self._takes_positions else {}),
            )
            logs, cache = self._read(output)
        return logs, _State(cache, mask)

    def _with_start(self, prompts: Any, mask: Any, column: Any) -> tuple[Any, Any]:
        """The first word before the prompt, and both after the padding."""
        torch = self._torch
        texts = torch.cat([torch.zeros_like(column), prompts], dim=1)
        present = torch.cat([torch.zeros_like(column), mask], dim=1)
        first = present.shape[1] - 1 - mask.sum(dim=1, keepdim=True)
        return texts.scatter(1, first, column), present.scatter(1, first, 1)


class EncoderDecoderNextWord(_Transformer):
    """A model with an encoder and a decoder as a `NextWordModel`.

    Each item of the context is a list of words for the encoder, at least one.

    Parameters
    ----------
    model : transformers.PreTrainedModel
    vocabulary : Vocabulary
        Words of both sides, by number; its start word is what the decoder begins with.
    """

    _auto = "AutoModelForSeq2SeqLM"

    def start(self, context: Any) -> _State:
        """What the encoder makes of each item."""
        numbers, mask = self._encode(context, pad_left=False)  # encoders count from the left
        with self._torch.inference_mode():
            encoded = self._model.get_encoder()(input_ids=numbers, attention_mask=mask)
        return _State((), mask, encoded.last_hidden_state)

    def step(self, state: _State, words: np.ndarray) -> tuple[np.ndarray, _State]:
        library = self._library
        outputs = library.modeling_outputs.BaseModelOutput(last_hidden_state=state.encoded)
        cache = library.EncoderDecoderCache(state.cache) if state.cache else None
        with self._torch.inference_mode():
            output = self._model(
                encoder_outputs=outputs,
                attention_mask=state.mask,
                decoder_input_ids=self._tensor(words)[:, None],
                past_key_values=cache,
                use_cache=True,
            )
            logs, layers = self._read(output)
        return logs, replace(state, cache=layers)


def _read_vocabulary(tokenizer: Any, model: Any) -> Vocabulary:
    """The tokenizer's words by number."""
    words = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    if tokenizer.eos_token is None:
        fail("the tokenizer must know the word that ends a sentence; it has none.")
    first = getattr(model.config, "decoder_start_token_id", None)
    start = tokenizer.bos_token if first is None else words[first]
    return Vocabulary(words, start or tokenizer.eos_token, tokenizer.eos_token, tokenizer.unk_token)


def _log_softmax(logits: Any) -> np.ndarray:
    """Log probabilities of a tensor of logits, as a float32 array."""
    return np.asarray(logits.float().log_softmax(dim=-1).cpu().numpy())


def _select_rows(state: Any, rows: Any, axis: int) -> Any:
    """The same structure of tensors, with ``rows`` of their axis ``axis``."""
    if is_dataclass(state) and not isinstance(state, type):
        names = [field.name for field in fields(state) if field.init]
        return replace(state, **{n: _select_rows(getattr(state, n), rows, axis) for n in names})
    if isinstance(state, dict):
        return {name: _select_rows(part, rows, axis) for name, part in state.items()}
    if isinstance(state, list | tuple):
        parts = [_select_rows(part, rows, axis) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    return None if state is None else state.index_select(axis, rows.to(state.device))
