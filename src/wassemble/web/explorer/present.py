"""What pages and files say: an answer, a board of all rules, a list, in words and plain data.

Everything here is ready for JSON; templates lay it out.
"""

import math
import re
from dataclasses import asdict
from typing import Any

import numpy as np

from wassemble.labels import enumerate_names
from wassemble.metrics import CalibrationBins
from wassemble.solvers import Status
from wassemble.web.explorer.answers import (
    Answer,
    Flows,
    Line,
    find_flows,
    find_neighbors,
    get_ranking,
)
from wassemble.web.explorer.cases import MASS_PENALTY, Case
from wassemble.web.explorer.judging import (
    N_SWEEPS,
    Judged,
    Judgement,
    confuse,
    find_best_model,
    judge,
    label_at,
    list_rows,
)
from wassemble.web.explorer.label_map import map_labels
from wassemble.web.explorer.similarity import NAMES, OWN_EPSILON
from wassemble.web.explorer.view import View
from wassemble.web.pages import write_csv

# A slider goes this many times below and above where it starts.
_REACH = 30.0
_N_BARS = 7
_N_PER_PAGE = 25
_N_PAIRS = 8
_N_CHOICES = 400
_N_IN_BIN = 5
_RIBBON = 100.0  # width of the ribbons, in units of their drawing
Shown = dict[str, Any]


# -- one sample ------------------------------------------------------------------------------------


def present_answer(case: Case, answer: Answer, view: View) -> Shown:
    """What is shown of one sample, as the sliders stand."""
    return {
        "query": view.to_query(),
        "sample": answer.sample,
        "truth": [_call(case, label) for label in _truth(case, answer)],
        "chips": _chips(case, answer),
        "panels": _panels(case, answer, view),
        "label": _call(case, view.label),
        "flows": _flows(case, answer, view) if view.label else None,
        "status": _status(answer),
        "facts": _facts(case, answer),
        "lines": _lines(answer),
        "reasons": _reasons(case, view),
    }


def _call(case: Case, label: str, otherwise: str = "no answer") -> Shown:
    """A label, and what people call it; ``otherwise`` is said where there is none."""
    return {"label": label, "name": case.table.name(label) if label else otherwise}


def _truth(case: Case, answer: Answer) -> tuple[str, ...]:
    return case.table.truth.get(answer.sample, ())


def _verdict(case: Case, answer: Answer, label: str) -> str:
    """Right, wrong, or nothing where nobody knows, or of a label that is no answer."""
    if answer.sample not in case.table.truth or label not in case.target:
        return ""
    return "right" if label in _truth(case, answer) else "wrong"


def _chips(case: Case, answer: Answer) -> list[Shown]:
    """The consensus, the plain mean and the best model: what each says, and whether it is right."""
    models = [line for line in answer.lines if line.role == "model"]
    best = find_best_model(case)
    shown = next((line for line in models if line.name == best), max(models, key=_share))
    title = f"best model, {shown.name}" if best else f"surest model, {shown.name}"
    titles = ("consensus", "plain mean", title)
    lines = (answer.lines[0], answer.lines[1], shown)
    return [_chip(case, answer, *each) for each in zip(titles, lines, strict=True)]


def _share(line: Line) -> float:
    """Of the first label."""
    total = float(line.scores.sum())
    return float(line.scores.max()) / total if total else 0.0


def _chip(case: Case, answer: Answer, title: str, line: Line) -> Shown:
    [(label, score)] = line.top(1) or [("", 0.0)]
    doubt = _doubt(answer) if line.role == "consensus" else ""
    return {
        "title": title,
        "role": line.role,
        "answer": _call(case, label),
        "score": f"{_round(score)}{doubt}" if label else "",
        "verdict": _verdict(case, answer, label),
    }


def _round(number: float) -> str:
    if number >= 0.0995:
        return f"{number:.2f}"
    return f"{number:.3f}" if number >= 0.0005 else "<0.001"


def _doubt(answer: Answer) -> str:
    """What stands beside a figure that was computed over some of the labels."""
    if not answer.cut.is_part:
        return ""
    return f" (without up to {100 * answer.cut.dropped:.2g} % of a model's mass)"


