"""What records of evidence say together: figures, paired gains, verdicts, and the page of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paper.evidence.cases import Draw
from paper.evidence.records import N_DIGITS, Record
from paper.evidence.rivals import ORACLE, RIVALS
from paper.record.findings import Figure, markdown_table
from wassemble.metrics import Comparison, Estimate

_DIGITS = 3
CIRCULAR = ("animals",)
"""Tasks whose models' scores are made through the table of the kernel: told last, not counted."""
Pair = tuple[Record, Record]


def summarise(records: Mapping[str, Mapping[Draw, Pair]]) -> dict[str, Any]:
    """Figures of each task, with all samples, with shares of them, and with new splits."""
    return {name: _summarise_task(found) for name, found in records.items()}


def _summarise_task(found: Mapping[Draw, Pair]) -> dict[str, Any]:
    _, ours = next(iter(found.values()))
    about = ("title", "metric", "n_models", "n_target", "n_test", "n_groups")
    together: dict[tuple[float, int], list[Draw]] = {}
    for draw in found:
        together.setdefault((draw.share, draw.split), []).append(draw)
    rows = [_row(draws, [found[draw] for draw in draws]) for draws in together.values()]
    return {name: ours[name] for name in about} | {"rows": rows}


def _row(draws: Sequence[Draw], pairs: Sequence[Pair]) -> dict[str, Any]:
    """Means over the draws of one share, which have the same test samples."""
    mine = [ours["rules"]["ours"] for _, ours in pairs]
    own = _estimate(mine)
    rules = {
        name: _figures([rivals["rules"][name] for rivals, _ in pairs], own)
        for name in (*RIVALS, ORACLE)
    }
    return {
        "share": draws[0].share,
        "split": draws[0].split,
        "n_draws": len(draws),
        "n_known": pairs[0][1]["n_known"],
        "ours": _figures(mine, None),
        "rivals": {name: rules[name] for name in RIVALS},
        "oracle": rules[ORACLE],
        "words": pairs[0][1]["words"],
        **_verdict({name: rules[name] for name in RIVALS}, own),
    }


def _estimate(found: Sequence[Mapping[str, Any]]) -> Estimate | None:
    """The mean over draws; None if the rule failed on any."""
    if any("failed" in each for each in found):
        return None
    return Estimate.mean([Estimate(e["score"], np.array(e["drawn"])) for e in found])


def _figures(found: Sequence[Mapping[str, Any]], own: Estimate | None) -> dict[str, Any]:
    """The score of a rule with its interval, and what ``own`` gains over it."""
    estimate = _estimate(found)
    if estimate is None:
        reasons = [each["failed"] for each in found if "failed" in each]
        return {"failed": reasons[0], "n_failed": len(reasons)}
    gain = None if own is None else _as_dict(own.minus(estimate))
    low, high = estimate.interval
    return {
        "score": round(estimate.score, N_DIGITS),
        "low": round(low, N_DIGITS),
        "high": round(high, N_DIGITS),
        "gain_of_ours": gain,
        "picked": [each["picked"] for each in found],
        "seconds": round(float(np.mean([each["seconds"] for each in found])), 1),
    }


def _as_dict(gain: Comparison) -> dict[str, float]:
    names = ("difference", "standard_error", "low", "high")
    return {name: round(getattr(gain, name), N_DIGITS) for name in names}


def _verdict(rivals: Mapping[str, Mapping[str, Any]], own: Estimate | None) -> dict[str, Any]:
    """The best rival on the test samples, and whether ours is behind it by more than an error."""
    fitted = {name: each for name, each in rivals.items() if "failed" not in each}
    best = max(fitted, key=lambda name: fitted[name]["score"])
    if own is None:
        return {"best_rival": best, "is_behind": True}
    gain = fitted[best]["gain_of_ours"]
    return {"best_rival": best, "is_behind": gain["difference"] < -gain["standard_error"]}


def list_figures(evidence: Mapping[str, Any]) -> list[list[str]]:
    """Lines of a table for a terminal: every rule, learned from all samples of each task."""
    return [
        [f"{name}: {rule}", *_cells(figures)]
        for name, task in evidence.items()
        for row in task["rows"]
        if _is_whole(row)
        for rule, figures in (row["rivals"] | {"ours": row["ours"], ORACLE: row["oracle"]}).items()
    ]


def _cells(figures: Mapping[str, Any]) -> list[str]:
    """Score, gain of ours and what was picked."""
    if "failed" in figures:
        return ["failed", "", figures["failed"]]
    gain = figures["gain_of_ours"]
    apart = "" if gain is None else f"{gain['difference']:+.4f} {interval_of(gain)}"
    return [f"{figures['score']:.4f}", apart, figures["picked"][0]]


def list_verdicts(evidence: Mapping[str, Any]) -> list[str]:
    """Ours against the best rival on each task, in words."""
    return [
        f"{name}: {tell_verdict(row)}".replace("**", "")
        for name, task in evidence.items()
        for row in task["rows"]
        if _is_whole(row)
    ]


def _is_whole(row: Mapping[str, Any]) -> bool:
    return bool(row["share"] == 1 and not row["split"])


