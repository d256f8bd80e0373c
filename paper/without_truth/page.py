"""The page "without truth": tables and words from what was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from paper.record.findings import markdown_table
from paper.without_truth.rivals import RIVALS
from paper.without_truth.sets import NAMES
from wassemble.ensemble.without_truth import RUNGS

# What was to be reached: accuracy on each set, and both kappas of the judges.
_WANTED = {
    "bluebird": 0.88,
    "web": 0.82,
    "rte": 0.925,
    "trec_relevance": 0.70,
    "dog": 0.84,
    "adult_content2": 0.758,
    "wrench_youtube": 0.852,
    "wrench_sms": 0.939,
    "wrench_trec": 0.544,
    "wrench_semeval": 0.789,
}
_WANTED_KAPPAS = {"kappa": 0.286, "quadratic_kappa": 0.50}


def list_gold(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """A line for each set and number of gold samples."""
    rows = [
        [name, str(line["n_gold"]), f"{line['ours']:.3f}", _or_empty(line["with_truth"])]
        for name, each in found.items()
        for line in each["gold"]
    ]
    return ["set", "gold samples", "ours", "learned from them alone"], rows


def list_asked(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """A line for each set and way of asking."""
    rows = [
        [name, way, f"{fmean(scores):.3f}", *(f"{score:.3f}" for score in scores)]
        for name, way, scores in _list_ways(found)
    ]
    n_draws = max((len(scores) for *_, scores in _list_ways(found)), default=0)
    return ["set", "asked", "mean", *(f"draw {n + 1}" for n in range(n_draws))], rows


def _list_ways(found: Mapping[str, Any]) -> list[tuple[str, str, list[float]]]:
    return [(name, way, x) for name, each in found.items() for way, x in each["asked"].items()]


def list_speed(found: Sequence[Mapping[str, float]]) -> tuple[list[str], list[list[str]]]:
    """A line for each number of votes."""
    header = ["votes", "voters", "samples", "CPU seconds to read", "to rank", "memory, GB"]
    rows = [
        [
            *(f"{line[name]:,}" for name in ("n_votes", "n_voters", "n_samples")),
            *(f"{line[f'{name}_seconds']:.1f}" for name in ("reading", "ranking")),
            f"{line['gigabytes']:.2f}",
        ]
        for line in found
    ]
    return header, rows


def _or_empty(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"


def list_rows(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """A line for each set: simple rules, rivals, ours."""
    header = ["set", "tested", "majority", "equal weights", *RIVALS, "ours"]
    header += ["gain over the better simple rule", "believed of models"]
    return header, [_row(name, each) for name, each in found.items()]


def _row(name: str, each: Mapping[str, Any]) -> list[str]:
    accuracy = each["accuracy"]
    figures = [
        f"{accuracy[rule]:.3f}" if rule in accuracy else ""
        for rule in ("majority", "equal weights", *RIVALS, each["chosen"])
    ]
    gain = f"{each['gain']:+.3f} (standard error {each['gain_error']:.3f})"
    return [name, f"{each['n_tested']:,}", *figures, gain, each["chosen"]]


def tell_sets(found: Mapping[str, Any]) -> str:
    """Tables and words, in Markdown."""
    left_out = [name for name in NAMES if name not in found]
    parts = [
        markdown_table(*list_rows(found)),
        *_say_gains(found),
        *_say_wanted(found),
        "Every rung, whichever was chosen:",
        markdown_table(*_list_rungs(found)),
        "Accuracies of models, estimated without truth, beside true ones (models with at least 30"
        " answers whose truth is known):",
        markdown_table(*_list_ranks(found)),
    ]
    if left_out:
        parts.append(f"Not judged in this run: {', '.join(left_out)}.")
    return "\n\n".join(parts)


def tell_gold(found: Mapping[str, Any]) -> str:
    """What gold adds, and which samples to ask about, in Markdown."""
    n_tested = ", ".join(f"{each['n_tested']:,} of {name}" for name, each in found.items())
    n_asked = next(iter(found.values()))["n_asked"]
    return "\n\n".join(
        [
            "Gold samples are drawn from one half of the samples and tested on the other"
            f' ({n_tested}). "Learned from them alone" is `learn_ensemble` with their truth,'
            " without all other samples:",
            markdown_table(*list_gold(found)),
            f"Which {n_asked} samples of one half to ask about: accuracy, on the other half, of"
            " what is learned from their truth alone:",
            markdown_table(*list_asked(found)),
        ]
    )


def _say_gains(found: Mapping[str, Any]) -> list[str]:
    better = [name for name, each in found.items() if each["gain"] > each["gain_error"] > 0]
    worse = [name for name, each in found.items() if each["gain"] < -each["gain_error"] < 0]
    return [
        f"Better than the better of majority and equal weights by more than one standard error:"
        f" {len(better)} of {len(found)} ({', '.join(better) or 'none'}). Worse by more than one:"
        f" {', '.join(worse) or 'none'}."
    ]


def _say_wanted(found: Mapping[str, Any]) -> list[str]:
    missed = [
        f"{name} {each['accuracy'][each['chosen']]:.3f}, wanted {_WANTED[name]:g}"
        for name, each in found.items()
        if name in _WANTED and round(each["accuracy"][each["chosen"]], 3) < _WANTED[name]
    ]
    said = [f"What was to be reached and was not: {'; '.join(missed) or 'nothing'}."]
    judges = [each for each in found.values() if "kappa" in each]
    said += [
        f"Judges: kappa {each['kappa']:.4f} (wanted {_WANTED_KAPPAS['kappa']:g}, that of the best"
        f" single judge), with quadratic weights {each['quadratic_kappa']:.4f} (wanted"
        f" {_WANTED_KAPPAS['quadratic_kappa']:g}); {each['n_models']} judges count as"
        f" {each['n_effective']:.1f}."
        for each in judges
    ]
    return said


def _list_rungs(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    rungs = [str(rung) for rung in RUNGS]
    rows = [
        [name, f"{each['n_models']:,}", f"{each['n_votes']:,}"]
        + [_or_empty(each["accuracy"].get(rung)) for rung in rungs]
        + [f"{each['seconds']:.1f}"]
        for name, each in found.items()
    ]
    return ["set", "models", "votes", *rungs, "CPU seconds"], rows


def _list_ranks(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            name,
            f"{ranks['n_models']}",
            f"{ranks['correlation']:.2f}",
            f"{ranks['mean_gap']:+.3f}",
            f"{ranks['largest_gap']:.3f}",
        ]
        for name, each in found.items()
        if (ranks := each["ranks"]) is not None
    ]
    return [
        "set",
        "models",
        "rank correlation",
        "mean of estimate minus truth",
        "largest gap",
    ], rows