def _panels(case: Case, answer: Answer, view: View) -> list[Shown]:
    """Bars of the largest scores of each histogram; a bar leads to the flows of its label."""
    panels = []
    tops = [line.top(_N_BARS) for line in answer.lines]
    is_histogram = case.table.kind == "multiclass"
    # Histograms have one scale in common; scores and what is made of them have not.
    largest = max((top[0][1] for top in tops if top), default=1.0)
    for line, top in zip(answer.lines, tops, strict=True):
        own = line.name if line.role == "model" else ""
        scale = largest if is_histogram or not top else top[0][1]
        rows = [_bar(case, answer, view, line, label, score / scale) for label, score in top]
        is_weighted = line.weight is not None and bool(view.weight)
        weight = f"{line.weight:.3g}" if is_weighted else ""
        is_open = bool(view.label) and (own or "consensus") == (view.model or line.role)
        panel = {"name": line.name, "role": line.role, "rows": rows, "weight": weight}
        panels.append(panel | {"is_open": is_open})
    return panels


def _bar(case: Case, answer: Answer, view: View, line: Line, label: str, share: float) -> Shown:
    own = line.name if line.role == "model" else ""
    is_open = label == view.label and own == view.model and line.role in ("consensus", "model")
    address = view.address(label="" if is_open else label, model="" if is_open else own)
    return {
        **_call(case, label),
        "score": _round(float(line.scores[line.labels.place(label)])),
        "percent": round(100 * share, 2),
        "href": address,
        "is_open": is_open,
        "is_same": label == view.label,
        "is_true": label in _truth(case, answer),
    }


def _flows(case: Case, answer: Answer, view: View) -> Shown:
    """Where a label's mass came from, or went: a row for each flow, and its ribbon."""
    flows = find_flows(answer, view.label, view.model)
    models = [model.model for model in case.table.models]
    rows = [
        {
            **_call(case, flow.label, "all other labels"),
            "model": flow.model,
            "number": models.index(flow.model or view.model) % 6 if flow.model or view.model else 6,
            "href": view.address(label=flow.label, model=flow.model) if flow.label else "",
            "mass": f"{flow.mass:.3g}",
            "percent": f"{100 * flow.mass / flows.mass:.1f}" if flows.mass else "0",
        }
        for flow in flows.flows
    ]
    return {
        "rows": rows,
        "ribbons": draw_ribbons([flow.mass for flow in flows.flows]),
        "text": _flows_text(case, answer, flows),
        "neighbors": _neighbors(case, answer, view),
    }


def draw_ribbons(masses: list[float]) -> list[str]:
    """Paths from rows of equal height to one stack; each as thick as its share of the height.

    The drawing is 100 wide, and 10 high for each row.

    Examples
    --------
    >>> draw_ribbons([1.0])
    ['M0,0C50,0,50,0,100,0L100,10C50,10,50,10,0,10Z']
    """
    height, total, paths, top = 10.0 * len(masses), sum(masses) or 1.0, [], 0.0
    for row, mass in enumerate(masses):
        wide = height * mass / total
        # A row is 10 high: what is thicker begins thinner.
        start, thin = 10 * row + 5, min(wide, 10.0) / 2
        places = [start - thin, top, top + wide, start + thin]
        high, out, end, low = (f"{place:.6g}" for place in places)
        middle = f"{_RIBBON / 2:g}"
        paths.append(
            f"M0,{high}C{middle},{high},{middle},{out},{_RIBBON:g},{out}"
            f"L{_RIBBON:g},{end}C{middle},{end},{middle},{low},0,{low}Z"
        )
        top += wide
    return paths


def _flows_text(case: Case, answer: Answer, flows: Flows) -> str:
    name = case.table.name(flows.label)
    if not flows.flows:
        return f"{name} takes no part: no mass came here, or went from here."
    doubt = "" if answer.status is Status.CONVERGED else " Not converged: shares of the last sweep."
    if flows.model:
        return f"Where {flows.model}'s {name} went: {flows.mass:.3g} of the consensus.{doubt}"
    return f"Where the consensus' {name}, {flows.mass:.3g}, came from.{doubt}"


