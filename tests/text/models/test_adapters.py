"""torch modules and tiny transformers, built here, against the models themselves."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from wassemble import InvalidInputError
from wassemble.text import (
    CausalNextWord,
    EncoderDecoderNextWord,
    FusedNextWord,
    TorchNextWord,
    Vocabulary,
    beam_search,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = Vocabulary(["<start>", "<end>", "<unk>", "a", "cat", "dog", "sleeps", "runs"])
N_WORDS = 8
N_LOGITS = 12  # tables are often longer than the vocabulary


@pytest.fixture(autouse=True)
def quiet():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)


def tiny_gpt():
    config = transformers.GPT2Config(
        vocab_size=N_LOGITS, n_positions=32, n_embd=16, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval()


def tiny_t5():
    config = transformers.T5Config(
        vocab_size=N_LOGITS, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config).eval()


def tiny_bart(kind="BartForConditionalGeneration"):
    config = transformers.BartConfig(
        vocab_size=N_LOGITS, d_model=16, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16,
        decoder_ffn_dim=16, max_position_embeddings=32, decoder_start_token_id=0,
        pad_token_id=2, bos_token_id=0, eos_token_id=1, forced_eos_token_id=None,
        init_std=0.5,
    )  # fmt: skip
    return getattr(transformers, kind)(config).eval()


def tiny_bloom():
    config = transformers.BloomConfig(
        vocab_size=N_LOGITS, hidden_size=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1
    )
    return transformers.BloomForCausalLM(config).eval()


def logs_of(logits):
    return logits[0, -1, :N_WORDS].log_softmax(-1).detach().numpy()


@pytest.mark.parametrize("build", [tiny_gpt, tiny_bloom])
def test_a_causal_model_gives_what_it_gives_without_a_cache(build, tmp_path):
    model = build()
    model.save_pretrained(tmp_path)
    adapter = CausalNextWord.load(tmp_path, WORDS)
    prompts = [["a"], [], ["a", "cat", "runs"]]
    logs, state = adapter.step(adapter.start(prompts), np.zeros(3, dtype=np.int64))
    assert logs.shape == (3, N_WORDS)
    assert logs.dtype == np.float32
    texts = [[0, *WORDS.encode(prompt)] for prompt in prompts]
    check_rows(model, logs, texts)
    rows, words = np.array([2, 0, 0]), np.array([3, 4, 5])
    for _ in range(2):
        state = adapter.reorder(state, rows)
        logs, state = adapter.step(state, words)
        texts = [[*texts[row], word] for row, word in zip(rows, words, strict=True)]
        check_rows(model, logs, texts)


def check_rows(model, logs, texts):
    for row, text in zip(logs, texts, strict=True):
        expected = logs_of(model(torch.tensor([[int(word) for word in text]])).logits)
        np.testing.assert_allclose(row, expected, atol=1e-5)


def test_a_causal_model_that_takes_no_positions_needs_items_of_one_length():
    model = tiny_bart("BartForCausalLM")
    adapter = CausalNextWord(model, WORDS)
    logs, _ = adapter.step(adapter.start([["a"], ["cat"]]), np.zeros(2, dtype=np.int64))
    check_rows(model, logs, [[0, 3], [0, 4]])
    with pytest.raises(InvalidInputError, match="must have one length; got lengths 0, 2"):
        adapter.start([["a", "cat"], [], []])


def test_a_step_leaves_the_state_that_it_was_given_alone():
    adapter = CausalNextWord(tiny_gpt(), WORDS)
    _, state = adapter.step(adapter.start([["a"], []]), np.zeros(2, dtype=np.int64))
    first, _ = adapter.step(state, np.array([4, 5]))
    adapter.step(state, np.array([6, 7]))
    again, _ = adapter.step(state, np.array([4, 5]))
    np.testing.assert_allclose(first, again, rtol=1e-6)


@pytest.mark.parametrize("build", [tiny_t5, tiny_bart])
def test_an_encoder_and_decoder_gives_what_it_gives_without_a_cache(build, tmp_path):
    model = build()
    model.save_pretrained(tmp_path)
    adapter = EncoderDecoderNextWord.load(tmp_path, WORDS)
    sources = [["a"], ["a", "cat", "runs"]]
    logs, state = adapter.step(adapter.start(sources), np.zeros(2, dtype=np.int64))
    logs, state = adapter.step(state, np.array([5, 6]))
    logs, state = adapter.step(adapter.reorder(state, np.array([1, 1, 0])), np.array([3, 4, 7]))
    for row, source, text in zip(
        logs, [sources[1], sources[1], sources[0]], [[0, 6, 3], [0, 6, 4], [0, 5, 7]], strict=True
    ):
        output = model(
            input_ids=torch.tensor([WORDS.encode(source).tolist()]),
            decoder_input_ids=torch.tensor([text]),
        )
        np.testing.assert_allclose(row, logs_of(output.logits), atol=1e-5)


@pytest.mark.parametrize(
    ("adapter", "build"), [(CausalNextWord, tiny_gpt), (EncoderDecoderNextWord, tiny_t5)]
)
def test_a_transformer_gets_all_that_it_reads_on_its_device(adapter, build):
    model = build().to("meta")  # refuses tensors of other devices, and has no numbers
    masks = []

    def hide_mask(_, args, kwargs):  # models look into its numbers
        masks.append(kwargs.pop("attention_mask").device.type)
        return args, kwargs

    def answer(_, __, output):
        output.logits = torch.zeros(output.logits.shape)
        return output

    for part in {model, model.get_encoder()}:
        part.register_forward_pre_hook(hide_mask, with_kwargs=True)
    model.register_forward_hook(answer)
    adapted = adapter(model, WORDS)
    _, state = adapted.step(adapted.start([["a"], ["cat", "dog"]]), np.array([0, 0]))
    adapted.step(adapted.reorder(state, np.array([1, 0])), np.array([3, 4]))
    assert set(masks) == {"meta"}


def test_without_a_vocabulary_the_tokenizer_has_the_words(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    table = {word: number for number, word in enumerate(WORDS.words)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(table, unk_token="<unk>"))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<start>", eos_token="<end>", unk_token="<unk>"
    ).save_pretrained(tmp_path)
    tiny_gpt().save_pretrained(tmp_path)
    assert CausalNextWord.load(tmp_path).vocabulary == WORDS


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"must be a local folder with a model's config"):
        CausalNextWord.load(tmp_path, WORDS)
    with pytest.raises(InvalidInputError, match="never downloaded"):
        CausalNextWord.load("gpt2", WORDS)


def test_pickled_weights_are_refused(tmp_path):
    model = tiny_gpt()
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InvalidInputError, match="weights as safetensors"):
        CausalNextWord.load(tmp_path, WORDS)


def test_a_vocabulary_longer_than_the_model_is_refused():
    words = Vocabulary(["<end>", *(f"w{i}" for i in range(N_LOGITS))])
    with pytest.raises(InvalidInputError, match="at most the model's 12 words; got 13"):
        CausalNextWord(tiny_gpt(), words)


class TinyLstm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(N_WORDS, 6)
        self.lstm = torch.nn.LSTM(6, 5, num_layers=2)
        self.out = torch.nn.Linear(5, N_WORDS)

    def forward(self, words, state):
        units, state = self.lstm(self.embed(words)[None], state)
        return self.out(units[0]), state


def start_lstm(context):
    first = torch.tensor(np.asarray(context), dtype=torch.float32)
    return tuple(first.repeat(2, 5, 1).transpose(1, 2).contiguous() for _ in range(2))


def test_a_torch_module_gives_what_it_gives_row_by_row():
    module = TinyLstm()
    model = TorchNextWord(module, WORDS, start_lstm, row_axis=1)
    _, state = model.step(model.start([0.1, 0.9]), np.zeros(2, dtype=np.int64))
    logs, _ = model.step(model.reorder(state, np.array([1, 0, 1])), np.array([3, 4, 5]))
    for row, (item, word) in enumerate([(0.9, 3), (0.1, 4), (0.9, 5)]):
        _, alone = module(torch.tensor([0]), start_lstm([item]))
        expected, _ = module(torch.tensor([word]), alone)
        expected = expected.log_softmax(-1)[0].detach().numpy()
        np.testing.assert_allclose(logs[row], expected, atol=1e-6)


class Pair(NamedTuple):
    hidden: Any
    cell: Any


@dataclass
class Record:
    hidden: Any
    cell: Any = None


@pytest.mark.parametrize("kind", [Pair, Record])
def test_states_keep_their_kind_when_rows_are_selected(kind):
    model = TorchNextWord(TinyLstm(), WORDS, start_lstm)
    state = model.reorder(kind(torch.arange(3), [torch.arange(3) * 2, None]), np.array([2, 0]))
    assert isinstance(state, kind)
    assert state.hidden.tolist() == [2, 0]
    assert state.cell[0].tolist() == [4, 0]
    assert state.cell[1] is None


class Devices(torch.nn.Module):
    """Answers with numbers, and with the device of the words as its state."""

    def forward(self, words, state):
        return torch.zeros(len(words), N_WORDS), words.device.type


def test_words_are_on_the_device_of_the_module():
    module = Devices()
    model = TorchNextWord(module, WORDS, lambda context: None)
    assert model.step(None, np.array([3]))[1] == "cpu"
    module.weight = torch.nn.Parameter(torch.empty(1, device="meta"))
    assert model.step(None, np.array([3]))[1] == "meta"


def test_all_kinds_are_fused_and_searched_together():
    lstm = TorchNextWord(TinyLstm(), WORDS, lambda c: start_lstm([len(x) for x in c]), row_axis=1)
    fused = FusedNextWord(
        [lstm, CausalNextWord(tiny_gpt(), WORDS), EncoderDecoderNextWord(tiny_t5(), WORDS)]
    )
    context = [["a"], ["cat", "dog"]]
    batch = beam_search(fused, context, max_words=4)
    alone = [beam_search(fused, [item], max_words=4)[0] for item in context]
    assert [b[0].words for b in batch] == [a[0].words for a in alone]