def in_order(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Tasks in their order, the circular ones last."""
    return dict(sorted(evidence.items(), key=lambda each: each[0] in CIRCULAR))


def tell_circular(evidence: Mapping[str, Any], undone: Mapping[str, float]) -> str:
    """What the figures of circular tasks are worth; nothing if there is none.

    ``undone`` is the accuracy of what undoes the circle of the animals' attributes, by name.
    """
    lines = []
    for name, task in evidence.items():
        if name in CIRCULAR:
            ours = next((row["ours"] for row in task["rows"] if _is_whole(row)), None)
            own = "" if ours is None else f": its {_score(ours)} stands"
            others = " and ".join(
                f"{score:.{_DIGITS}f} of the {rule}" for rule, score in undone.items()
            )
            lines.append(
                f"{task['title']} is circular and counts for nothing here{own}"
                f" beside {others}, which undo the circle."
            )
    return " ".join(lines)


def to_markdown(evidence: Mapping[str, Any], undone: Mapping[str, float]) -> str:
    """The tables, what was chosen, and where ours is behind, for the page.

    ``undone`` is as `tell_circular` takes it.
    """
    evidence = in_order(evidence)
    about = tell_circular(evidence, undone)
    parts = [_headline({name: e for name, e in evidence.items() if name not in CIRCULAR})]
    shares = sorted({row["share"] for task in evidence.values() for row in task["rows"]})
    for share in reversed(shares):
        rows = _rows(evidence, lambda row, share=share: row["share"] == share and not row["split"])
        parts += [f"## {_share_title(share)}", _table(rows), *([about] if about else [])]
    if again := _rows(evidence, lambda row: row["split"] > 0):
        parts += ["## New splits", _SPLITS, _table(again)]
    parts += ["## What was chosen", *(_tell_task(task) for task in evidence.values())]
    return "\n\n".join(parts)


_SPLITS = (
    "Figures on the test samples of these tasks were in view while learning was designed, so their"
    " own splits cannot judge it alone. Here samples were parted anew, three times, at random."
)


def _headline(evidence: Mapping[str, Any]) -> str:
    rows = _rows(evidence, _is_whole)
    good = sum(not row["is_behind"] for _, row in rows)
    said = (
        f"With all samples to learn from, ours is within one standard error of the best rival on"
        f" the test samples, or better, on {good} of {len(rows)} tasks."
    )
    behind = [f"{task['title']}, {_place(row)}" for task, row in _rows(evidence, _is_behind)]
    if not behind:
        return f"{said} It is behind nowhere on this page."
    return f"{said} It is behind by more than that on: {'; '.join(behind)}."


def _is_behind(row: Mapping[str, Any]) -> bool:
    return bool(row["is_behind"])


def _place(row: Mapping[str, Any]) -> str:
    share = f"{row['share']:.0%}".replace("%", " %")
    return share + (f", new split {row['split']}" if row["split"] else "")


def _share_title(share: float) -> str:
    if share == 1:
        return "All samples to learn from"
    return f"{share:.0%}".replace("%", " %") + " of the samples to learn from"


def _rows(evidence: Mapping[str, Any], wanted: Any) -> list[tuple[Any, Any]]:
    return [(task, row) for task in evidence.values() for row in task["rows"] if wanted(row)]


def _table(rows: Sequence[tuple[Any, Any]]) -> str:
    header = ["task", "learned from", "tested on", *RIVALS, "**ours**", ORACLE, "verdict"]
    lines = [
        [
            task["title"] + (f" ({row['split']})" if row["split"] else ""),
            f"{row['n_known']:,}",
            f"{task['n_test']:,}",
            *(_rival_cell(row["rivals"][name]) for name in RIVALS),
            _own_cell(row["ours"]),
            _score(row["oracle"]),
            tell_verdict(row),
        ]
        for task, row in rows
    ]
    return markdown_table(header, lines, (0, len(header) - 1))


def _score(figures: Mapping[str, Any]) -> str:
    return "failed" if "failed" in figures else f"{figures['score']:.{_DIGITS}f}"


def _own_cell(figures: Mapping[str, Any]) -> str:
    if "failed" in figures:
        return "failed"
    words = Figure(figures["score"], figures["low"], figures["high"]).words(_DIGITS)
    score, interval = words.split(" ", 1)
    return f"**{score}** {interval}"


def _rival_cell(figures: Mapping[str, Any]) -> str:
    gain = figures.get("gain_of_ours")
    return _score(figures) if gain is None else f"{_score(figures)} {interval_of(gain)}"


def interval_of(gain: Mapping[str, float]) -> str:
    """The 95 % interval of a gain.

    Examples
    --------
    >>> interval_of({"low": -0.0101, "high": 0.03})
    '[-0.010, +0.030]'
    """
    return f"[{gain['low']:+.{_DIGITS}f}, {gain['high']:+.{_DIGITS}f}]"


def tell_verdict(row: Mapping[str, Any]) -> str:
    """Ours against the best rival, in a few words."""
    best = row["best_rival"]
    gain = row["rivals"][best]["gain_of_ours"]
    if gain is None:
        return f"**ours failed**; {best} did not"
    apart = f"{gain['difference']:+.{_DIGITS}f} ± {gain['standard_error']:.{_DIGITS}f}"
    if row["is_behind"]:
        return f"**behind {best}**: {apart}"
    if gain["difference"] > gain["standard_error"]:
        return f"ahead of {best}: {apart}"
    return f"as good as {best}: {apart}"


def _tell_task(task: Mapping[str, Any]) -> str:
    """What was chosen and why, from the most samples that there are records of."""
    row = task["rows"][0]
    simple = row["rivals"]["best simple rule"]
    lines = [
        f"**{task['title']}** ({task['n_models']} models, {task['n_target']} labels,"
        f" {task['metric']}; {row['ours'].get('seconds', 0):.0f} s).",
        *(f"- {line}" for line in row["words"]),
    ]
    if "failed" not in simple:
        lines.append(
            f"- on the test samples, the best simple rule, {simple['picked'][0]}, has"
            f" {_score(simple)}; ours {_score(row['ours'])}"
        )
    failed = [
        f"- {name} failed with {_place(each)}: {each['rivals'][name]['failed']}"
        for each in task["rows"]
        for name in RIVALS
        if "failed" in each["rivals"][name]
    ]
    return "\n".join([lines[0], "", *lines[1:], *failed])
