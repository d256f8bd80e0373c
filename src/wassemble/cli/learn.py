"""`wassemble fit`, `predict`, `evaluate` and `report`: an ensemble learned and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from wassemble.cli.console import csv_printer, print_json, print_table, progress_bar, talk
from wassemble.cli.fusion_options import read_target, read_tree, refuse_beside_tree
from wassemble.cli.kernel_options import kernel_options, read_kernel
from wassemble.cli.options import (
    PATH,
    ModelFiles,
    aliases_option,
    allow_disjoint_option,
    check_as_json,
    file_arguments,
    fold_option,
    gold_option,
    hide,
    optional_truth_option,
    other_option,
    output_options,
    read_meanings,
    shown_option,
    stack,
    target_option,
    top_option,
    truth_column_option,
    truth_option,
)
from wassemble.cli.places import Command, EnsembleFolder, Output
from wassemble.errors import WassembleError, fail

if TYPE_CHECKING:
    from wassemble.ensemble.learning import LearnedEnsemble
    from wassemble.inputs import Predictions


_ensemble = click.argument("ensemble", type=EnsembleFolder(path_type=Path))
_aliases = click.option(
    "--aliases",
    type=PATH,
    help="Table of what labels stand for (source, target, and if need be model): for labels in"
    " FILES that ENSEMBLE was not learned from, the learned label that each stands for. What was"
    " said to `fit` need not be said again.",
)


_groups = click.option(
    "--groups",
    type=PATH,
    help="Table with the columns sample and group; may be the truth file. Samples of one group,"
    " such as frames of one video, stand and fall together: errors are those of drawing whole"
    " groups.",
)
_judged = stack(
    _ensemble, file_arguments, truth_option, truth_column_option, _groups, _aliases, fold_option
)


def _match(
    ensemble: Path, inputs: ModelFiles, aliases: Path | None, *, fold: bool = False, quiet: bool
) -> tuple[LearnedEnsemble, list[Predictions]]:
    """What was learned, and the files as the models that it was learned from.

    Says so if labels had to tell which is which.
    """
    from wassemble.ensemble.learning import LearnedEnsemble
    from wassemble.inputs import read_aliases

    learned = LearnedEnsemble.load(ensemble)
    if learned.fusion.normalize:  # as it was said to `fit`
        inputs = replace(inputs, normalize=True)
    places = {model: place for model, place, _ in inputs.arguments}

    def remedy(told: Mapping[str, str | None], candidates: Sequence[str]) -> str:
        said = (f"{name}={'FILE' if own is None else places[own]}" for name, own in told.items())
        rest = " or ".join(places[each] for each in candidates)
        return f"say NAME=FILE: {' '.join(said)}, where FILE is {rest}"

    matched = learned.match(
        inputs.read(),
        remedy=remedy,
        aliases=None if aliases is None else read_aliases(aliases),
        fold=fold,
    )
    if matched.by_labels:
        talk(str(matched), quiet=quiet)
    fusion = learned.fusion
    meanings = {"kind": fusion.kind, "aliases": fusion.aliases, "other": fusion.other}
    _tell_inputs(matched.models, meanings, is_learned=True, quiet=quiet)
    return learned, matched.models


def _tell_inputs(
    models: list[Predictions],
    meanings: dict[str, Any],
    *,
    is_learned: bool = False,
    quiet: bool,
) -> None:
    """Say what was read, as `fuse` does."""
    from wassemble.ensemble import Fusion
    from wassemble.ensemble.tables import align_samples

    account = Fusion(**meanings).open_account(models)
    account.is_learned = is_learned
    account.read_from([each.origin for each in models])
    account.add_inputs(align_samples(models))
    for line in account.input_lines():
        talk(line, quiet=quiet)


@click.command(
    cls=Command,
    start_with=("truth", "out", "metric", "target"),
    short_help="Learn how to fuse models, with known labels or without.",
)
@file_arguments
@optional_truth_option
@stack(
    truth_column_option,
    gold_option,
    _groups,
    aliases_option,
    other_option,
    fold_option,
    group="Labels and samples",
)
@click.option(
    "--out",
    type=Output(is_folder=True, path_type=Path),
    required=True,
    help="Folder to write the learned ensemble to.",
)
@click.option(
    "--metric",
    help="What to optimise: accuracy, log_loss, brier_score, rps or quadratic_kappa (where labels"
    " lie on a line), mAP or the name of a scikit-learn scorer.  [default: accuracy, or mAP where"
    " samples have several labels]",
)
@target_option
@kernel_options
@stack(
    shown_option(
        "--caution",
        type=float,
        default=0.5,
        help="Take a richer rule only if it beats the simpler ones by more than this many standard"
        " errors; 0 takes the best estimate.",
    ),
    click.option(
        "--exact",
        is_flag=True,
        help="With --tree: try the exact barycenter in the tree, in which every label must be a"
        " node, in place of a kernel. A label above those of --target counts for all that are"
        " below it.",
    ),
    click.option(
        "--time-budget",
        type=float,
        help="Finish within so many seconds, with the best rule found by then.  [default: try all]",
    ),
    click.option(
        "--n-folds",
        type=int,
        help="Number of folds for cross-validation.  [default: 5, or fewer for rare labels]",
    ),
    shown_option("--seed", type=int, default=0, help="Seed of the folds and of the bootstrap."),
    group="Rule",
)
@stack(
    click.option(
        "--log",
        type=Output(path_type=Path),
        help="File that records every rule tried; after an interruption, the same command goes on"
        " from it.",
    ),
    group="Output",
)
@output_options
def fit(
    inputs: ModelFiles,
    truth: Path | None,
    truth_column: str | None,
    gold: Path | None,
    out: Path,
    metric: str | None,
    target: Path | None,
    groups: Path | None,
    caution: float,
    time_budget: float | None,
    n_folds: int | None,
    seed: int,
    log: Path | None,
    aliases: Path | None,
    others: tuple[str, ...],
    fold: bool,
    exact: bool,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Learn how best to fuse the models in FILES, from samples with known labels or without.

    With --truth: single models, means, barycenters, stacking by logistic regression and the
    stacked consensus of all of these are compared by cross-validation. A richer rule is taken only
    if its gain over the simpler ones, by nested choice, is more than --caution standard errors of
    the paired difference; the reason is given either way. Nested choice takes on each fold the
    rule that is best on the others: an honest estimate, where the table flatters the best of many,
    picked on the same folds. Kernels from the models' own mistakes are always tried; the options
    under Kernel add another. Ctrl-C ends the search and keeps the best rule so far.

    Without --truth models are judged by each other: equal weights, weights by agreement,
    reliability per model, per model and label, and confusions; a richer one is taken only if the
    consensus of some models then foretells better what the others answer. Models that repeat each
    other share their vote. A sample without an answer in a file is a silence of its model; a
    sample that is not in the file was never asked.

    \b
    wassemble fit a.csv b.csv c.npz --out ensemble
    wassemble fit a.csv b.csv c.npz --truth validation.csv --out ensemble
    wassemble fit a.csv b.csv --truth val.csv --embeddings glove.txt --metric log_loss --out e
    wassemble predict ensemble new_a.csv new_b.csv new_c.npz --out fused.csv
    """
    from wassemble.ensemble.learning import learn_ensemble

    if values["confusion"] is not None:
        fail("kernels from mistakes are always tried; got --confusion.", hint="leave it out")
    models = inputs.read()
    goal = read_target(values | {"target": target})
    rules: list[Any] = []
    if exact:
        refuse_beside_tree(values)
        in_tree, kernel = read_tree(values["tree"], has_target=goal is not None)
        rules.append(in_tree)
    else:
        kernel = read_kernel(values, [model.model for model in models])
    meanings = read_meanings(aliases, others, models, fold=fold)
    if goal is None and hasattr(kernel, "target"):
        goal = kernel.target
    known = None if truth is None else inputs.read_truth(truth, truth_column, models)
    with _keeping(log), progress_bar("trying rules", quiet=quiet) as progress:
        learned = learn_ensemble(
            models,
            known,
            gold=None if gold is None else inputs.read_truth(gold, truth_column, models),
            metric=metric,
            kernels=None if kernel is None else {"given kernel": kernel},
            rules=rules,
            target=goal,
            kind=inputs.kind,
            **meanings,
            normalize=inputs.normalize,
            groups=_read_groups(groups, inputs, models),
            caution=caution,
            n_folds=n_folds,
            time_budget=time_budget,
            seed=seed,
            log=log,
            progress=progress,
        )
    learned.save(out)
    # What leads nowhere by name may lead somewhere by a kernel.
    meanings |= {"kind": inputs.kind, "target": learned.target if kernel is None else None}
    _tell_inputs(models, meanings, quiet=quiet)
    if known is not None:
        _tell_truth(known, models, quiet=quiet)
    if as_json:
        print_json(learned.to_dict())
    else:
        judged = learned.metric if learned.n_gold is None else "log likelihood of left-out answers"
        _print_rules(judged, learned.leaderboard)
    for line in learned.report.splitlines():
        talk(line, quiet=quiet)
    talk(
        f"{out}: learned from {learned.n_samples:,} samples in {learned.seconds:.1f} s", quiet=quiet
    )


