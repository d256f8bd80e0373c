"""Plots of an answer, for Plotly: bars side by side, flows of mass, neighbours of a label.

Pictures hold data and places only; the page adds the colours of text and grid, which follow the
reader's light or dark mode. Names are escaped: Plotly reads tags.
"""

from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

from wassemble._extras import load_extra
from wassemble.report.plots import BLUE, CHOSEN, GREEN, GREY, PURPLE, RED, TEAL, short, shown
from wassemble.web.explorer.answers import Answer, Flow, Flows, Line, Neighbor

Plot = dict[str, Any]

N_TOP = 8
_COLOURS = {"consensus": PURPLE, "arithmetic mean": BLUE, "geometric mean": TEAL, "model": GREY}
_PALETTE = (BLUE, GREEN, TEAL, RED, PURPLE, GREY)
_N_LETTERS = 16
_BAR, _TITLE = 20, 52  # pixels
_FONT = 12
_PURPOSE = "the explorer"

_STILL = {"fixedrange": True, "zeroline": False, "tickfont": {"size": _FONT}}
_CLEAR = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
_BARS = {"showlegend": False, "bargap": 0.25, "dragmode": False, **_CLEAR}

Target = tuple[str, str]
_NOWHERE: Target = ("", "")


def draw_answer(answer: Answer, label: str, model: str) -> dict[str, Any]:
    """The paper's figure: the consensus, both means and each model, with their largest scores.

    It has ``data``, and a layout for each width: ``wide`` and ``narrow``. The bars of the label
    that is looked into stand out. ``customdata`` of a bar: its label, and whose it is.
    """
    tops = [line.top(N_TOP) for line in answer.lines]
    data = []
    for number, (line, top) in enumerate(zip(answer.lines, tops, strict=True), start=1):
        own = line.name if line.role == "model" else ""
        colours = [
            CHOSEN if name == label and model in ("", own) else _COLOURS[line.role]
            for name, _ in top
        ]
        bar = _bars(top, colours)
        bar |= {"customdata": [[name, own] for name, _ in top], "name": short(line.name, 40)}
        bar |= {"xaxis": _axis("x", number), "yaxis": _axis("y", number)}
        data.append(bar)
    layouts = {
        "wide": _layout(answer, tops, n_columns=3),
        "narrow": _layout(answer, tops, n_columns=1),
    }
    return {"data": data, "layouts": layouts}


def _bars(values: Sequence[tuple[str, float]], colours: str | list[str]) -> Plot:
    """Bars that lie one below the other; whole names appear beside the pointer."""
    # Plotly's own classes check each value, which takes longer than the answer itself; the
    # tests let them check what is made here.
    return {
        "type": "bar",
        "orientation": "h",
        "x": [value for _, value in values],
        "y": list(range(len(values))),
        "marker": {"color": colours},
        "hovertext": [f"{shown(name)}: {value:.4g}" for name, value in values],
        "hoverinfo": "text",
    }


def _layout(answer: Answer, tops: list[list[tuple[str, float]]], *, n_columns: int) -> Plot:
    layout = deepcopy(_grid(len(tops), n_columns))
    is_histogram = answer.plan.kind == "multiclass"
    # Histograms have one scale in common; scores and what is made of them have not.
    largest = max((top[0][1] for top in tops if top), default=1.0)
    for number, (line, top) in enumerate(zip(answer.lines, tops, strict=True), start=1):
        end = largest if is_histogram or not top else top[0][1]
        layout[_axis("xaxis", number)] |= {"range": [0, 1.05 * end], **_STILL}
        names = [short(name, _N_LETTERS) for name, _ in top]
        layout[_axis("yaxis", number)] |= _named_axis(names, N_TOP)
        title = layout["annotations"][number - 1]
        title |= {"text": _title(line), "font": {"size": _FONT + 1}, "xanchor": "center"}
    return layout


def _named_axis(names: list[str], n_places: int) -> Plot:
    """An axis of bars that lie one below the other."""
    places = list(range(len(names)))
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": names}
    return ticks | {"range": [n_places - 0.5, -0.5], **_STILL}


def _title(line: Line) -> str:
    name = short(line.name, 26)
    if line.role == "consensus":
        return f"<b>{name}</b>"
    return name if line.has_answer else f"{name}: no answer"