def _neighbors(case: Case, answer: Answer, view: View) -> Shown:
    found = find_neighbors(case, answer, view.label, view.model)
    text = "Nearest labels in the kernel"
    if not found:
        text = "The kernel joins it with no label."
    elif case.similarity is NAMES:
        text = "Labels are joined by name alone."
    rows = []
    for each in found:
        # Neighbours of a label of the consensus are labels of models, and the other way round.
        whose = "" if view.model else each.model
        if not view.model and not whose and each.label not in case.target:
            whose = case.table.models[0].model
        address = view.address(label=each.label, model=whose)
        about = {"model": whose, "href": address, "similarity": f"{each.similarity:.3g}"}
        rows.append(_call(case, each.label) | about)
    return {"text": text, "rows": rows}


def _status(answer: Answer) -> str:
    residual = f"residual {answer.residual:.1g}"
    if answer.status is Status.CONVERGED:
        if answer.n_sweeps == 0:
            return "Found by a formula." if answer.cut.is_part else "Exact: found by a formula."
        return f"Converged after {answer.n_sweeps} sweeps, {residual}."
    if answer.status is Status.MAX_SWEEPS:
        return (
            f"Not converged: stopped after {answer.n_sweeps} sweeps, {residual}; a larger epsilon"
            " needs fewer."
        )
    if answer.status is Status.NO_MASS:
        return f"No consensus: {answer.status.message}; the unbalanced rule gives one."
    if answer.status is Status.UNREACHABLE_MASS:
        return f"Not all mass arrived: {answer.status.message}, {residual}."
    return f"No answer to trust: it {answer.status.message}."


def _facts(case: Case, answer: Answer) -> list[str]:
    """What a reader should know beside the figures."""
    table, consensus = case.table, answer.consensus
    facts = [f"Labels are joined by {case.similarity.origin}."]
    if case.similarity is not NAMES and not case.similarity.has_cost:
        facts.append(
            f"At epsilon {OWN_EPSILON:g} the kernel is as it was given; elsewhere it is raised to"
            " a power."
        )
    if any(known is not None for known in answer.cut.declared):
        facts.append(
            f"Where a model has no word for a label, it keeps {100 * answer.plan.leftover:.3g} % of"
            " its weight."
        )
    if answer.cut.is_part:
        facts.append(
            f"Computed over the {len(answer.plan.target):,} of {len(case.target):,} labels that"
            " some model finds most likely. At most"
            f" {100 * answer.cut.dropped:.2g} % of a model's mass is on the others and was left"
            " out of the consensus; the means are over all."
        )
    if table.kind == "multiclass" and not math.isclose(consensus.mass, 1, abs_tol=1e-3):
        power = 1 / answer.plan.rule.flattening
        raised = f"raised to the power {power:.3g} and " if power > 1 else ""
        facts.append(
            f"The consensus was {raised}divided by its mass, {consensus.mass:.3g} at first."
        )
    if not case.means_by_name:
        facts.append("The means are of what each model's kernel alone sends to the target labels.")
    silent = [line.name for line in answer.lines if line.role == "model" and not line.has_answer]
    if silent:
        facts.append(f"No answer here: {enumerate_names(silent)}.")
    if table.note:
        facts.append(table.note)
    return facts


def _lines(answer: Answer) -> list[list[str]]:
    """Entropy, mass and weight of each histogram."""
    return [
        [
            line.name,
            f"{line.entropy:.2f}" if line.has_answer else "",
            f"{line.mass:.3g}",
            "" if line.weight is None else f"{line.weight:.3g}",
        ]
        for line in answer.lines
    ]


# -- sliders ---------------------------------------------------------------------------------------


def settle(case: Case, view: View) -> View:
    """The same view; what says no more than the data suggest is left out."""
    are_equal = view.weight == (1.0,) * len(case.table.models)
    return view.but(
        epsilon=None if view.epsilon == case.epsilon else view.epsilon,
        mass="" if view.mass == "unbalanced" else view.mass,
        mass_penalty=None if view.mass_penalty == MASS_PENALTY else view.mass_penalty,
        weight=() if are_equal else view.weight,
    )