hide(fit, "confusion", "prior")


def _tell_truth(truth: Predictions, models: list[Predictions], *, quiet: bool) -> None:
    """Say which samples of the truth, and of the models, have no counterpart."""
    told = set(map(str, truth.samples.tolist()))
    given = {str(sample) for model in models for sample in model.samples.tolist()}
    if told - given:
        talk(f"truth: {len(told - given):,} of {len(told):,} samples are in no model", quiet=quiet)
    if given - told:
        without = f"{len(given - told):,} of {len(given):,} samples of the models"
        talk(f"truth: not known for {without}: they are left out", quiet=quiet)


@contextmanager
def _keeping(log: Path | None) -> Iterator[None]:
    """Say of an interruption that nothing came of that the log is kept."""
    try:
        yield
    except KeyboardInterrupt:
        if log is None or not log.exists():
            raise
        raise WassembleError(
            f"interrupted; {log} is kept, and the same command goes on from it."
        ) from None


def _read_groups(path: Path | None, inputs: ModelFiles, models: list[Predictions]) -> Any:
    """The group of each sample, by id."""
    if path is None:
        return None
    return inputs.read_truth(path, "group", models)


@click.command(cls=Command, short_help="Fuse new files with a learned ensemble.")
@_ensemble
@file_arguments
@click.option(
    "--out",
    type=Output(path_type=Path),
    help="File to write the consensus to; its ending says the format.  [default: CSV on standard"
    " output]",
)
@top_option
@_aliases
@allow_disjoint_option
@output_options
def predict(
    ensemble: Path,
    inputs: ModelFiles,
    aliases: Path | None,
    allow_disjoint: bool,
    out: Path | None,
    top: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fuse the predictions in FILES as ENSEMBLE says, the folder that `fit` wrote.

    Files are matched with the models that were learned from by name, as when fitting; files
    with new names by their label sets, if no two models have the same. If some have, say
    which is which: MODEL=FILE.

    \b
    wassemble predict ensemble new_a.csv new_b.csv new_c.npz --out fused.parquet
    wassemble predict ensemble a=new_a.csv b=new_b.csv c=new_c.npz --top 1 --out answers.csv
    """
    from wassemble.inputs import write_predictions
    from wassemble.inputs.formats import recognise
    from wassemble.inputs.predictions.top_labels import check_top_file, print_top, write_top

    check_as_json(as_json, out)
    if out is not None:  # a wrong ending is told before the work, not after it
        recognise(out) if top is None else check_top_file(out)
    learned, models = _match(ensemble, inputs, aliases, quiet=quiet)
    consensus = learned.predict(models, allow_disjoint=allow_disjoint)
    if out is None:
        (csv_printer() if top is None else print_top(top))(consensus)
    elif top is None:
        write_predictions(out, consensus)
    else:
        with write_top(out, top) as write:
            write(consensus)
    rule, n_samples = learned.fitted.recipe.name, consensus.n_samples
    if as_json:
        print_json({"rule": rule, "n_samples": n_samples, "out": str(out)})
    gaps = learned.describe_gaps(consensus, models)
    if gaps is not None:
        talk(gaps, quiet=quiet)
    talk(f"{n_samples:,} samples by {rule}", quiet=quiet)


@click.command(cls=Command, short_help="Test a learned ensemble on other samples.")
@_judged
@output_options
def evaluate(
    ensemble: Path,
    inputs: ModelFiles,
    aliases: Path | None,
    fold: bool,
    groups: Path | None,
    truth: Path,
    truth_column: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Test ENSEMBLE, the folder that `fit` wrote, on samples that it was not learned from.

    Shows the score of the chosen rule and of its rivals, and by how much they differ. The best
    simple rule is the best single model or mean, weights learned or not, beside the chosen rule.
    FILES are matched as in `predict`.

    \b
    wassemble evaluate ensemble test_a.csv test_b.csv test_c.npz --truth test.csv
    """
    from wassemble.ensemble.learning.evaluation import evaluate_ensemble

    learned, models = _match(ensemble, inputs, aliases, fold=fold, quiet=quiet)
    known = inputs.read_truth(truth, truth_column, models)
    grouped = _read_groups(groups, inputs, models)
    evaluation = evaluate_ensemble(learned, models, known, groups=grouped, fold=fold)
    if as_json:
        print_json(evaluation.to_dict())
        return
    seconds = [f"{each.microseconds:.1f}" for each in evaluation.outcomes]
    _print_rules(evaluation.metric, evaluation.outcomes, {"microseconds per sample": seconds})
    for line in evaluation.conclusion():
        talk(line, quiet=quiet)


@click.command(
    cls=Command, short_help="Write a page about a learned ensemble and how well it does."
)
@_judged
@click.option(
    "--out",
    type=Output(path_type=Path, beside=lambda page: [page.with_suffix(".json")]),
    required=True,
    help="File to write the page to, .html; its figures go beside it, as .json.",
)
@click.option("--title", help="Title of the page.")
@output_options
def report(
    ensemble: Path,
    inputs: ModelFiles,
    aliases: Path | None,
    fold: bool,
    groups: Path | None,
    truth: Path,
    truth_column: str | None,
    out: Path,
    title: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a page that says what ENSEMBLE does, why it was chosen, and how well it does.

    ENSEMBLE is the folder that `fit` wrote; it is tested on samples that it was not learned
    from. FILES are matched as in `predict`. The page opens without a network.

    \b
    wassemble report ensemble test_a.csv test_b.csv test_c.npz --truth test.csv --out report.html
    """
    from wassemble.report import write_report

    if out.suffix.lower() != ".html":
        fail(f"--out must end in .html; got {out.name}.")
    learned, models = _match(ensemble, inputs, aliases, fold=fold, quiet=quiet)
    known = inputs.read_truth(truth, truth_column, models)
    grouped = _read_groups(groups, inputs, models)
    write_report(learned, models, known, out, title=title, groups=grouped, fold=fold)
    if as_json:
        click.echo(out.with_suffix(".json").read_text(encoding="utf-8"))
    talk(f"wrote {out} and {out.with_suffix('.json')}", quiet=quiet)


def _print_rules(
    metric: str, rules: Sequence[Any], more: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> None:
    """A table of rules, the chosen one with a star, with ``more`` columns."""
    rows = [
        [
            ("* " if each.is_chosen else "  ") + each.name,
            f"{each.score:.4f}",
            f"{each.standard_error:.4f}",
            "" if each.against_chosen is None else f"{each.against_chosen.difference:+.4f}",
            *(column[place] for column in more.values()),
        ]
        for place, each in enumerate(rules)
    ]
    print_table(["rule", metric, "standard error", "against the chosen", *more], rows)
