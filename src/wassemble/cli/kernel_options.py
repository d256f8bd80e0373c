"""The kernel options of a command, and the kernels that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from wassemble.cli.options import PATH, ModelFiles, NumberOr, split_names, stack
from wassemble.cli.places import NamedFile
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.ensemble import Fusion
    from wassemble.inputs import PredictionFile, Predictions
    from wassemble.labels import LabelSpace


_CHUNK_ROWS = 10_000
# Options that name a file from which a kernel is made, and what is in it.
_FILES = {
    "embeddings": "Kernel from word vectors of the labels: a file of GloVe, word2vec or fastText,"
    " or .npz.",
    "synonyms": "Kernel from a table of synonyms, with the columns word, synonym and votes.",
    "tree": "Kernel from distances in a tree of labels: a file with a parent and a child on each"
    " line.",
    "graph": "Kernel from distances in a graph of labels: a file with two names on each line and,"
    " if edges differ, the cost of going from one to the other.",
    "attributes": "Kernel from a table of which target label has which attribute: one row per"
    " attribute, which is what the models predict, and one column per target label.",
    "costs": "Kernel from a table of how much labels differ: one row per label of the models, one"
    " column per target label.",
    "ratings": "Kernel from a table of how similar labels are: one row per label of the models,"
    " one column per target label.",
    "confusion": "A kernel for each model from its own mistakes: a table with the columns sample"
    " and label, the true one, for some of the samples.",
}
# Options that have an effect only with one of some others.
_USERS: dict[str, tuple[str, ...]] = {
    "epsilon": ("embeddings", "tree", "graph", "costs", "spelling", "mass_penalty"),
    "local_bandwidth": ("embeddings",),
    "n_neighbors": ("embeddings",),
    "prior": ("confusion",),
    "truth_column": ("confusion",),
}

kernel_options = stack(
    click.option(
        "--kernel",
        "kernels",
        type=NamedFile(),
        multiple=True,
        metavar="[MODEL=]FILE",
        help="Kernel from a file that `wassemble kernel` saved, or from a table (.csv, .parquet)"
        " with the columns source, target and similarity. MODEL= gives each model its own.",
    ),
    *(click.option(f"--{name}", type=PATH, help=what) for name, what in _FILES.items()),
    click.option("--spelling", is_flag=True, help="Kernel from how alike labels are spelled."),
    click.option(
        "--scales",
        is_flag=True,
        help="Kernel from where labels stand on their scale, whatever their names: for grades that"
        " files divide differently. Labels that are numbers lie there, words in the order of a"
        " file's columns or of --labels, from the lowest to the highest. Needs --target.",
    ),
    click.option(
        "--epsilon",
        type=NumberOr("auto"),
        metavar="NUMBER|auto",
        help="How far a score spreads to similar labels: the larger, the farther. auto chooses it"
        " so that each label has a few neighbours.  [default: auto]",
    ),
    click.option(
        "--local-bandwidth",
        type=int,
        metavar="NEIGHBOR",
        help="With --embeddings: measure distances by how far away each label's NEIGHBOR-th nearest"
        " neighbour is (5, say), so that labels in crowded places spread no farther than lonely"
        " ones.  [default: one measure for all]",
    ),
    click.option(
        "--n-neighbors",
        type=int,
        help="With --embeddings: keep only so many of the most similar labels of each label, which"
        " saves memory.",
    ),
    click.option(
        "--prior",
        type=float,
        help="With --confusion: how many samples' worth of evidence there is beforehand that a"
        " label means what its name says; the more, the less a few mistakes count."
        "  [default: 0.2]",
    ),
    group="Kernel",
)


@dataclass(frozen=True)
class KernelChoice:
    """What the options ask for."""

    kernel: Any  # as `Fusion` takes it
    target: LabelSpace | None  # the labels it leads to, where it says so
    accuracy: dict[str, float] | None = None  # of each model, where the truth is known
    doubts: tuple[str, ...] = ()  # what looks as if it was not meant


def choose_kernel(
    values: dict[str, Any], files: Sequence[PredictionFile], fusion: Fusion, inputs: ModelFiles
) -> KernelChoice:
    """The kernel of a fusion, which says what labels stand for."""
    if not values["kernels"] and find_origins(values) == ["confusion"]:
        _refuse_unused(values)
        return _from_confusion(values, files, fusion, inputs)
    kernel = read_kernel(values, [file.model for file in files])
    return KernelChoice(kernel, cast("LabelSpace | None", fusion.target) or _target_of(kernel))


def read_kernel(values: dict[str, Any], models: Sequence[str]) -> Any:
    """A kernel, one per model, a function from label spaces to one, or None if none is given."""
    _refuse_unused(values)
    origins = find_origins(values)
    if values["kernels"]:
        if origins:
            fail(f"--kernel brings the whole kernel; got --{origins[0]} beside it.")
        return _load(values["kernels"], models)
    if not origins:
        return None
    if len(origins) > 1:
        fail(
            f"a kernel must have one origin; got {' and '.join('--' + name for name in origins)}.",
            hint="in Python, kernels.mix([(first, 0.5), (second, 0.5)]) joins several",
        )
    (name,) = origins
    epsilon: Any = "auto" if values["epsilon"] is None else values["epsilon"]
    if name == "scales":
        from wassemble.kernels import from_scales

        return from_scales
    if name == "spelling":
        from wassemble.kernels import from_spelling

        return lambda source, target: from_spelling(source, target, epsilon=epsilon)
    from wassemble.kernels.builders.files import read_kernel_origin

    ways = {key: values[key] for key in ("local_bandwidth", "n_neighbors")}
    return read_kernel_origin(name, values[name], **ways).at(epsilon)


def find_origins(values: dict[str, Any]) -> list[str]:
    """Options that say what a kernel is made from, of those that were given."""
    return [name for name in (*_FILES, "spelling", "scales") if values.get(name)]


def _refuse_unused(values: dict[str, Any]) -> None:
    """Refuse options that would have no effect."""
    for name, wanted in _USERS.items():
        there = [each for each in wanted if each in values]
        is_used = any(values[each] is not None and values[each] is not False for each in there)
        if is_used or values.get(name) is None:
            continue
        flags = [f"--{each.replace('_', '-')}" for each in there]
        must = " or ".join(filter(None, [", ".join(flags[:-1]), flags[-1]]))
        given = [f"--{each}" for each in find_origins(values)] or ["--kernel"] * bool(
            values["kernels"]
        )
        got = " and ".join(given) or ("none of them" if there[1:] else "none")
        fail(f"--{name.replace('_', '-')} must go with {must}; got {got}.", hint="leave it out")


def _load(paths: tuple[str, ...], models: Sequence[str]) -> Any:
    from wassemble.kernels import load as load_kernel

    if len(paths) == 1 and not split_names(paths, "--kernel")[0]:  # for all models
        return load_kernel(paths[0])
    files = kernel_files(paths, models)
    loaded = {path: load_kernel(path) for path in set(files.values())}
    return {model: loaded[path] for model, path in files.items()}


def kernel_files(paths: tuple[str, ...], models: Sequence[str]) -> dict[str, Path]:
    """The file that --kernel names for each model."""
    named, shared = split_names(paths, "--kernel")
    if strange := [name for name in named if name not in models]:
        fail(f"--kernel must name a model, one of {', '.join(models)}; got {strange[0]}.")
    without = [model for model in models if model not in named]
    if without and shared is None:
        fail(f"every model must have a kernel; got none for {', '.join(without)}.")
    return {model: named.get(model, cast("Path", shared)) for model in models}


def _target_of(kernel: Any) -> LabelSpace | None:
    """The target labels of kernels that bring their own."""
    from wassemble.kernels import LabelledKernel
    from wassemble.labels import LabelSpace

    kernels = list(kernel.values()) if isinstance(kernel, dict) else [kernel]
    if not all(isinstance(each, LabelledKernel) for each in kernels):
        return None
    return LabelSpace.union(*(each.target for each in kernels))


def _from_confusion(
    values: dict[str, Any], files: Sequence[PredictionFile], fusion: Fusion, inputs: ModelFiles
) -> KernelChoice:
    """One kernel per model, from what it answered where the truth is known."""
    import numpy as np

    from wassemble.ensemble.label_overlap import find_truth_twins, tell_twins
    from wassemble.ensemble.members import merge_labels
    from wassemble.inputs import PredictionFile
    from wassemble.inputs.predictions.overlap import check_truth_samples
    from wassemble.kernels import from_confusion
    from wassemble.labels import LabelSpace

    path = values["confusion"]
    truth = _names_of(path, inputs.read_truth(path, values["truth_column"], files))
    aliases, fold = fusion.aliases, fusion.fold
    others = cast("dict[str, str]", fusion.other or {})
    models = [(file.model, file.labels) for file in files]
    target = cast("LabelSpace | None", fusion.target)
    if target is None:
        target = merge_labels(models, aliases, others, fold=fold, further=truth.values())
    true = LabelSpace.union(truth.values())
    doubts: tuple[str, ...] = ()
    if fold:
        pairs = dict(true.match(target, fold=True).folded)
        truth = {sample: pairs.get(name, name) for sample, name in truth.items()}
    else:
        meant = [merge_labels([model], aliases, others) for model in models]
        twins = find_truth_twins(true, meant)
        doubts = (tell_twins(twins),) if twins else ()
    kernels, accuracy = {}, {}
    for file in files:
        seen = _known_samples(file, truth)
        if seen is None:
            if isinstance(file, PredictionFile):
                check_truth_samples(truth, [file])
            fail(f"{path}: names no sample of {file.model}.")
        kernels[file.model] = from_confusion(
            seen,
            truth,
            target=target,
            prior=0.2 if values["prior"] is None else values["prior"],
            fold=fold,
            aliases=aliases.of_model(file.model),
            other=others.get(file.model),
        )
        best = np.nan_to_num(seen.scores).argmax(axis=1)
        means = seen.labels.match(target, aliases=aliases.of_model(file.model), fold=fold)
        right = means.places[best] == target.places(truth[str(s)] for s in seen.samples)
        accuracy[file.model] = float(np.mean(right & seen.answered))
    return KernelChoice(kernels, target, accuracy, doubts)


def _names_of(path: Path, truth: Predictions) -> dict[str, str]:
    """The true label of each sample."""
    from wassemble.inputs.predictions.truth import say_column

    names: dict[str, str] = {}
    for sample, row in zip(truth.samples, truth.scores, strict=True):
        labels = [truth.labels[i] for i in (row > 0).nonzero()[0]]
        if len(labels) != 1:
            is_alone = not truth.is_hard and len(truth.labels) == 1
            fail(
                f"{path}: a sample must have one true label; got {len(labels) or 'none'} for"
                f" {sample!r}.",
                hint=say_column(truth, truth.labels[0]) if is_alone else None,
            )
        names[str(sample)] = labels[0]
    return names


def _known_samples(file: PredictionFile, truth: dict[str, str]) -> Predictions | None:
    """The rows of a file whose truth is known; None if there are none."""
    import numpy as np

    parts = []
    for chunk in file.chunks(_CHUNK_ROWS):
        known = np.array([str(sample) in truth for sample in chunk.samples], dtype=bool)
        if known.any():
            parts.append(chunk.take(known))
    if not parts:
        return None
    return parts[0].replace(
        samples=np.concatenate([part.samples for part in parts]),
        scores=np.concatenate([part.scores for part in parts]),
    )