def present_knobs(case: Case, view: View) -> Shown:
    """Where each slider stands and how far it goes, in powers of ten where it is so marked."""
    epsilon, penalty = view.epsilon or case.epsilon, view.mass_penalty or MASS_PENALTY
    models = case.table.models
    weights = view.weight if len(view.weight) == len(models) else (1.0,) * len(models)
    high = max(1.0, *weights)
    return {
        "epsilon": _slider(epsilon, case.epsilon / _REACH, case.epsilon * _REACH),
        "mass": view.mass or "unbalanced",
        "can_balance": case.may_be_balanced,
        "mass_penalty": _slider(penalty, 0.02, 200),
        "weights": [
            {"model": model.model, "value": weight, "high": high}
            for model, weight in zip(models, weights, strict=True)
        ],
        "reasons": _reasons(case, view),
    }


def _slider(value: float, low: float, high: float) -> Shown:
    logs = [round(math.log10(each), 4) for each in (value, low, high)]
    return {"value": float(f"{value:.6g}"), **dict(zip(("at", "low", "high"), logs, strict=True))}


def _reasons(case: Case, view: View) -> Shown:
    """Why a slider changes nothing, where it does not."""
    is_balanced = view.mass == "balanced"
    is_still = case.similarity is NAMES and is_balanced
    return {
        "epsilon": "Labels are joined by name alone: nothing travels." if is_still else "",
        "mass": "" if case.may_be_balanced else "Scores have no mass in common to keep.",
        "mass_penalty": "Mass is kept, so that changing it has no price." if is_balanced else "",
    }


# -- pages -----------------------------------------------------------------------------------------


def present_frame(case: Case, view: View) -> Shown:
    """What is around an answer on every page."""
    return {
        "view": view.model_dump(),
        "title": case.table.title,
        "n_samples": len(case.table.samples),
        "n_models": len(case.table.models),
        "n_labels": len(case.target),
        "has_truth": bool(case.table.truth),
        "joined_by": case.similarity.origin,
        "knobs": present_knobs(case, view),
    }


def present_steps(case: Case, view: View, row: int) -> Shown:
    """Where a sample stands in the list that the view asks for, and its neighbours there."""
    rows, samples = list_rows(case, view), case.table.samples
    fresh = view.but(label="", model="")
    rank = rows.index(row) if row in rows else None
    sides = [None, None] if rank is None else [rank - 1, rank + 1]
    before, after = (
        "" if at is None or not 0 <= at < len(rows) else fresh.address(sample=samples[rows[at]])
        for at in sides
    )
    first = fresh.address(sample=samples[rows[0]]) if rank is None and rows else ""
    rank = None if rank is None else rank + 1
    return {"rank": rank, "n": len(rows), "before": before, "after": after, "first": first}


def present_board(case: Case, view: View) -> Shown:
    """All rules on all samples, and a page of the list."""
    judgement = judge(case, view)
    n_judged, n_known = len(judgement.rows), int(judgement.truth.is_known.sum())
    first, second = view.pair if len(view.pair) == 2 else ("consensus", "arithmetic mean")
    return {
        "rules": _rules(judgement),
        "columns": list(judgement.rules[0].figures),
        "n_judged": n_judged,
        "n_known": n_known,
        "n_sweeps": N_SWEEPS,
        "calibration": [
            _reliability(rule, rule.bins) for rule in judgement.rules if rule.bins is not None
        ],
        "counts": _count_filters(judgement),
        "disputes": _list_disputes(case, view),
        "confusion": _confusion(case, judgement, first, second),
        "names": [rule.name for rule in judgement.rules],
        "abouts": _list_abouts(case, judgement),
        "table": _list_page(case, judgement, view),
        "settings": view.settings,
        "measure": get_ranking(case).measure,
    }


def _rules(judgement: Judgement) -> list[Shown]:
    """A row for each rule; the best figure of each column is marked."""
    figures = [rule.figures for rule in judgement.rules]
    best = {
        name: (min if name in ("log-loss", "calibration error") else max)(
            each[name] for each in figures
        )
        for name in figures[0]
    }
    return [
        {
            "name": rule.name,
            "role": rule.role,
            "figures": [
                {
                    "text": f"{value:.4f}" if name not in ("log-loss",) else f"{value:.3f}",
                    "is_best": value == best[name],
                    "percent": round(100 * value, 2) if at == 0 else None,
                }
                for at, (name, value) in enumerate(rule.figures.items())
            ],
        }
        for rule in judgement.rules
    ]


