"""From the kernel options of a command to kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wassemble.cli.options import FileOptions, is_given, read_truth_file, split_names
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.ensemble import Fusion
    from wassemble.inputs import PredictionFile, Predictions
    from wassemble.kernels import LabelledKernel
    from wassemble.labels import LabelSpace

    Builder = Callable[[LabelSpace, LabelSpace], LabelledKernel]

__all__ = ["KernelChoice", "build_kernel", "choose_kernel", "load_or_build"]

_CHUNK_ROWS = 10_000

_SOURCES = (
    "embeddings",
    "synonyms",
    "tree",
    "graph",
    "attributes",
    "costs",
    "ratings",
    "confusion",
    "spelling",
)


@dataclass(frozen=True)
class KernelChoice:
    """What the options ask for."""

    kernel: Any  # as `fuse_files` takes it
    target: LabelSpace | None  # the labels it leads to, where it says so
    accuracy: dict[str, float] | None = None  # of each model, where the truth is known
    doubts: tuple[str, ...] = ()  # what looks as if it was not meant


def choose_kernel(
    values: dict[str, Any],
    files: Sequence[PredictionFile],
    fusion: Fusion,
    reading: FileOptions,
) -> KernelChoice:
    """The kernel of a fusion, which says what labels stand for."""
    origins = _given(values)
    target = cast("LabelSpace | None", fusion.target)
    _refuse_unused(values)
    if values["kernels"]:
        if origins:
            fail(f"--kernel brings the whole kernel; got --{origins[0]} beside it.")
        kernel = _load(values["kernels"], [file.model for file in files])
        return KernelChoice(kernel, target or _target_of(kernel))
    if origins == ["confusion"]:
        return _from_confusion(values, files, fusion, reading)
    made = build_kernel(values)
    return KernelChoice(made, target or _target_of(made))


def build_kernel(values: dict[str, Any]) -> Any:
    """A kernel, a function from label spaces to one, or None if the options ask for none."""
    origins = _given(values)
    if not origins:
        return None
    if len(origins) > 1:
        fail(
            f"a kernel must have one origin; got {' and '.join('--' + name for name in origins)}.",
            hint="in Python, kernels.mix([(first, 0.5), (second, 0.5)]) joins several",
        )
    (name,) = origins
    if name == "spelling":
        return _spelling(values["epsilon"])
    from wassemble.kernels.builders.files import read_kernel_origin

    origin = read_kernel_origin(name, values[name], n_neighbors=values["n_neighbors"])
    return origin.at(values["epsilon"])


def _spelling(epsilon: Any) -> Builder:
    from wassemble.kernels import from_spelling

    return lambda source, target: from_spelling(source, target, epsilon=epsilon)


def _given(values: dict[str, Any]) -> list[str]:
    return [name for name in _SOURCES if values.get(name)]


def _refuse_unused(values: dict[str, Any]) -> None:
    """Refuse options that would have no effect."""
    users: dict[str, tuple[str, ...]] = {
        "epsilon": ("embeddings", "tree", "graph", "costs", "spelling", "mass_penalty"),
        "n_neighbors": ("embeddings",),
        "prior": ("confusion",),
    }
    for name, wanted in users.items():
        there = [each for each in wanted if each in values]
        is_used = any(values[each] is not None and values[each] is not False for each in there)
        if is_used or not is_given(name):
            continue
        flags = [f"--{each.replace('_', '-')}" for each in there]
        must = " or ".join(filter(None, [", ".join(flags[:-1]), flags[-1]]))
        found = [f"--{each}" for each in _given(values)] or ["--kernel"] * bool(values["kernels"])
        got = " and ".join(found) or ("none of them" if there[1:] else "none")
        fail(f"--{name.replace('_', '-')} must go with {must}; got {got}.", hint="leave it out")


def load_or_build(values: dict[str, Any], models: Sequence[str]) -> Any:
    """A kernel from a file, from another origin, or None."""
    _refuse_unused(values)
    if values["kernels"]:
        if origins := _given(values):
            fail(f"--kernel brings the whole kernel; got --{origins[0]} beside it.")
        return _load(values["kernels"], models)
    return build_kernel(values)


def _load(paths: tuple[str, ...], models: Sequence[str]) -> Any:
    from wassemble.kernels import load as load_kernel

    named, shared = split_names(paths, "--kernel")
    strange = [name for name in named if name not in models]
    if strange:
        fail(f"--kernel must name a model, one of {', '.join(models)}; got {strange[0]}.")
    if not named:
        assert shared is not None
        return load_kernel(shared)
    without = [model for model in models if model not in named]
    if without and shared is None:
        fail(f"every model must have a kernel; got none for {', '.join(without)}.")
    rest = None if shared is None else load_kernel(shared)
    return {m: load_kernel(named[m]) if m in named else rest for m in models}


def _target_of(kernel: Any) -> LabelSpace | None:
    """The target labels of kernels that bring their own."""
    from wassemble.kernels import LabelledKernel
    from wassemble.labels import LabelSpace

    found = list(kernel.values()) if isinstance(kernel, dict) else [kernel]
    if not all(isinstance(k, LabelledKernel) for k in found):
        return None
    return LabelSpace.union(*(k.target for k in found))


def _from_confusion(
    values: dict[str, Any],
    files: Sequence[PredictionFile],
    fusion: Fusion,
    reading: FileOptions,
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
    truth = _names_of(path, read_truth_file(path, values["truth_column"], reading, files))
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
            prior=values["prior"],
            fold=fold,
            aliases=aliases.of_model(file.model),
            other=others.get(file.model),
        )
        best = np.nan_to_num(seen.scores).argmax(axis=1)
        means = seen.labels.match(target, aliases=aliases.of_model(file.model), fold=fold)
        right = means.positions[best] == target.positions(truth[str(s)] for s in seen.samples)
        accuracy[file.model] = float(np.mean(right & seen.answered))
    return KernelChoice(kernels, target, accuracy, doubts)


def _names_of(path: Path, truth: Predictions) -> dict[str, str]:
    """The true label of each sample."""
    from wassemble.inputs.predictions.truth import say_column

    found: dict[str, str] = {}
    for sample, row in zip(truth.samples, truth.scores, strict=True):
        labels = [truth.labels[i] for i in (row > 0).nonzero()[0]]
        if len(labels) != 1:
            is_alone = not truth.is_hard and len(truth.labels) == 1
            fail(
                f"{path}: a sample must have one true label; got {len(labels) or 'none'} for"
                f" {sample!r}.",
                hint=say_column(truth, truth.labels[0]) if is_alone else None,
            )
        found[str(sample)] = labels[0]
    return found


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
