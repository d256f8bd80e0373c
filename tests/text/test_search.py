"""Beam search against every sentence that there is."""

import numpy as np
import pytest
from text.tables import TableModel, every_sentence

from wassemble import InvalidInputError
from wassemble.text import beam_search

WORDS = ["<start>", "<end>", "<unk>", "a", "b", "c"]
ITEMS = [7, 3, 11, 5]


def texts(results):
    return [[sentence.words for sentence in sentences] for sentences in results]


@pytest.mark.parametrize("length_power", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_the_tree_finds_the_best_sentences(seed, length_power):
    model = TableModel(WORDS, seed=seed)
    found = beam_search(model, [1], width=200, n_best=6, max_words=4, length_power=length_power)[0]
    every = every_sentence(model, 1, 4)
    ranked = sorted(every, key=lambda words: -every[words][0] / every[words][1] ** length_power)
    assert [sentence.words for sentence in found] == ranked[:6]
    for sentence in found:
        total, n_words = every[sentence.words]
        assert sentence.log_probability == pytest.approx(total, abs=1e-5)
        assert sentence.score == pytest.approx(total / n_words**length_power, abs=1e-5)


def test_width_1_takes_the_likeliest_word_at_each_step():
    model = TableModel(WORDS, seed=1)
    for item in range(20):
        words, read = [], (item, 0)
        for _ in range(6):
            logs = model.log_histogram(read)
            logs[model.vocabulary.unknown_index] = -np.inf
            word = int(np.argmax(logs))
            if word == model.vocabulary.end_index:
                break
            words.append(word)
            read = (*read, word)
        found = beam_search(model, [item], width=1, max_words=6)[0][0]
        assert found.words == tuple(model.vocabulary.decode(words))


def test_no_sentence_is_likelier_than_the_search_says_and_wider_beams_rarely_lose():
    model = TableModel(WORDS, seed=2)
    gains = []
    for item in range(20):
        narrow, wide = (
            beam_search(model, [item], width=w, max_words=4)[0][0].log_probability for w in (1, 9)
        )
        best = max(total for total, _ in every_sentence(model, item, 4).values())
        assert wide <= best + 1e-5
        gains.append(wide - narrow)
    assert np.mean(gains) > 0.1


MANNERS = [
    {},
    {"n_best": 3, "length_power": 1.0},
    {"n_samples": 2, "seed": 5},
    {"width": 4, "n_groups": 2, "diversity": 0.7, "n_best": 4},
]


@pytest.mark.parametrize("manner", MANNERS)
def test_a_batch_gives_what_its_items_give_alone_in_any_order(manner):
    model = TableModel(WORDS, seed=3)
    batch = beam_search(model, ITEMS, **manner)
    assert batch == [beam_search(model, [item], **manner)[0] for item in ITEMS]
    assert batch[::-1] == beam_search(model, ITEMS[::-1], **manner)


def test_a_randomised_search_is_its_seeds_and_other_seeds_find_others():
    model = TableModel(WORDS, seed=4)
    options = {"width": 2, "n_samples": 1, "max_words": 8}
    runs = [texts(beam_search(model, ITEMS, seed=seed, **options)) for seed in range(5)]
    assert runs[0] == texts(beam_search(model, ITEMS, seed=0, **options))
    assert len({str(run) for run in runs}) > 1


def test_sampled_first_words_follow_the_histogram():
    model = TableModel(WORDS, seed=6)
    histogram = np.exp(model.log_histogram((1, 0)))
    histogram[model.vocabulary.unknown_index] = 0
    histogram /= histogram.sum()
    n_draws = 1500
    counts = np.zeros(len(WORDS))
    for seed in range(n_draws):
        sentence = beam_search(model, [1], width=1, n_samples=1, max_words=1, seed=seed)[0][0]
        counts[model.vocabulary.index(sentence.words[0] if sentence.words else "<end>")] += 1
    error = np.sqrt(histogram * (1 - histogram) / n_draws)
    assert (np.abs(counts / n_draws - histogram) <= 4 * error + 1e-9).all()


def test_sampling_every_word_is_the_plain_search():
    model = TableModel(WORDS, seed=8)
    plain = beam_search(model, ITEMS, width=3, max_words=5)
    assert beam_search(model, ITEMS, width=3, max_words=5, n_samples=len(WORDS)) == plain


def test_groups_that_pay_for_repetition_differ_in_their_first_word():
    model = TableModel(WORDS, seed=9, sharpness=4.0)
    options = {"width": 3, "n_groups": 3, "n_best": 3, "max_words": 5}
    same = beam_search(model, [1], **options, diversity=0.0)[0]
    assert len(same) == 1  # three times the same sentence
    apart = beam_search(model, [1], **options, diversity=100.0)[0]
    firsts = {sentence.words[:1] for sentence in apart}
    assert len(firsts) == 3


def test_one_group_with_a_price_is_the_plain_search():
    model = TableModel(WORDS, seed=10)
    assert beam_search(model, ITEMS, diversity=5.0) == beam_search(model, ITEMS)


def test_start_and_unknown_are_never_generated_unless_asked_for():
    model = TableModel(["<start>", "<end>", "<unk>"], seed=0)
    assert all(not s.words for item in beam_search(model, range(10)) for s in item)
    with_unknown = beam_search(model, range(10), allow_unknown=True)
    assert any("<unk>" in s.words for item in with_unknown for s in item)


def test_sentences_that_are_cut_off_say_so():
    model = TableModel(WORDS, seed=3)
    sentences = [s for item in beam_search(model, range(10), max_words=2) for s in item]
    assert {s.is_finished for s in sentences} == {True, False}
    assert all(len(s.words) == 2 for s in sentences if not s.is_finished)
    assert all(len(s.words) < 2 for s in sentences if s.is_finished)


def test_no_items_give_no_sentences():
    assert beam_search(TableModel(WORDS), []) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_best": 9}, "`n_best` must be at most `width`, 5; got 9"),
        ({"n_groups": 2}, "`width` must be a multiple of `n_groups`, 2; got 5"),
        ({"width": 0}, "`width` must be at least 1"),
        ({"length_power": -1}, "`length_power` must be finite and at least 0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        beam_search(TableModel(WORDS), [1], **options)


def test_each_item_may_have_a_seed_of_its_own():
    model = TableModel(WORDS, seed=3)
    same = beam_search(model, [1] * 6, n_samples=1, width=1, seed=4)
    assert len({sentences[0].words for sentences in same}) == 1
    seeds = [[4, number] for number in range(6)]
    found = texts(beam_search(model, [1] * 6, n_samples=1, width=1, seed=seeds))
    assert len({words for [words] in found}) > 1
    assert texts(beam_search(model, [1], n_samples=1, width=1, seed=seeds[5:])) == found[5:]
    with pytest.raises(InvalidInputError, match="one for each of 6 items; got 2"):
        beam_search(model, [1] * 6, n_samples=1, seed=[0, 1])
    with pytest.raises(InvalidInputError, match="`seed` must be at least 0; got -1"):
        beam_search(model, [1], n_samples=1, seed=[[0, -1]])


class Strange(TableModel):
    """Says the same whatever it has read."""

    def __init__(self, histogram):
        super().__init__(WORDS)
        self._histogram = np.array(histogram)

    def log_histogram(self, read):
        with np.errstate(divide="ignore"):
            return np.log(self._histogram)


def test_a_model_that_says_nothing_possible_is_an_error():
    with pytest.raises(InvalidInputError, match="some word must be possible; none is after the st"):
        beam_search(Strange([0, 0, 1, 0, 0, 0]), [1])
    assert beam_search(Strange([0, 0, 1, 0, 0, 0]), [1], allow_unknown=True, max_words=2)
    with pytest.raises(InvalidInputError, match="must be numbers or -inf; the model gave nan"):
        beam_search(Strange([0, 0.5, np.nan, 0.5, 0, 0]), [1])


def test_there_are_fewer_sentences_where_words_run_out():
    [found] = beam_search(Strange([0, 1, 0, 0, 0, 0]), [1], n_best=3)
    assert [sentence.words for sentence in found] == [()]