def _reliability(rule: Judged, bins: CalibrationBins) -> Shown:
    """A reliability diagram: a dot for each bin, as wide as the root of its samples.

    Bins of few samples are noise, and left out unless there are no others.
    """
    each = zip(bins.confidence, bins.accuracy, bins.count.tolist(), strict=True)
    most = int(bins.count.max())
    points = [
        {
            "sure": f"{100 * sure:.0f}",
            "right": f"{100 * right:.0f}",
            "n": n,
            "radius": f"{2 + 5 * math.sqrt(n / most):.1f}",
        }
        for sure, right, n in each
        if n >= min(_N_IN_BIN, most)
    ]
    error = f"{rule.figures['calibration error']:.3f}"
    return {"name": rule.name, "role": rule.role, "error": error, "points": points}


def _list_disputes(case: Case, view: View) -> list[Shown]:
    """Where the most disputed half, quarter and tenth begin; nothing where nobody knows."""
    disagreement = get_ranking(case).disagreement
    known = disagreement[~np.isnan(disagreement)]
    if not len(known):
        return []
    steps = {
        float(f"{np.quantile(known, 1 - share):.3g}"): f"the most disputed {word}"
        for share, word in ((0.5, "half"), (0.25, "quarter"), (0.1, "tenth"))
    }
    if view.dispute:
        steps.setdefault(view.dispute, "more disputed")
    return [
        {"value": value, "words": f"{words}, from {value:.3g}", "n": int((known >= value).sum())}
        for value, words in sorted(steps.items())
        if value
    ]


def _confusion(case: Case, judgement: Judgement, first: str, second: str) -> Shown:
    found = confuse(case, judgement, first, second, _N_PAIRS)
    pairs = [(_call(case, one), _call(case, two), n) for one, two, n in found.pairs]
    return asdict(found) | {"pairs": pairs}


def _count_filters(judgement: Judgement) -> Shown:
    consensus, mean = judgement.rule("consensus"), judgement.rule("arithmetic mean")
    return {
        "gained": int((consensus.right & ~mean.right).sum()),
        "lost": int((~consensus.right & mean.right).sum()),
        "right": int(consensus.right.sum()),
        "wrong": int((judgement.truth.is_known & ~consensus.right).sum()),
        "missed": int((judgement.truth.is_known & ~mean.right).sum()),
        "apart": int((consensus.answers != mean.answers).sum()),
    }


def _list_abouts(case: Case, judgement: Judgement) -> list[tuple[str, str]]:
    """Labels that samples are about, by name."""
    consensus, truth = judgement.rule("consensus"), judgement.truth
    places = set(np.flatnonzero(truth.is_true[:, :-1].any(axis=0)).tolist())
    places |= set(consensus.answers[~truth.is_known].tolist()) - {-1}
    labels = [case.target[place] for place in sorted(places)]
    named = sorted((case.table.name(label), label) for label in labels)[:_N_CHOICES]
    return [(label, name) for name, label in named]