@lru_cache(maxsize=64)
def _grid(n_panels: int, n_columns: int) -> Plot:
    """Places of panels; made once, since Plotly takes its time."""
    subplots = load_extra("plotly.subplots", "report", purpose=_PURPOSE)
    n_rows = -(-n_panels // n_columns)
    height = n_rows * (_TITLE + N_TOP * _BAR) + 30
    drawn = subplots.make_subplots(
        rows=n_rows,
        cols=n_columns,
        subplot_titles=["-"] * n_panels,
        vertical_spacing=min((_TITLE + 10) / height, 1 / max(n_rows - 1, 1)),
        horizontal_spacing=0.16 if n_columns > 1 else 0,
    )
    margin = {"l": 8, "r": 12, "t": 30, "b": 24}
    drawn.update_layout(height=height, margin=margin, template="none", **_BARS)
    drawn.update_yaxes(automargin=True)
    drawn.update_xaxes(nticks=4)
    layout: Plot = drawn.to_plotly_json()["layout"]
    layout.pop("template", None)
    return layout


def _axis(letter: str, number: int) -> str:
    return letter if number == 1 else f"{letter}{number}"


def draw_flows(flows: Flows, models: Sequence[str]) -> Plot:
    """A Sankey diagram of where a consensus label's mass came from, or a model's label's went.

    ``customdata`` of a node or link: the label to follow, and whose it is; empty where none is.
    """
    drawing = _Sankey()
    if flows.model:
        colour = _colour(flows.model, models)
        start = drawing.node(flows.label, flows.model, colour=colour)
        for flow in flows.flows:
            target = (flow.label, "")
            end = drawing.node(flow.label or "all other labels", "", target=target)
            drawing.link(start, end, flow.mass, colour, target)
    else:
        end = drawing.node(flows.label, "", colour=CHOSEN)
        sources = [flow for flow in flows.flows if flow.label]
        for rest in (flow for flow in flows.flows if not flow.label):  # below the others
            start = drawing.node("all other labels", "")
            drawing.link(start, end, rest.mass, GREY, _NOWHERE)
        for model in dict.fromkeys(flow.model for flow in sources):
            drawing.add_model(model, [f for f in sources if f.model == model], end, models)
    return drawing.plot()


def _colour(model: str, models: Sequence[str]) -> str:
    return _PALETTE[models.index(model) % len(_PALETTE)] if model in models else GREY


class _Sankey:
    """Nodes and links as Plotly wants them, in columns."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, Any]] = []
        self._links: list[dict[str, Any]] = []
        self.n_models = 0

    def node(self, name: str, model: str, *, colour: str = GREY, target: Target = _NOWHERE) -> int:
        """A new node; ``target`` is the label that a click on it leads to, and whose it is."""
        about = shown(f"{model}: {name}" if model else name)
        node = {"label": short(name, _N_LETTERS), "color": colour, "customdata": [*target, about]}
        self._nodes.append(node)
        return len(self._nodes) - 1

    def link(self, start: int, end: int, mass: float, colour: str, target: Target) -> None:
        """A new link."""
        ends = " to ".join(self._nodes[at]["customdata"][2] for at in (start, end))
        link = {"source": start, "target": end, "value": mass, "color": _faint(colour)}
        self._links.append(link | {"customdata": [*target, f"{ends}: {mass:.4g}"]})

    def add_model(self, model: str, flows: Sequence[Flow], end: int, models: Sequence[str]) -> None:
        """Labels of a model, through the model, to the label at ``end``."""
        colour = _colour(model, models)
        middle = self.node(model, "", colour=colour)
        self.n_models += 1
        self.link(middle, end, sum(flow.mass for flow in flows), colour, _NOWHERE)
        for flow in flows:
            start = self.node(flow.label, model, colour=colour, target=(flow.label, model))
            self.link(start, middle, flow.mass, colour, (flow.label, model))

    def plot(self) -> Plot:
        n_ends = max(len(self._nodes) - self.n_models - 1, 1)
        nodes: Plot = {"pad": 16, "thickness": 16, "line": {"width": 0}}
        nodes["hovertemplate"] = "%{customdata[2]}: %{value:.4g}<extra></extra>"
        for key in ("label", "color", "customdata"):
            nodes[key] = [node[key] for node in self._nodes]
        links: Plot = {"hovertemplate": "%{customdata[2]}<extra></extra>"}
        for key in ("source", "target", "value", "color", "customdata"):
            links[key] = [link[key] for link in self._links]
        sankey = {"type": "sankey", "node": nodes, "link": links, "arrangement": "fixed"}
        margin = {"l": 8, "r": 8, "t": 12, "b": 12}
        layout = {"height": max(180, 34 * n_ends + 40), "margin": margin, "font": {"size": _FONT}}
        return {"data": [sankey], "layout": layout | _CLEAR}


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.4)"


def draw_neighbors(neighbors: Sequence[Neighbor]) -> Plot:
    """Bars of the labels that a kernel makes most similar."""
    names = [f"{each.label} ({each.model})" if each.model else each.label for each in neighbors]
    values = [(name, each.similarity) for name, each in zip(names, neighbors, strict=True)]
    n_places = max(len(neighbors), 2)
    axis = _named_axis([short(name, 24) for name in names], n_places)
    layout = {
        "height": _TITLE + _BAR * n_places,
        "margin": {"l": 8, "r": 12, "t": 8, "b": 32},
        "xaxis": {"rangemode": "tozero", "nticks": 4, **_STILL},
        "yaxis": axis | {"automargin": True},
    }
    return {"data": [_bars(values, GREEN)], "layout": layout | _BARS}
