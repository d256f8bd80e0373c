"""Training captioners: objectives by hand, and trainings that were killed."""

import dataclasses

import numpy as np
import pytest

from paper.captioners.recipes import RECIPES, Recipe
from paper.data.captions import CaptionsData, load_caption_words, load_captions
from wassemble import InvalidInputError

torch = pytest.importorskip("torch")

from paper.captioners import training  # noqa: E402
from paper.captioners.concepts import N_CONCEPTS, ConceptSpace  # noqa: E402
from paper.captioners.network import CaptionerNetwork  # noqa: E402
from paper.captioners.texts import Texts  # noqa: E402
from paper.captioners.training import (  # noqa: E402
    MAX_LENGTH,
    TrainingData,
    generate,
    imitation_loss,
    sampled_loss,
    self_critical_loss,
    train_captioner,
)
from wassemble.text.vocabulary import Vocabulary  # noqa: E402

RECIPE = Recipe("little", seed=3, n_units=8, n_embedding=6, n_frequent=30, max_epochs=3, patience=9)
WORDS = Vocabulary(["<end>", "<unk>", "a", "cat", "dog"])


@pytest.fixture(scope="module")
def data():
    def first(split, n_images):
        whole = load_captions(split)
        rows = slice(n_images)
        return CaptionsData(whole.image_ids[rows], whole.features[rows], whole.captions[rows])

    words, embeddings = load_caption_words()
    return TrainingData(first("train", 45), first("val", 20), words, embeddings)


@pytest.fixture
def network():
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return CaptionerNetwork(
            len(WORDS), n_features=3, n_units=8, n_embedding=6, dropout=0.0
        ).eval()


@pytest.fixture
def features(rng):
    return torch.from_numpy(rng.normal(size=(4, 2, 3)).astype(np.float32))


def log_probability(network, features, words):
    """Of each word of one caption and its end, step by step."""
    state, found, last = network.start(features[None]), [], WORDS.start_index
    for word in [*WORDS.encode(words), WORDS.end_index]:
        summary, state = network.step(state, torch.tensor([last]))
        found.append(network.logits(summary).log_softmax(dim=1)[0, word].item())
        last = int(word)
    return found


def test_imitation_loss_is_the_mean_over_the_words_that_the_captioner_has(network, features):
    captions = [["a", "cat"], [], ["a", "lynx", "cat", "dog"], ["dog"]]
    loss = imitation_loss(network, WORDS, features, captions)
    known = [
        value
        for row, words in zip(features, captions, strict=True)
        for word, value in zip([*words, "<end>"], log_probability(network, row, words), strict=True)
        if word != "lynx"
    ]
    assert loss.item() == pytest.approx(-np.mean(known), rel=1e-5)


def test_sampled_loss_of_all_words_is_the_imitation_loss(network, features):
    captions = [["a", "cat"], [], ["a", "lynx", "cat", "dog"], ["dog"]]
    found = sampled_loss(network, WORDS, features, captions)
    assert found.item() == imitation_loss(network, WORDS, features, captions).item()


def test_words_that_are_drawn_stand_for_the_rest(network, features, monkeypatch):
    """One word is to be said: how unlikely it is, is right in the mean over what may be drawn."""
    monkeypatch.setattr(training, "N_COMMON", 1)
    monkeypatch.setattr(training, "N_DRAWN", 1)
    drawn = set()
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        for _ in range(100):
            drawn.add(round(sampled_loss(network, WORDS, features[:1], [[]]).exp().item(), 4))
    assert len(drawn) == 4  # the words beside the end
    exact = imitation_loss(network, WORDS, features[:1], [[]]).exp().item()
    assert np.mean(list(drawn)) == pytest.approx(exact, rel=1e-3)


def test_a_long_caption_is_cut_and_ended(network, features):
    long = ["cat"] * (MAX_LENGTH + 5)
    first = imitation_loss(network, WORDS, features[:1], [long])
    second = imitation_loss(network, WORDS, features[:1], [long[:MAX_LENGTH]])
    assert first.item() == second.item()


