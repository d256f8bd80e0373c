"""Charts of a study: best choices, mean grades and labels, as in the paper's figure 3.

Differs from the paper: shares stand beside each other instead of on top of each other, so that
each can show its interval.
"""

from typing import Any

from wassemble.report import plots
from wassemble.report.plots import Plot, finish, new_figure, short, shown, wrap
from wassemble.web.study.questions import Question
from wassemble.web.study.results import Estimate, Results

_COLORS = (plots.PURPLE, plots.TEAL, plots.BLUE, plots.CHOSEN, plots.GREEN, plots.RED, plots.GREY)

_LONGEST = 24  # letters of a name under a bar


def draw_charts(results: Results) -> dict[str, Plot]:
    """Plots by title, for Plotly; none where there are too few answers to draw.

    Questions that are answered alike share a chart.
    """
    if not results.has_intervals:
        return {}
    alike: dict[str, list[Question]] = {}
    for question in results.questions:
        if question.name in results.figures:
            alike.setdefault(_title(question), []).append(question)
    return {title: _draw(results, questions) for title, questions in alike.items()}


def _title(question: Question) -> str:
    if question.kind == "grade":
        return f"Mean grades, 1 to {len(question.options)}"
    return "Chosen as best" if question.kind == "best" else f"Labels: {question.name}"


def _draw(results: Results, questions: list[Question]) -> Plot:
    """One group of bars for each system or label, in it a bar for each question."""
    figure = new_figure()
    figures = [results.figures[question.name] for question in questions]
    names = [name for name in figures[0] if all(name in each for each in figures)]
    places = list(range(len(names)))  # the beginnings of names may be alike
    is_grade, n_grades = questions[0].kind == "grade", len(questions[0].options)
    for at, question in enumerate(questions):
        estimates = [results.figures[question.name][name] for name in names]
        figure.add_bar(
            name=short(question.name),
            x=places,
            **_heights(estimates, 1 if is_grade else 100),
            marker_color=_COLORS[at % len(_COLORS)],
            customdata=[shown(name) for name in names],
            hovertemplate="%{customdata}: " + ("%{y:.2f}" if is_grade else "%{y:.0f} %"),
        )
    axis: dict[str, Any] = {"title": {"text": "percent"}, "rangemode": "tozero"}
    if is_grade:
        axis = {"title": {"text": "mean grade"}, "range": [1, n_grades], "dtick": 1}
    shorter = [name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…" for name in names]
    ticks = {"tickvals": places, "ticktext": [wrap(name, 12) for name in shorter], "tickangle": 0}
    return finish(figure, 340, barmode="group", yaxis=axis, xaxis=ticks)


def _heights(estimates: list[Estimate], factor: float = 1) -> dict[str, Any]:
    """Bars with their intervals as whiskers."""
    whiskers = {
        "type": "data",
        "symmetric": False,
        "array": [factor * max(0.0, (each.high or 0) - each.value) for each in estimates],
        "arrayminus": [factor * max(0.0, each.value - (each.low or 0)) for each in estimates],
        "thickness": 1.5,
        "width": 4,
    }
    return {"y": [factor * each.value for each in estimates], "error_y": whiskers}
