"""The fusion options of a command, and the `Fusion` that they ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click

from wassemble.cli.kernel_options import KernelChoice, choose_kernel, find_origins, kernel_options
from wassemble.cli.options import (
    ModelFiles,
    NumberOr,
    aliases_option,
    allow_disjoint_option,
    fold_option,
    other_option,
    read_labels,
    read_meanings,
    shown_option,
    stack,
    target_option,
    truth_column_option,
)
from wassemble.cli.places import Within
from wassemble.errors import fail

if TYPE_CHECKING:
    from pathlib import Path

    from wassemble.ensemble import Fusion
    from wassemble.labels import LabelSpace
    from wassemble.solvers import Rule

# What the exact barycenter in a tree has no use for.
_NOT_EXACT = {"kernels": "--kernel", "epsilon": "--epsilon", "ordered": "--ordered"}

sweep_options = stack(
    click.option(
        "--balanced",
        is_flag=True,
        help="Use the paper's Algorithm 1, in which a label that one model gives no score is ruled"
        " out; for probabilities.  [default: Algorithm 2, in which it is not]",
    ),
    click.option(
        "--mass-penalty",
        type=float,
        metavar="NUMBER",
        help="Penalty of the paper's Algorithm 2: the larger it is, the less the sum of a model's"
        " scores may differ from that of the consensus.  [default: 2, with an epsilon of 0.3]",
    ),
    click.option(
        "--max-sweeps",
        type=int,
        help="Number of sweeps after which a sample is given up as not converged.  [default: 1000]",
    ),
    click.option(
        "--tolerance",
        type=NumberOr("none"),
        metavar="NUMBER|none",
        help="A sample has converged when a sweep changes it by less. none: always do"
        " --max-sweeps sweeps.  [default: 1e-6]",
    ),
    group="Rule",
)

fusion_options = stack(
    stack(
        target_option,
        aliases_option,
        other_option,
        fold_option,
        truth_column_option,
        shown_option(
            "--samples",
            type=click.Choice(["all", "common"]),
            default="all",
            help="all: fuse every sample that some file has. common: only those that all files"
            " have.",
        ),
        allow_disjoint_option,
        shown_option(
            "--unobserved",
            type=click.Choice(["spread", "renormalize", "drop"]),
            default="spread",
            help="What to do about labels that a file gives no score, as beyond a top 5. spread:"
            " share the probability that is missing among them. renormalize: divide the scores that"
            " are there by their sum. drop: count them as 0.",
        ),
        shown_option(
            "--hard-confidence",
            type=float,
            default=0.9,
            help="Probability that is assumed for a label that comes without a score.",
        ),
        shown_option(
            "--leftover",
            type=float,
            default=0.05,
            help="How much of its weight, from 0 to 1, a model keeps on labels that are not among"
            " its own but similar to them by its kernel; on all others it has none.",
        ),
        group="Labels and samples",
    ),
    kernel_options,
    stack(
        shown_option(
            "--rule",
            type=click.Choice(["barycenter", "arithmetic", "geometric", "hellinger"]),
            default="barycenter",
            help="How models are combined: by the Wasserstein barycenter, or by a mean of what each"
            " model says once its own kernel has been applied.",
        ),
        click.option(
            "--weights",
            metavar="MODEL=W,...|accuracy",
            help="How much each model counts; weights must sum to 1. accuracy: in proportion to"
            " what each model gets right, with --confusion.  [default: equal]",
        ),
        click.option(
            "--ordered",
            is_flag=True,
            help="Take the exact barycenter of labels on a line, which needs no kernel to know what"
            " is near. They lie where --target says; else, if all are numbers, where these lie;"
            " else in the order of the first file.",
        ),
        click.option(
            "--power",
            type=Within(click.IntRange(1, 2), "1|2"),
            help="With --ordered: 1 takes the median of the models' distribution functions, 2 the"
            " mean of their quantiles.  [default: 2]",
        ),
        click.option(
            "--exact",
            is_flag=True,
            help="With --tree: take the exact barycenter in the tree, in which every label must be"
            " a node and which may have lengths as a third column. A label above those of --target"
            " counts for all that are below it.",
        ),
        sweep_options,
        click.option(
            "--n-top",
            type=int,
            help="Use only so many of the largest scores of each sample, which is faster with many"
            " labels.  [default: all]",
        ),
        click.option("--n-threads", type=int, help="Number of threads.  [default: all cores]"),
        group="Rule",
    ),
)


def read_fusion(
    values: dict[str, Any], models: Sequence[Any], inputs: ModelFiles
) -> tuple[Fusion, tuple[str, ...]]:
    """The fusion that a command's options describe, and what looks as if it was not meant.

    ``models``, open files or folders, are what the options speak of.
    """
    from wassemble.ensemble import Fusion

    as_they_are = ("samples", "allow_disjoint", "leftover", "unobserved", "hard_confidence")
    weights = None if values["weights"] == "accuracy" else read_weights(values["weights"])
    if values["power"] is not None and not values["ordered"]:
        fail("--power must go with --ordered; got none.", hint="leave it out")
    fusion = Fusion(
        _read_line(values) if values["ordered"] else read_rule(values),
        target=read_target(values),
        weights=weights,
        kind=inputs.kind,
        **read_meanings(values["aliases"], values["others"], models, fold=values["fold"]),
        **{name: values[name] for name in as_they_are},
    )
    if values["exact"]:
        fusion, chosen = _read_tree(values, models, fusion), KernelChoice(None, None)
    else:
        chosen = choose_kernel(values, models, fusion, inputs)
    if values["weights"] == "accuracy":
        weights = _by_accuracy(chosen.accuracy)
    if chosen.kernel is not None:
        fusion = fusion.replace(kernel=chosen.kernel, target=chosen.target, weights=weights)
    return fusion, chosen.doubts


def read_target(values: dict[str, Any]) -> LabelSpace | None:
    """The labels of the consensus, if an option names them."""
    if values["target"] is None and values["scales"]:
        fail("--scales must go with --target, grades from the lowest to the highest; got none.")
    if values["target"] is None:
        return None
    target = read_labels(values["target"])
    return _read_scale(target) if values["scales"] else target


def _read_scale(target: LabelSpace) -> LabelSpace:
    """The target of scales, numbers where they lie: the rule has to see them there, too."""
    from wassemble.kernels.builders.scales import check_ascent
    from wassemble.labels import are_numbers, at_numbers

    is_placed = target.positions is not None or not are_numbers(target)
    return target if is_placed else at_numbers(check_ascent(target))


def _read_line(values: dict[str, Any]) -> Rule:
    """The exact barycenter on a line."""
    import wassemble as ws

    _refuse_sweeps(values, "ordered")
    return ws.LineBarycenter(values["power"] or 2)


def _read_tree(values: dict[str, Any], models: Sequence[Any], fusion: Fusion) -> Fusion:
    """A fusion by the exact barycenter in a tree, of its target labels or of all by name."""
    from wassemble.ensemble.members import merge_labels

    _refuse_sweeps(values, "exact")
    refuse_beside_tree(values)
    make_rule, kernel = read_tree(values["tree"], has_target=fusion.target is not None)
    target, others = fusion.target, cast("dict[str, str]", fusion.other or {})
    if target is None:
        spaces = [(model.model, model.labels) for model in models]
        target = merge_labels(spaces, fusion.aliases, others, fold=fusion.fold)
    return fusion.replace(rule=make_rule(target), kernel=kernel, target=target)


def read_tree(path: Path, *, has_target: bool) -> tuple[Callable[[Any], Rule], Any]:
    """The exact barycenter in a tree by its target labels, and how labels above these count."""
    from wassemble.ensemble import tree_barycenter
    from wassemble.inputs import read_edges
    from wassemble.kernels import from_descendants

    edges = read_edges(path)
    kernel = partial(from_descendants, edges=edges) if has_target else None
    return partial(tree_barycenter, edges=edges), kernel


def refuse_beside_tree(values: dict[str, Any]) -> None:
    """Refuse what the exact barycenter in a tree has no use for, and no tree."""
    given = [f"--{name}" for name in find_origins(values)]
    given += [flag for name, flag in _NOT_EXACT.items() if values.get(name)]
    if given != ["--tree"]:
        fail(f"--exact must go with --tree alone; got {' and '.join(given) or 'none'}.")


def _refuse_sweeps(values: dict[str, Any], exact: str) -> None:
    """Refuse what an exact barycenter has not: another rule, and the knobs of sweeps."""
    if values["rule"] != "barycenter":
        fail(f"--{exact} must go with the barycenter; got --rule {values['rule']}.")
    for name in ("balanced", "mass_penalty", "max_sweeps", "tolerance", "n_top"):
        if values[name] not in (None, False):
            fail(f"--{name.replace('_', '-')} must go with sweeps; got --{exact}, which has none.")


def read_rule(values: dict[str, Any]) -> Rule:
    """The rule, with the knobs that were given."""
    import wassemble as ws

    means = {"arithmetic": ws.ARITHMETIC, "geometric": ws.GEOMETRIC, "hellinger": ws.HELLINGER}
    names = ("balanced", "mass_penalty", "max_sweeps", "tolerance", "n_top")
    given = {name: values[name] for name in names if name in values}
    knobs = {name: it for name, it in given.items() if it is not None and it is not False}
    if values.get("rule") in means:
        for name in knobs:
            option = f"--{name.replace('_', '-')}"
            fail(f"{option} must go with the barycenter; got --rule {values['rule']}.")
        return means[values["rule"]]
    mass: ws.solvers.MassRule = ws.USUAL_RULE.mass
    is_balanced, mass_penalty = knobs.pop("balanced", False), knobs.pop("mass_penalty", None)
    if is_balanced and mass_penalty is not None:
        fail("--balanced and --mass-penalty are two algorithms; got both.")
    if is_balanced:
        mass = ws.Balanced()
    elif mass_penalty is not None:
        epsilon = values["epsilon"] if isinstance(values["epsilon"], float) else 0.3
        mass = ws.Unbalanced(mass_penalty, epsilon=epsilon)
    if knobs.get("tolerance") == "none":
        knobs["tolerance"] = None
    return ws.Barycenter(mass, **knobs)


def read_weights(text: str | None) -> dict[str, float] | None:
    """Weights by the names of models: MODEL=NUMBER,MODEL=NUMBER."""
    if text is None:
        return None
    weights = {}
    for part in text.split(","):
        model, sign, number = part.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not sign or not math.isfinite(weight):
            fail(f"--weights must read MODEL=NUMBER,MODEL=NUMBER; got {part!r}.")
        weights[model.strip()] = weight
    return weights


def _by_accuracy(accuracy: dict[str, float] | None) -> dict[str, float]:
    """Weights in proportion to what each model got right."""
    if accuracy is None:
        fail("--weights accuracy must go with --confusion, which says what is right.")
    total = sum(accuracy.values())
    if total == 0:
        fail("--weights accuracy: some model must be right about some sample; got none.")
    return {model: right / total for model, right in accuracy.items()}