def test_the_likeliest_words_are_those_of_each_step(network, features):
    for row, caption in zip(features, generate(network, WORDS, features), strict=True):
        state, said, last = network.start(row[None]), [], WORDS.start_index
        while len(said) < MAX_LENGTH:
            summary, state = network.step(state, torch.tensor([last]))
            logits = network.logits(summary)[0]
            logits[WORDS.unknown_index] = -np.inf
            last = int(logits.argmax())
            if last == WORDS.end_index:
                break
            said.append(WORDS.words[last])
        assert caption == said


def test_captions_that_score_alike_teach_nothing(network, features):
    loss = self_critical_loss(network, WORDS, features, lambda row, caption: 2.5)
    assert loss.item() == 0


def test_what_scores_well_becomes_likelier(network, features):
    """Two rows are praised for cats, two for dogs; each learns its own."""
    wanted = ["cat", "dog", "dog", "cat"]

    def score(row, caption):
        return float(caption[0] == wanted[row])

    def praised():
        rows = zip(features, wanted, strict=True)
        return [np.exp(log_probability(network, row, [word])[0]) for row, word in rows]

    before = praised()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.005)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(1)
        for _ in range(100):
            optimizer.zero_grad()
            self_critical_loss(network, WORDS, features, score).backward()
            optimizer.step()
    assert max(before) < 0.5
    assert min(praised()) > 0.8


def test_a_drawn_caption_is_scored_with_its_end(network, features):
    seen = []
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        self_critical_loss(
            network, WORDS, features, lambda row, caption: seen.append(caption) or 0.0
        )
    assert len(seen) == 20
    assert all(caption[-1] == "<end>" or len(caption) == MAX_LENGTH for caption in seen)
    assert not any("<unk>" in caption for caption in seen)


@pytest.mark.parametrize("objective", [{}, {"begin_from": "first"}])
def test_a_killed_training_ends_as_one_that_was_not(data, tmp_path, objective):
    recipe = dataclasses.replace(RECIPE, **objective)
    folders = [tmp_path / "whole", tmp_path / "killed"]
    for folder in folders:
        if objective:
            train_captioner(dataclasses.replace(RECIPE, name="first", max_epochs=1), data, folder)
    whole = train_captioner(recipe, data, folders[0])

    def stop(done, n_batches):
        assert n_batches == 9
        if done == 5:  # in the middle of the second epoch
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_captioner(recipe, data, folders[1], progress=stop)
    assert not (folders[1] / "little.npz").exists()
    told = []
    resumed = train_captioner(recipe, data, folders[1], tell=told.append)
    assert [epoch.number for epoch in told] == [2, 3]
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[name]), name
    assert not list(folders[1].glob("*checkpoint*"))


def test_what_is_done_is_read_and_another_recipe_is_refused(data, tmp_path):
    recipe = dataclasses.replace(RECIPE, max_epochs=1)
    train_captioner(recipe, data, tmp_path)

    def never(*_):
        raise AssertionError("trained again")

    train_captioner(recipe, data, tmp_path, progress=never)
    other = dataclasses.replace(recipe, dropout=0.1)
    with pytest.raises(InvalidInputError, match=r"got dropout 0.4 in place of 0.1"):
        train_captioner(other, data, tmp_path)


def test_training_stops_when_validation_gets_no_better(data, tmp_path, monkeypatch):
    scores = iter([0.1, 0.5, 0.4, 0.3, 0.9])
    monkeypatch.setattr(
        "paper.captioners.training._Training._validate", lambda training: next(scores)
    )
    recipe = dataclasses.replace(RECIPE, max_epochs=9, patience=2)
    captioner = train_captioner(recipe, data, tmp_path)
    epochs = [epoch["validation_cider"] for epoch in captioner.account["epochs"]]
    assert epochs == [0.1, 0.5, 0.4, 0.3]