def _list_page(case: Case, judgement: Judgement, view: View) -> Shown:
    rows = list_rows(case, view)
    n_pages = max(1, -(-len(rows) // _N_PER_PAGE))
    page = min(view.page, n_pages)
    some = rows[(page - 1) * _N_PER_PAGE : page * _N_PER_PAGE]
    table = _table(case, judgement, view, some)
    return {"rows": table, "n": len(rows), "page": page, "n_pages": n_pages}


def _table(case: Case, judgement: Judgement, view: View, rows: list[int]) -> list[Shown]:
    """What is known of samples, and what the three chips say."""
    ranking, samples = get_ranking(case), case.table.samples
    place = {row: at for at, row in enumerate(judgement.rows.tolist())}
    best = judgement.best_model
    rules = [judgement.rule("consensus"), judgement.rule("arithmetic mean")]
    rules += [] if best is None else [best]
    fresh = view.but(label="", model="", page=1)
    return [
        {
            "sample": samples[row],
            "href": fresh.address(sample=samples[row]),
            "text": case.table.texts.get(samples[row], ""),
            "truth": [_call(case, label) for label in case.table.truth.get(samples[row], ())],
            "answers": [_answer(case, judgement, rule, place.get(row)) for rule in rules],
            "disagreement": _show(float(ranking.disagreement[row])),
        }
        for row in rows
    ]


def _show(number: float) -> str:
    return "" if math.isnan(number) else f"{number:.3g}"


def _answer(case: Case, judgement: Judgement, rule: Judged, place: int | None) -> Shown:
    if place is None:
        return {"rule": rule.name, "answer": _call(case, "", ""), "share": "", "verdict": ""}
    verdict = ""
    if judgement.truth.is_known[place]:
        verdict = "right" if rule.right[place] else "wrong"
    answer = _call(case, label_at(case, int(rule.answers[place])))
    share = f"{rule.shares[place]:.2f}"
    return {"rule": rule.name, "answer": answer, "share": share, "verdict": verdict}


def present_map(case: Case, view: View) -> Shown:
    """Labels as points, to look at one of them."""
    points = map_labels(case, judge(case, view), view.epsilon or case.epsilon)
    fresh = view.but(label="", model="", sample="", search="", show="", page=1)
    return {
        "points": [
            asdict(point) | {"href": fresh.address("/explorer/all", about=point.label)}
            for point in points
        ]
    }


# -- files -----------------------------------------------------------------------------------------


def list_as_csv(case: Case, view: View) -> str:
    """A row for each sample that is listed: truth, and what the three rules answer.

    Labels are as in the files; where people call them otherwise, their names stand beside them.
    """
    judgement = judge(case, view)
    table = _table(case, judgement, view, list_rows(case, view))
    keys = ("label", "name") if case.table.names else ("label",)
    rules = [each["rule"] for each in table[0]["answers"]] if table else []
    head = ["sample", "text", *_heads("truth", keys)]
    for name in rules:
        head += [*_heads(name, keys), f"{name} share", f"{name} verdict"]
    rows = [
        [
            *(row["sample"], row["text"]),
            *(", ".join(each[key] for each in row["truth"]) for key in keys),
            *(cell for each in row["answers"] for cell in _cells(each, keys)),
            row["disagreement"],
        ]
        for row in table
    ]
    return write_csv([[*head, "disagreement"], *rows])


def _heads(name: str, keys: tuple[str, ...]) -> list[str]:
    return [name, f"{name} name"][: len(keys)]


def _cells(answered: Shown, keys: tuple[str, ...]) -> list[str]:
    called = [answered["answer"][key] for key in keys]
    return [*called, answered["share"], answered["verdict"]]


def as_csv(answer: Answer) -> str:
    """A row for each label of each histogram: what, its role, label and score."""
    rows = [
        (line.name, line.role, label, repr(score))
        for line in answer.lines
        for label, score in zip(line.labels, line.scores.tolist(), strict=True)
    ]
    return write_csv([("histogram", "role", "label", "score"), *rows])


def as_json(case: Case, answer: Answer, view: View) -> dict[str, Any]:
    """The same, with how it was made and the flows of the label that is looked into."""
    top = answer.consensus.top(1)
    label = view.label or (top[0][0] if top else case.target[0])
    flows = find_flows(answer, label, view.model)
    is_balanced = answer.plan.rule.is_balanced
    return {
        "view": view.to_query(),
        "data": case.table.title,
        "kernel": case.similarity.origin,
        "sample": answer.sample,
        "truth": list(_truth(case, answer)),
        "epsilon": answer.epsilon,
        "mass_penalty": None if is_balanced else view.mass_penalty or MASS_PENALTY,
        "weights": {line.name: line.weight for line in answer.lines if line.role == "model"},
        "status": answer.status.name.lower(),
        "residual": answer.residual,
        "n_sweeps": answer.n_sweeps,
        "dropped_mass": answer.cut.dropped,
        "histograms": [
            {
                "name": line.name,
                "role": line.role,
                "mass": line.mass,
                "entropy": line.entropy if line.has_answer else None,
                "labels": list(line.labels),
                "scores": line.scores.tolist(),
            }
            for line in answer.lines
        ],
        "flows": {
            "label": flows.label,
            "model": flows.model,
            "mass": flows.mass,
            "parts": [vars(flow) for flow in flows.flows],
        },
    }


def file_name(sample: str, end: str) -> str:
    """A name that any file system and any header takes.

    Examples
    --------
    >>> file_name('../a "b".png', "csv")
    'wassemble-a-b-png.csv'
    """
    words = re.sub(r"[^A-Za-z0-9]+", "-", sample).strip("-")[:60]
    return f"wassemble-{words or 'sample'}.{end}"
