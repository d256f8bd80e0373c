"""Several models as one: what a fused step says, and what it leaves alone."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import KNOBS, solve_with
from text.tables import TableModel

import wassemble as ws
from wassemble.solvers.barycenter import solve
from wassemble.text import FusedNextWord, NGramModel, beam_search, explain_sentence, steps

WORDS = ["<start>", "<end>", "<unk>", "a", "cat", "kitten", "dog", "2"]
MOVING = [3, 4, 5, 6]
CONTEXT = [1, 2, 3]


def similar(seed=0):
    """A symmetric kernel over every word: what must not move is none of its business."""
    points = np.random.default_rng(seed).normal(size=(len(WORDS), 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    return ws.kernels.DenseKernel(np.exp(-distances), symmetric=True)


def models(n_models=3, words=WORDS):
    return [TableModel(words, seed=seed) for seed in range(n_models)]


def first_step(model, context=CONTEXT):
    state = model.start(context)
    return model.step(state, np.full(len(context), model.vocabulary.start_index))


def histograms(parts, context=CONTEXT):
    return [np.exp(first_step(part, context)[0].astype(np.float64))[:, 1:] for part in parts]


def apart(kernel):
    """The kernel over all words but the first, with islands, written down by hand."""
    table = np.eye(len(WORDS))
    table[np.ix_(MOVING, MOVING)] = kernel.to_dense()[np.ix_(MOVING, MOVING)]
    return ws.kernels.DenseKernel(table[1:, 1:], symmetric=True)


BARYCENTER = ws.Barycenter(max_sweeps=200, tolerance=1e-4)


def fused_with(parts, **options):
    """`FusedNextWord` with the options of its barycenter and its own, mixed."""
    knobs = {name: options.pop(name) for name in KNOBS[:4] if name in options}
    if knobs:
        options["rule"] = replace(BARYCENTER, **knobs)
    return FusedNextWord(parts, **options)


def normalised(p):
    return p / p.sum(axis=1, keepdims=True)


WEIGHTS = [0.5, 0.3, 0.2]


@pytest.mark.parametrize("rule", [ws.ARITHMETIC, ws.GEOMETRIC])
def test_means_are_those_of_the_histograms(rule):
    parts = models()
    logs, _ = first_step(FusedNextWord(parts, rule=rule, weights=WEIGHTS))
    expected = normalised(rule.fuse(histograms(parts), weights=WEIGHTS).scores)
    np.testing.assert_allclose(np.exp(logs)[:, 1:], expected, rtol=1e-5)
    assert (logs[:, 0] == -np.inf).all()
    assert logs.dtype == np.float32


@pytest.mark.parametrize(
    "options",
    [{}, {"mass": ws.Unbalanced(2.0, epsilon=0.5)}, {"debias": True}],
    ids=["balanced", "unbalanced", "debiased"],
)
def test_barycenters_are_those_of_the_solver(options):
    parts, kernel = models(), similar()
    fused = fused_with(
        parts, kernel=kernel, weights=WEIGHTS, tolerance=1e-6, max_sweeps=5000, **options
    )
    logs, _ = first_step(fused)
    result = solve_with(
        histograms(parts),
        apart(kernel),
        weights=WEIGHTS,
        normalize=True,
        tolerance=1e-10,
        max_sweeps=50_000,
        **options,
    )
    assert fused.account.n_converged == 3
    np.testing.assert_allclose(np.exp(logs)[:, 1:], normalised(result.barycenter), atol=2e-5)


@pytest.mark.parametrize("n_sweeps", [1, 5])
@pytest.mark.parametrize("mass", [ws.Balanced(), ws.Unbalanced(2.0, epsilon=0.5)])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_fixed_number_of_sweeps_is_that_of_the_algorithm(n_sweeps, mass, is_sparse):
    """Also on words that keep to themselves, and on components with different masses."""
    parts, kernel = models(), similar()
    if is_sparse:  # two components, (a, cat) and (kitten, dog)
        table = np.kron(np.eye(2), [[1.0, 0.4], [0.4, 1.0]])
        whole = np.eye(8)
        whole[np.ix_(MOVING, MOVING)] = table
        kernel = ws.kernels.SparseKernel(sp.csr_array(whole), symmetric=True)
    options = {"weights": WEIGHTS, "mass": mass, "max_sweeps": n_sweeps, "tolerance": None}
    logs, _ = first_step(fused_with(parts, kernel=kernel, **options))
    result = solve_with(histograms(parts), apart(kernel), normalize=True, **options)
    np.testing.assert_allclose(np.exp(logs)[:, 1:], normalised(result.barycenter), atol=2e-6)


class Mute(TableModel):
    """Never says the unknown word."""

    def log_histogram(self, read):
        logs = super().log_histogram(read)
        logs[self.vocabulary.unknown_index] = -np.inf
        return logs - np.logaddexp.reduce(logs)


def test_a_word_that_is_never_said_leaves_the_sweeps_in_plain_arithmetic(monkeypatch):
    parts = [Mute(WORDS, seed=seed) for seed in range(3)]
    kernel = ws.kernels.SparseKernel(sp.csr_array(similar().to_dense()))
    n_log_rows = []

    def watched(problem, **options):
        result = solve(problem, **options)
        n_log_rows.append(result.n_log_rows)
        return result

    monkeypatch.setattr(steps, "solve", watched)
    logs, _ = first_step(fused_with(parts, kernel=kernel, max_sweeps=5, tolerance=None))
    assert n_log_rows == [0]
    assert (logs[:, WORDS.index("<unk>")] == -np.inf).all()
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-5)


def test_one_model_without_a_kernel_is_itself():
    part = models(1)[0]
    logs, _ = first_step(FusedNextWord([part]))
    np.testing.assert_allclose(logs, first_step(part)[0], rtol=1e-5)


def test_the_end_is_not_smeared():
    """However similar words are, the end has its own geometric mean relative to the digit."""
    parts = models()
    logs, _ = first_step(fused_with(parts, kernel=np.ones((8, 8)), tolerance=1e-6))
    own = np.mean([np.log(h) for h in histograms(parts)], axis=0)
    end, digit = 0, 6
    np.testing.assert_allclose(logs[:, 1] - logs[:, 7], own[:, end] - own[:, digit], atol=1e-4)


def test_a_search_does_not_know_that_there_are_several():
    part = models(1)[0]
    alone = beam_search(part, CONTEXT, n_best=3)
    fused = beam_search(FusedNextWord([part, part]), CONTEXT, n_best=3)
    assert [[s.words for s in item] for item in fused] == [[s.words for s in i] for i in alone]


@pytest.mark.parametrize("options", [{}, {"n_top": 3}, {"n_top": 3, "warm_start": True}])
def test_a_batch_gives_what_its_items_give_alone(options):
    fused = fused_with(models(), kernel=similar(), **options)
    batch = beam_search(fused, CONTEXT, width=3)
    alone = [beam_search(fused, [item], width=3)[0] for item in CONTEXT]
    for together, by_itself in zip(batch, alone, strict=True):
        assert together[0].words == by_itself[0].words
        assert together[0].score == pytest.approx(by_itself[0].score, abs=1e-3)


@pytest.mark.parametrize("kernel", [similar(), None], ids=["dense", "identity"])
def test_warm_starts_change_no_converged_answer(kernel):
    options = {"kernel": kernel, "tolerance": 1e-6, "max_sweeps": 5000}
    runs = []
    for warm_start in (False, True):
        fused = fused_with(models(), warm_start=warm_start, **options)
        _, state = first_step(fused)
        state = fused.reorder(state, np.array([2, 0, 0, 1]))
        logs, _ = fused.step(state, np.array([3, 4, 5, 6]))
        assert fused.account.n_converged == fused.account.n_rows == 7
        assert (state.log_v is not None) == warm_start
        runs.append(np.exp(logs))
    np.testing.assert_allclose(runs[0], runs[1], atol=2e-5)


def test_reordered_rows_keep_their_item_and_their_scalings():
    fused = FusedNextWord(models(), kernel=similar(), warm_start=True)
    _, state = first_step(fused)
    rows = np.array([2, 0, 0, 1])
    again = fused.reorder(state, rows)
    np.testing.assert_array_equal(again.items, rows)
    np.testing.assert_array_equal(again.log_v, state.log_v[:, rows])


def test_unfinished_sentences_of_one_item_share_their_top_words():
    fused = FusedNextWord(models(), n_top=3)
    _, state = first_step(fused)
    logs, _ = fused.step(fused.reorder(state, np.array([0, 0, 1])), np.array([3, 4, 3]))
    possible = logs > -np.inf
    np.testing.assert_array_equal(possible[0], possible[1])
    assert (possible.sum(axis=1) == 3).all()


def test_scalings_of_words_that_keep_to_themselves_do_not_grow():
    fused = fused_with(models(), kernel=similar(), tolerance=1e-6, warm_start=True)
    _, state = first_step(fused)
    np.testing.assert_allclose(state.log_v[:, :, [1, 2, 7]], 0, atol=1e-4)


def test_a_warm_start_at_the_answer_needs_one_look():
    fused = fused_with(models(), kernel=similar(), tolerance=1e-4)
    logs = [first_step(part)[0] for part in models()]
    items = np.arange(3)
    cold = fused.fusion.fuse(logs, items, keep_scalings=True)
    warm = fused.fusion.fuse(logs, items, cold.log_v)
    assert (warm.n_sweeps <= 2).all()
    assert (cold.n_sweeps > 2).all()


def test_every_word_among_the_top_words_is_no_truncation():
    whole, _ = first_step(FusedNextWord(models(), kernel=similar()))
    cut, _ = first_step(FusedNextWord(models(), kernel=similar(), n_top=7))
    np.testing.assert_allclose(whole, cut, rtol=1e-6)


def test_top_words_are_the_likeliest_of_any_model_and_the_rest_is_reported():
    parts = models()
    fused = FusedNextWord(parts, kernel=similar(), n_top=4)
    logs, _ = first_step(fused)
    every = histograms(parts)
    dropped = []
    for row in range(3):
        best = np.max([h[row] for h in every], axis=0)
        top = np.union1d(np.argsort(-best)[:4], 0)  # the end always takes part
        np.testing.assert_array_equal(np.flatnonzero(logs[row] > -np.inf), top + 1)
        dropped.append(max(1 - h[row, top].sum() for h in every))
    assert fused.account.most_dropped == pytest.approx(max(dropped), abs=1e-6)
    assert fused.account.mean_dropped == pytest.approx(np.mean(dropped), abs=1e-6)
    assert (np.exp(logs).sum(axis=1) < 1).all()  # the others keep their share


MANY = ["<end>", *(f"word{chr(97 + i)}" for i in range(12))]


@pytest.mark.parametrize("rule", [ws.ARITHMETIC, ws.GEOMETRIC, BARYCENTER])
def test_truncation_changes_no_word_that_keeps_to_itself(rule):
    parts = [TableModel(MANY, seed=seed) for seed in range(3)]
    whole, _ = first_step(FusedNextWord(parts, rule=rule))
    cut, _ = first_step(FusedNextWord(parts, rule=rule, n_top=5))
    is_said = cut > -np.inf
    assert (is_said.sum(axis=1) == 5).all()
    np.testing.assert_allclose(cut[is_said], whole[is_said], rtol=1e-5)


@pytest.mark.parametrize("options", [{}, {"debias": True}, {"rule": ws.ARITHMETIC}])
def test_truncation_never_keeps_a_sentence_from_ending(options):
    class Unlikely(TableModel):
        def log_histogram(self, read):
            return np.log(np.r_[0.04, np.full(12, 0.08)])  # the end is the least likely word

    kernel = ws.kernels.DenseKernel(np.full((13, 13), 0.3) + 0.7 * np.eye(13), symmetric=True)
    fused = fused_with([Unlikely(MANY), Unlikely(MANY)], kernel=kernel, n_top=5, **options)
    logs, _ = first_step(fused)
    assert (logs[:, 0] > np.log(0.03)).all()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_others_count_as_one_word_that_is_as_similar_as_all_of_them(is_sparse):
    """Where all words are alike the first sweep says the same as without truncation."""
    parts = [TableModel(MANY, seed=seed) for seed in range(3)]
    table = np.full((13, 13), 0.3) + 0.7 * np.eye(13)
    kernel = (
        ws.kernels.SparseKernel(sp.csr_array(table)) if is_sparse else ws.kernels.DenseKernel(table)
    )
    options = {"kernel": kernel, "max_sweeps": 1, "tolerance": None}
    whole, _ = first_step(fused_with(parts, **options))
    cut, _ = first_step(fused_with(parts, n_top=5, **options))
    for before, after in zip(whole, cut, strict=True):
        joined = np.flatnonzero(after[1:] > -np.inf) + 1
        change = after[joined] - before[joined]
        np.testing.assert_allclose(change, change[0], atol=1e-5)
        assert abs(change[0]) < 0.2


def test_top_words_of_a_dense_kernel_converge_where_neighbours_alone_cannot():
    """Mass that may only step to a neighbour does not reach what another model is sure of."""
    parts = [TableModel(MANY, seed=seed, sharpness=4.0) for seed in range(3)]
    steps = np.abs(np.subtract.outer(np.arange(13), np.arange(13)))
    near = ws.kernels.SparseKernel(sp.csr_array(np.where(steps <= 1, np.exp(-steps), 0)))
    dense = ws.kernels.DenseKernel(np.exp(-steps.astype(float)))
    few, many = (FusedNextWord(parts, kernel=kernel, n_top=9) for kernel in (near, dense))
    for fused in (few, many):
        first_step(fused)
    assert few.account.n_converged < few.account.n_rows == 3
    assert many.account.n_converged == 3
    loose = fused_with(parts, kernel=near, n_top=9, mass=ws.Unbalanced(1.0, epsilon=1.0))
    first_step(loose)
    assert loose.account.n_converged == 3


# -- vocabularies that differ ----------------------------------------------------------

OTHER = ["dog", "lynx", "</s>", "a", "<s>", "<unk>"]


class OtherModel(TableModel):
    def __init__(self, seed):
        super().__init__(["<end>", "x"], seed=seed)
        self.vocabulary = ws.text.Vocabulary(OTHER, start="<s>", end="</s>")


def test_words_of_all_models_are_the_words_of_the_consensus():
    fused = FusedNextWord([models(1)[0], OtherModel(5)])
    assert list(fused.vocabulary.words) == [*WORDS, "lynx"]
    assert fused.vocabulary.end == "<end>"


@pytest.mark.parametrize("rule", [ws.ARITHMETIC, ws.GEOMETRIC, BARYCENTER])
def test_on_words_that_a_model_does_not_know_the_others_decide(rule):
    parts = [models(1)[0], OtherModel(5)]
    logs, _ = first_step(FusedNextWord(parts, rule=rule))
    first, second = (np.exp(first_step(part)[0].astype(np.float64)) for part in parts)
    p = np.exp(logs)
    ratio = p[:, 8] / p[:, 4]  # the lynx, which the second knows; the cat, which the first does
    np.testing.assert_allclose(ratio, second[:, 1] / first[:, 4], rtol=1e-3)
    mean = ws.ARITHMETIC if rule is ws.ARITHMETIC else ws.GEOMETRIC
    dog = mean.fuse([first[:, 6:7], second[:, 0:1]]).scores[:, 0]
    np.testing.assert_allclose(p[:, 6] / p[:, 4], dog / first[:, 4], rtol=1e-3)


@pytest.mark.parametrize("rule", [ws.GEOMETRIC, BARYCENTER])
def test_on_words_that_one_models_kernel_does_not_reach_the_others_decide(rule):
    words = ["<end>", "cat", "dog"]
    parts = [TableModel(words, seed=seed) for seed in range(2)]
    to_cats = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]], dtype=float)
    fused = FusedNextWord(parts, kernel=[np.eye(3), to_cats], rule=rule)
    logs, _ = first_step(fused)
    assert (logs[:, 2] > -6).all()


@pytest.mark.parametrize("kernel_type", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("rule", [ws.ARITHMETIC, BARYCENTER])
def test_a_word_that_leads_nowhere_is_dropped_and_said(rule, kernel_type):
    parts = models(2, ["<start>", "<end>", "cat", "dog", "lynx", "wolf", "thing"])
    kernel = np.zeros((7, 7))
    kernel[2:6, 2:6] = np.kron(np.eye(2), [[1, 0.5], [0.5, 1]])  # two components
    fused = FusedNextWord(parts, kernel=kernel_type(kernel), rule=rule)
    logs, _ = first_step(fused)
    assert (logs[:, 6] == -np.inf).all()
    assert (logs[:, 1:6] > -np.inf).all()
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-5)
    lost = max(histogram[:, -1].max() for histogram in histograms(parts))
    assert fused.account.most_dropped == pytest.approx(lost, rel=1e-4)


def test_every_model_starts_with_its_own_start_whoever_is_first():
    texts = [["a", "bone"], ["a", "bone"], ["the", "bone"]]
    starts = NGramModel.fit(texts, order=2)

    class WithoutStart(TableModel):
        def log_histogram(self, read):
            return np.log(np.array([0.2, 0.4, 0.2, 0.1, 0.1]))

    plain = WithoutStart(["<end>", "a", "the", "bone", "<unk>"])
    first_words = []
    for both in ([starts, plain], [plain, starts]):
        fused = FusedNextWord(both)
        logs, _ = fused.step(fused.start([0]), np.array([fused.vocabulary.start_index]))
        names = fused.vocabulary.words
        first_words.append([logs[0, names.place(word)] for word in ("a", "the", "bone")])
    np.testing.assert_allclose(*first_words, rtol=1e-5)


@pytest.mark.parametrize("n_sweeps", [1, 5])
def test_vocabularies_that_differ_are_fused_as_the_solver_does(n_sweeps):
    """Weights by word, kernels that are not square, words that keep to themselves."""
    parts = [models(1)[0], OtherModel(5)]
    lynx = ws.LabelledKernel(
        ws.kernels.DenseKernel([[1.0, 0.9], [0.2, 0.1]]), ["cat", "dog"], ["cat", "lynx"], "by hand"
    )
    options = {"max_sweeps": n_sweeps, "tolerance": None}
    fused = fused_with(parts, kernel=[lynx, None], **options)
    logs, _ = first_step(fused)
    target = list(fused.vocabulary.words)[1:]
    first, second = (np.exp(first_step(part)[0].astype(np.float64)) for part in parts)
    sources = [WORDS[1:], ["dog", "lynx", "<end>", "a", "<unk>"]]
    kernels = [np.array([[float(a == b) for b in target] for a in own]) for own in sources]
    at = target.index
    kernels[0][WORDS.index("cat") - 1, at("lynx")] = 0.9
    kernels[0][WORDS.index("dog") - 1, [at("cat"), at("lynx")]] = [0.2, 0.1]
    reached = np.array([kernel.sum(axis=0) > 0 for kernel in kernels])
    result = solve_with(
        [first[:, 1:], second[:, [0, 1, 2, 3, 5]]],
        kernels,
        weights=reached / reached.sum(axis=0),
        normalize=True,
        **options,
    )
    np.testing.assert_allclose(np.exp(logs)[:, 1:], normalised(result.barycenter), atol=1e-5)


@pytest.mark.parametrize("kind", [ws.kernels.DenseKernel, ws.kernels.LowRankKernel, "sparse"])
def test_weights_by_word_go_with_every_kind_of_kernel(kind):
    weights = np.full((3, 8), 1 / 3)
    weights[:, 4] = [0.8, 0.1, 0.1]
    factor = np.random.default_rng(3).uniform(0.1, 1, size=(8, 3))
    table = factor @ factor.T
    kernel = (
        ws.kernels.SparseKernel(sp.csr_array(table))
        if kind == "sparse"
        else ws.kernels.DenseKernel(table)
    )
    if kind is ws.kernels.LowRankKernel:
        kernel = ws.kernels.LowRankKernel(factor)
    options = {"max_sweeps": 5, "tolerance": None}
    logs, _ = first_step(fused_with(models(), kernel=kernel, weights=weights, **options))
    result = solve_with(
        histograms(models()),
        apart(ws.kernels.DenseKernel(table)),
        weights=weights[:, 1:],
        normalize=True,
        **options,
    )
    np.testing.assert_allclose(np.exp(logs)[:, 1:], normalised(result.barycenter), atol=1e-5)


def test_a_model_reads_the_most_similar_of_its_words():
    kernel = ws.LabelledKernel(
        ws.kernels.DenseKernel([[1.0, 0.9], [0.2, 0.1]]), ["cat", "dog"], ["cat", "lynx"], "by hand"
    )
    first = models(1)[0]
    fused = FusedNextWord([first, OtherModel(5)], kernel=[kernel, None])
    _, state = first_step(fused)
    _, state = fused.step(state, np.full(3, fused.vocabulary.index("lynx")))
    assert [read[-1] for read in state.states[0]] == [first.vocabulary.index("cat")] * 3
    assert [read[-1] for read in state.states[1]] == [OTHER.index("lynx")] * 3


def test_top_words_of_different_vocabularies_are_found_through_the_kernels():
    parts = [models(1)[0], OtherModel(5)]
    fused = FusedNextWord(parts, n_top=4, rule=ws.ARITHMETIC)
    logs, _ = first_step(fused)
    assert set((logs > -np.inf).sum(axis=1)) <= {4, 5}  # with the end
    assert 0 < fused.account.most_dropped < 1


# -- explanations ----------------------------------------------------------------------


@pytest.mark.parametrize("n_top", [None, 4])
def test_explanations_are_columns_of_the_couplings(n_top):
    parts, kernel = models(), similar()
    fused = fused_with(parts, kernel=kernel, tolerance=1e-6, max_sweeps=5000, n_top=n_top)
    # Unfinished sentences of one item share their top words: here there is one.
    sentence = beam_search(fused, [2], width=5 if n_top is None else 1)[0][0]
    found = explain_sentence(fused, [2], sentence.words, n_largest=100, names=["x", "y", "z"])
    assert [e.label for e in found] == [*sentence.words, "<end>"]
    total = sum(np.log(e.score) for e in found)
    assert total == pytest.approx(sentence.log_probability, abs=1e-4)
    for explanation in found:
        parts_of = explanation.contributions
        assert sum(c.percent for c in parts_of) == pytest.approx(100)
        assert {c.model for c in parts_of} == {"x", "y", "z"}
    assert {c.label for c in found[-1].contributions} == {"<end>"}


def test_contributions_are_those_of_the_solver():
    parts, kernel = models(), similar()
    options = {"tolerance": 1e-6, "max_sweeps": 5000}
    fused = fused_with(parts, kernel=kernel, **options)
    found = explain_sentence(fused, [2], ["cat"], n_largest=100)[0]
    result = solve_with(histograms(parts, [2]), apart(kernel), normalize=True, **options)
    shares = result.contributions(3)
    for contribution in found.contributions:
        model, word = int(contribution.model[-1]) - 1, WORDS.index(contribution.label)
        expected = shares[model][word - 1]
        assert contribution.percent_of_model == pytest.approx(expected, abs=0.01)


def test_a_mean_has_no_explanation():
    with pytest.raises(ws.InvalidInputError, match="couplings explain a barycenter"):
        explain_sentence(FusedNextWord(models(), rule=ws.ARITHMETIC), [1], ["a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"warm_start": True, "tolerance": None}, "`warm_start` must go with a barycenter"),
        ({"warm_start": True, "rule": ws.ARITHMETIC}, "`warm_start` must go with a barycenter"),
        ({"rule": ws.solve_barycenter}, "`rule` must be a Barycenter or a PowerMean; got"),
        ({"rule": ws.GatedMean(1.0, 2, 0.5)}, "`rule` must be a Barycenter or a PowerMean; got"),
        ({"rule": ws.Barycenter(n_top=3)}, "`n_top` must be said beside the rule"),
        ({"kernel": [None]}, "one kernel for all 3 models or one per model; got 1"),
        ({"n_top": 0}, "`n_top` must be at least 1"),
        ({"weights": [0.5, 0.5]}, "`weights` must have shape"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ws.InvalidInputError, match=message):
        fused_with(models(), **options)


def test_no_models_are_refused():
    with pytest.raises(ws.InvalidInputError, match="at least one model"):
        FusedNextWord([])