@pytest.fixture(scope="module")
def texts(data):
    """The same captions as texts, in a concept space by chance."""
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(100, N_CONCEPTS)).astype(np.float32)
    space = ConceptSpace(data.words[:100], np.zeros(100), axes)
    true = space.place_captions(data.train.captions)
    return Texts(data.train.captions, space, true, true)


def test_a_captioner_learns_from_texts_and_goes_on_with_drawn_captions(data, texts, tmp_path):
    def with_concepts(split, n_images):
        whole = load_captions(split, with_concepts=True)
        rows = slice(n_images)
        return CaptionsData(whole.image_ids[rows], whole.features[rows], whole.captions[rows])

    train, validation = with_concepts("train", 45), with_concepts("val", 20)
    told = dataclasses.replace(data, train=train, validation=validation, texts=texts)
    blind = dataclasses.replace(RECIPE, name="blind", is_blind=True)
    first = train_captioner(blind, told, tmp_path)
    losses = [epoch["loss"] for epoch in first.account["epochs"]]
    assert losses[-1] < losses[0]
    second = train_captioner(
        dataclasses.replace(blind, name="second", begin_from="blind", max_epochs=1), told, tmp_path
    )
    words = "words.weight"
    assert not torch.equal(second.network.state_dict()[words], first.network.state_dict()[words])
    assert not cells_matter(second, validation.features[:1])


def cells_matter(captioner, features):
    """Whether the first word depends on what is not a concept."""
    start = np.array([captioner.vocabulary.start_index])
    hidden = features.copy()
    hidden[:, :-2] = 0
    first, second = (captioner.step(captioner.start(x), start)[0] for x in (features, hidden))
    return not np.array_equal(first, second)


def test_places_are_drawn_as_often_as_they_are_likely():
    chances = torch.tensor([0.0, 0.2, 0.0, 0.8, 0.0]).expand(4000, -1)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        counts = torch.bincount(training._draw(chances), minlength=5) / 4000
    np.testing.assert_allclose(counts, [0, 0.2, 0, 0.8, 0], atol=0.02)


def test_only_the_first_words_are_drawn_if_so_asked(network, features):
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        said = generate(network, WORDS, features.repeat(10, 1, 1), is_random=True, n_words=4)
    assert {word for caption in said for word in caption} == {"a", "cat"}


def test_a_self_critical_captioner_is_not_a_copy_of_the_one_it_begins_from(
    data, tmp_path, monkeypatch
):
    first = train_captioner(dataclasses.replace(RECIPE, name="first", max_epochs=1), data, tmp_path)
    monkeypatch.setattr("paper.captioners.training._Training._validate", lambda training: 0.0)
    recipe = dataclasses.replace(RECIPE, begin_from="first", max_epochs=1)
    trained = train_captioner(recipe, data, tmp_path)
    words = "words.weight"
    assert not torch.equal(trained.network.state_dict()[words], first.network.state_dict()[words])


def test_the_captioner_to_begin_from_must_be_there(data, tmp_path):
    recipe = dataclasses.replace(RECIPE, begin_from="first")
    with pytest.raises(InvalidInputError, match=r"(?s)first.npz: must be there.*train 'first'"):
        train_captioner(recipe, data, tmp_path)


def test_vocabularies_are_what_their_recipes_say():
    words, _ = load_caption_words()
    whole = set(RECIPES["cross-entropy"].choose_words(words).words)
    frequent = RECIPES["frequent-words"].choose_words(words)
    missing = set(RECIPES["missing-words"].choose_words(words).words)
    assert whole == {"<end>", "<unk>", *words}
    assert tuple(frequent.words)[2:] == words[:1200]
    assert {"<end>", "<unk>", *words[:100]} <= missing < whole
    assert len(missing) / len(whole) == pytest.approx(0.8, abs=0.03)
