"""The examples of the explorer that come with the package."""

from collections.abc import Callable
from dataclasses import dataclass

from wassemble.inputs import Predictions, load_animals, load_languages
from wassemble.kernels import from_attributes, from_confusion
from wassemble.labels import LabelSpace
from wassemble.web.explorer.cases import Table
from wassemble.web.explorer.similarity import NAMES, Similarity, given_kernel


@dataclass(frozen=True)
class Example:
    """One example."""

    name: str
    title: str
    about: str
    kernels: tuple[str, ...]  # by name; the first is used unless another is chosen
    # The table, and a kernel for each name. A function of a module: processes send it on.
    load: Callable[[], tuple[Table, dict[str, Similarity]]]
    sketch: str = ""  # what goes in and comes out, in a few words
    start: str = ""  # what of it is shown first: the query of a view


def _load_animals() -> tuple[Table, dict[str, Similarity]]:
    data = load_animals()
    models = [
        Predictions(model, range(len(data.truth)), data.attributes, scores, kind="multilabel")
        for model, scores in zip(data.models, data.scores, strict=True)
    ]
    truth = {str(i): (data.animals[true],) for i, true in enumerate(data.truth)}
    names = {name: name.replace("+", " ") for name in (*data.animals, *data.attributes)}
    title, target = "Animals from attributes", LabelSpace(data.animals)
    kernel = from_attributes(data.has_attribute, data.attributes, data.animals)
    table = Table("example animals", title, models, "multilabel", target, {}, truth, names)
    return table, {"attributes": given_kernel(kernel)}


def _load_languages() -> tuple[Table, dict[str, Similarity]]:
    """Test texts only: the kernels come from the detectors' mistakes on the others."""
    data = load_languages()
    target = LabelSpace(sorted(LabelSpace.union(*(model.labels for model in data.models))))
    samples = data.models[0].samples.tolist()
    known = {
        str(sample): name
        for sample, name, is_test in zip(samples, data.truth, data.is_test, strict=True)
        if not is_test
    }
    mistakes = {
        model.model: from_confusion(model.take(~data.is_test), known, target=target)
        for model in data.models
    }
    texts = {str(s): text for s, text in zip(samples, data.texts, strict=True)}
    truth = {str(s): (name,) for s, name in zip(samples, data.truth, strict=True)}
    models = [model.take(data.is_test) for model in data.models]
    title = "Nine language detectors, nine label sets"
    table = Table(
        "example languages", title, models, "multiclass", target, texts, truth, data.names
    )
    learned = Similarity("each detector's mistakes on other texts", lambda epsilon: mistakes)
    return table, {"mistakes": learned, "names": NAMES}


SHIPPED = (
    Example(
        "languages",
        "Nine language detectors",
        "Nine label sets, 306 languages, one answer; kernels learned from each one's mistakes on"
        " other texts.",
        ("mistakes", "names"),
        _load_languages,
        "hola? olá? ola? → Galician",
        "show=gained",
    ),
    Example(
        "animals",
        "Animals from attributes",
        "Attributes in, animals out, which no model names. The attributes are made from the classes"
        " of two networks by the kernel's own table: a circle, to look at and not to judge by.",
        ("attributes",),
        _load_animals,
        "stripes + hooves → zebra",
        "show=gained",
    ),
)
