"""Why a fused model says a word: which words of which models it came from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble._checks import check_count, fail
from wassemble.ensemble import Contribution, Explanation
from wassemble.text.fused import FusedNextWord


def explain_sentence(
    model: FusedNextWord,
    context: Any,
    words: Sequence[str],
    *,
    names: Sequence[str] | None = None,
    n_largest: int = 5,
) -> list[Explanation]:
    """For each word of a sentence, and its end, the models' words that it came from.

    The sentence is read again, word by word; nothing is searched. With ``n_top`` the words
    that take part are chosen for this sentence alone, so that scores can differ a little
    from those of a search, where unfinished sentences share them.

    Parameters
    ----------
    model : FusedNextWord
        By a barycenter.
    context : sequence of one item
        What the sentence is about.
    words : sequence of str
        Without the end, such as ``sentence.words``.
    names : sequence of str, optional
        Of the models; "model 1" and so on if not given.
    n_largest : int
        Contributions to keep for each word.

    Returns
    -------
    explanations : list of Explanation
        ``sample`` is the text before the word.

    Examples
    --------
    >>> from wassemble.text import NGramModel
    >>> models = [NGramModel.fit([["a", w, "sleeps"]], order=2) for w in ("cat", "kitten")]
    >>> fused = FusedNextWord(models)
    >>> print(explain_sentence(fused, [None], ["a"], n_largest=1)[0])
    : a 0.551
       50.0 %  model 1: a (scored 0.613)
    """
    if not model.fusion.rule.transports:
        fail("couplings explain a barycenter; got models fused by a mean, which has none.")
    if len(context) != 1:
        fail(f"`context` must hold the one item that the sentence is about; got {len(context)}.")
    check_count(n_largest, "n_largest")
    names = [f"model {i + 1}" for i in range(len(model.models))] if names is None else names
    vocabulary = model.vocabulary
    states = model.start(context).states
    last = np.array([vocabulary.start_index])
    explanations = []
    for place, word in enumerate([*words, vocabulary.end]):
        logs, states = model.step_models(states, last)
        last = vocabulary.encode([word])
        number = int(last[0])
        step = model.fusion.fuse(logs, np.zeros(1, dtype=np.int64))
        parts = _contributions(model, logs, number, names)
        explanations.append(
            Explanation(
                " ".join(words[:place]),
                vocabulary.words[number],
                float(np.exp(step.log_probabilities[0, number])),
                bool(step.converged[0]),
                tuple(parts[:n_largest]),
            )
        )
    return explanations


def _contributions(
    model: FusedNextWord, logs: list[np.ndarray], word: int, names: Sequence[str]
) -> list[Contribution]:
    """What each word of each model sent to ``word``, largest first; none if it took no part."""
    solved = model.fusion.solve_row(logs, word)
    if solved is None:
        return []
    part, sent = solved
    weights = part.weights
    if weights.ndim == 2:
        weights = weights[:, int(np.searchsorted(part.target, word))]
    total = sum(float(w * mass.sum()) for w, mass in zip(weights, sent, strict=True)) or 1.0
    contributions = [
        Contribution(
            names[index],
            model.models[index].vocabulary.words[int(source)],
            float(np.exp(logs[index][0, source])),
            float(100 * weight * mass_of_word / total),
            float(100 * mass_of_word / mass.sum()),
        )
        for index, mass, weight, own in zip(part.models, sent, weights, part.sources, strict=True)
        for source, mass_of_word in zip(own, mass, strict=True)
        if mass_of_word > 0
    ]
    return sorted(contributions, key=lambda contribution: -contribution.percent)
