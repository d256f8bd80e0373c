"""Whether fusing helped and why, in sentences that follow from the figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from wassemble.ensemble.learning import Standing
from wassemble.ensemble.learning.recipes import NAMES
from wassemble.metrics import Comparison
from wassemble.report.evidence import Evidence
from wassemble.solvers import LogisticStacking


def make_headline(evidence: Evidence, members: dict[str, Any]) -> dict[str, Any]:
    """What was chosen, its figure, the best simple rule beside it, and what that means.

    ``members`` is what `judge_members` found.
    """
    evaluation = evidence.evaluation
    chosen, simple = evaluation.chosen, evaluation.best_simple
    metric = evaluation.metric
    note = f"{metric} is a loss: its sign is turned, so that higher is better." * (
        evidence.measure.is_loss
    )
    figure = (
        f"On {evaluation.n_samples:,} test samples its {metric} is {chosen.score:.4f}"
        f" (95 % interval {chosen.low:.4f} to {chosen.high:.4f})"
    )
    if simple is None:
        figure += "."
    else:
        figure += f"; that of the best simple rule beside it, {simple.name}, is {simple.score:.4f}."
    sentences = [
        _verdict(evidence),
        _about_fusing(evidence, members),
        _about_meaning(evidence),
        _about_stacking(evidence),
    ]
    return {
        "chosen": chosen.name,
        "choice": f"Chosen on {evidence.learned.n_samples:,} validation samples: {chosen.name}.",
        "metric": metric,
        "note": note,
        **{name: getattr(chosen, name) for name in ("score", "standard_error", "low", "high")},
        "best_simple": None if simple is None else _brief(simple),
        "best_single": _brief(evaluation.best_single),
        "verdict": evaluation.verdict,
        "figure": figure,
        "sentences": [sentence for sentence in sentences if sentence],
    }


def make_reasons(evidence: Evidence) -> dict[str, Any]:
    """Why it was chosen: the words of the choice, and the control."""
    choice, caution = evidence.learned.choice, evidence.learned.caution
    control = None
    if choice.control is not None:
        control = {
            "own_score": choice.control.score + choice.control.comparison.difference,
            "shuffled_score": choice.control.score,
            "n_shuffles": choice.control.n_shuffles,
            "comparison": asdict(choice.control.comparison),
            "text": str(choice.control.comparison),
            "meaning_helped": choice.control.meaning_helped,
        }
    return {
        "reasons": list(choice.reasons),
        "wanted": _wanted(caution),
        "control": control,
        "no_control": None if control else _without_control(evidence),
        "estimate": choice.estimate,
        "estimate_error": choice.estimate_error,
    }


def _without_control(evidence: Evidence) -> str:
    recipe = evidence.chosen.recipe
    if recipe.transports:
        return "There was no time for a control with shuffled labels."
    if recipe.without_transport() is not None:
        return (
            "There is no control with shuffled labels: the chosen rule sees barycenters among much"
            " else, and what they add is said above."
        )
    return (
        "The chosen rule transports nothing through a kernel, so that there is no control with"
        " shuffled labels."
    )


def _wanted(caution: float) -> str:
    """What a gain had to be for a richer rule to be taken."""
    if caution == 0:
        return "above 0"
    errors = "one standard error" if caution == 1 else f"{caution:g} standard errors"
    return f"more than {errors} of the paired difference"


def _brief(outcome: Standing) -> dict[str, Any]:
    against = outcome.against_chosen
    gain = None if against is None else asdict(against.reverse())
    return {name: getattr(outcome, name) for name in ("name", "score", "low", "high")} | {
        "gain": gain
    }


def _verdict(evidence: Evidence) -> str:
    """The chosen rule against the best rule of the other sort."""
    if evidence.chosen.recipe.is_simple:
        return _of_simple(evidence)
    simple = evidence.evaluation.best_simple
    if simple is None or simple.against_chosen is None:
        return ""
    gain = simple.against_chosen.reverse()
    who = "A plain mean" if simple.is_plain and simple.model is None else "A simple rule"
    if gain.is_worse:
        return (
            f"On these samples it is worse than that simple rule by more than one standard error,"
            f" {gain}: prefer the simple rule, or learn from more samples."
        )
    if gain.low > 0:
        return f"It beats every simple rule, the best of them by {gain}."
    if gain.is_better:
        return f"It is likely better than any simple rule, but the interval holds 0: {gain}."
    return f"{who} is as good: the difference of {gain} is within noise."


def _of_simple(evidence: Evidence) -> str:
    """Whether any other rule would have been better than the simple one chosen."""
    simple = evidence.evaluation.best_simple
    if simple is not None and simple.against_chosen is not None:
        against = simple.against_chosen
        if against.is_better:
            return (
                f"On these samples another simple rule, {simple.name}, is better by more than one"
                f" standard error, {against}."
            )
    others = [each for each in evidence.evaluation.outcomes if not each.is_simple]
    if not others:
        return "Only simple rules were tried: single models and means."
    best = others[0]
    assert best.against_chosen is not None, "a simple rule was chosen"
    against = best.against_chosen
    if against.low > 0:
        return (
            f"On these samples {best.name} is better by {against}; on validation the gain of no"
            f" such rule was {_wanted(evidence.learned.caution)}."
        )
    if against.is_better:
        return f"On these samples {best.name} may be better, but the interval holds 0: {against}."
    return (
        f"A simple rule is as good as any: the best other rule on these samples, {best.name},"
        f" differs from it by {against}."
    )


def _about_fusing(evidence: Evidence, members: dict[str, Any]) -> str:
    """The chosen rule against the best that one model can do."""
    if evidence.chosen.recipe.model is not None:
        return "Fusing did not help: one model alone was chosen on validation samples."
    single = evidence.evaluation.best_single
    if single.against_chosen is None:
        return ""
    gain, name, more = single.against_chosen.reverse(), single.name, ""
    best = next(iter(members.get("models", [])), None)
    if best is not None and best["by_rule"] > single.score:
        # A kernel may help one model as well: that is not the ensemble's doing.
        own = best["by_rule"] - single.score
        more = f" The rule itself gives one model {own:+.4f}, beside {single.name}."
        gain, name = Comparison(**best["gain"]), f"{best['model']} by the same rule"
    beside = f"{gain} beside the best model alone, {name}."
    if gain.low > 0:
        return f"Fusing helped: {beside}{more}"
    if gain.high < 0:
        return f"Fusing hurt: {beside}{more}"
    if gain.is_better:
        return f"Fusing likely helped, but the interval holds 0: {beside}{more}"
    return f"Fusing made no clear difference: {beside}{more}"


def _about_meaning(evidence: Evidence) -> str:
    control = evidence.learned.choice.control
    if control is not None and control.meaning_helped:
        return (
            "The meaning of the labels helped: on validation the rule gains"
            f" {control.comparison} over the same kernel with its labels shuffled."
        )
    if control is not None:
        return (
            "The meaning of the labels did not clearly help: on validation the same kernel with"
            f" its labels shuffled is not clearly worse; the difference is {control.comparison}."
        )
    if evidence.chosen.recipe.is_stacked:
        return _about_transport(evidence)
    if evidence.chosen.recipe.transports:
        return "Its kernel was not compared with itself, labels shuffled."
    if evidence.chosen.recipe.kernel != NAMES:
        return "Its kernel carries each model to the target labels once; nothing is transported."
    return "It moves no mass between labels, so that their meaning has no part in it."


def _about_transport(evidence: Evidence) -> str:
    """What barycenters among the features of a stacked consensus add on these samples."""
    without = evidence.chosen.recipe.without_transport()
    if without is None:
        return "It sees no barycenter: nothing is transported."
    other = next((each for each in evidence.evaluation.outcomes if each.recipe == without), None)
    if other is None:
        return "What transport adds to it was not judged on these samples."
    gain = evidence.evaluation.gain_over(other)
    word = "made no clear difference"
    if gain.low > 0:
        word = "helped"
    elif gain.high < 0:
        word = "hurt"
    return f"Transport {word}: the barycenters among what it sees add {gain}."


def _about_stacking(evidence: Evidence) -> str:
    """Whether stacking would have been better, unless it was chosen."""
    outcomes = evidence.evaluation.outcomes
    stacking = next(
        (each for each in outcomes if isinstance(each.recipe.rule, LogisticStacking)), None
    )
    if stacking is None or stacking.against_chosen is None:
        return ""
    against = stacking.against_chosen
    word = "not clearly better or worse"
    if against.low > 0:
        word = "better"
    elif against.high < 0:
        word = "worse"
    return f"Stacking by logistic regression is {word} on these samples: {against}."
