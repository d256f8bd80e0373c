"""Options that several commands share, and what they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from itertools import count, islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from wassemble.cli.config import config_option
from wassemble.cli.places import NamedFile
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.inputs import DataSet, PredictionFile, Predictions, Reading
    from wassemble.labels import LabelSpace

__all__ = [
    "FileOptions",
    "aliases_option",
    "allow_disjoint_option",
    "file_arguments",
    "fold_option",
    "fusion_options",
    "hide",
    "is_given",
    "kernel_options",
    "open_files",
    "open_models",
    "other_option",
    "output_options",
    "read_arguments",
    "read_labels",
    "read_meanings",
    "read_truth_file",
    "split_names",
    "top_option",
    "truth_column_option",
]

Function = TypeVar("Function", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
_SHOWN: Any = {"show_default": True}
_Argument = tuple[str, str, "Reading"]  # model, place, and how to read it


def _stack(*decorators: Callable[[Any], Any]) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


class _Epsilon(click.ParamType):
    name = "NUMBER|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        if value == "auto":
            return "auto"
        try:
            number = float(value)
        except ValueError:
            self.fail(f'must be a number or "auto"; got {value!r}.', param, ctx)
        if not 0 < number < math.inf:
            self.fail(f'must be a number above 0 or "auto"; got {value}.', param, ctx)
        return number


class _Tolerance(click.ParamType):
    name = "NUMBER|none"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        if value == "none":
            return "none"
        try:
            return float(value)
        except ValueError:
            self.fail(f'must be a number or "none"; got {value!r}.', param, ctx)


@dataclass(frozen=True)
class FileOptions:
    """How prediction files are read, as the options of `file_arguments` say it for all models."""

    id_column: tuple[str, ...]
    label_column: tuple[str, ...]
    score_column: tuple[str, ...]
    labels: tuple[str, ...]
    kind: Any
    by_row: bool
    normalize: bool


_file_arguments = _stack(
    click.argument("files", nargs=-1, required=True, type=NamedFile(), metavar="[MODEL=]FILE..."),
    click.option(
        "--id-column",
        multiple=True,
        metavar="[MODEL=]NAME",
        help="Column that holds the sample ids, in all files or in that of MODEL; may be repeated."
        "  [default: sample, sample_id, id, or the only column of text]",
    ),
    click.option(
        "--label-column",
        multiple=True,
        metavar="[MODEL=]NAME",
        help="Column that holds the labels, in files with one row per sample and label: in all"
        " files or in that of MODEL; may be repeated.  [default: label]",
    ),
    click.option(
        "--score-column",
        multiple=True,
        metavar="[MODEL=]NAME",
        help="Column that holds the scores, in files with one row per sample and label: in all"
        " files or in that of MODEL; may be repeated.  [default: score]",
    ),
    click.option(
        "--by-row",
        is_flag=True,
        help="Match rows by their order instead of by sample ids, for files without ids.",
    ),
    click.option(
        "--labels",
        type=NamedFile(),
        multiple=True,
        metavar="[MODEL=]FILE",
        help="Text file with every label that a model could have answered, one per line; for files"
        " that list only labels that occur. May be repeated.",
    ),
    click.option(
        "--kind",
        type=click.Choice(["multiclass", "multilabel"]),
        help="multiclass: one label per sample, scores are probabilities. multilabel: any number"
        " of labels per sample.  [default: detected from the scores]",
    ),
    click.option(
        "--normalize",
        is_flag=True,
        help="Divide each row by its sum: for counts, percentages, and probabilities that were"
        " rounded or cut off.",
    ),
)


def file_arguments(function: Function) -> Function:
    """Prediction files, which the command gets as ``files``, and how to read them: ``reading``."""

    @wraps(function)
    def collect(*arguments: Any, **values: Any) -> Any:
        reading = FileOptions(**{each.name: values.pop(each.name) for each in fields(FileOptions)})
        return function(*arguments, reading=reading, **values)

    return cast("Function", _file_arguments(collect))


kernel_options = _stack(
    click.option(
        "--kernel",
        "kernels",
        type=NamedFile(),
        multiple=True,
        metavar="[MODEL=]FILE",
        help="Kernel from a file that `wassemble kernel` saved, or from a table (.csv, .parquet)"
        " with the columns source, target and similarity. MODEL= gives each model its own.",
    ),
    click.option(
        "--embeddings",
        type=_PATH,
        help="Kernel from word vectors of the labels: a file of GloVe, word2vec or fastText, or"
        " .npz.",
    ),
    click.option(
        "--synonyms",
        type=_PATH,
        help="Kernel from a table of synonyms, with the columns word, synonym and votes.",
    ),
    click.option(
        "--tree",
        type=_PATH,
        help="Kernel from distances in a tree of labels: a file with a parent and a child on each"
        " line.",
    ),
    click.option(
        "--graph",
        type=_PATH,
        help="Kernel from distances in a graph of labels: a file with two names on each line and,"
        " if edges differ, the cost of going from one to the other.",
    ),
    click.option(
        "--attributes",
        type=_PATH,
        help="Kernel from a table of which target label has which attribute: one row per"
        " attribute, which is what the models predict, and one column per target label.",
    ),
    click.option(
        "--costs",
        type=_PATH,
        help="Kernel from a table of how much labels differ: one row per label of the models, one"
        " column per target label.",
    ),
    click.option(
        "--ratings",
        type=_PATH,
        help="Kernel from a table of how similar labels are: one row per label of the models, one"
        " column per target label.",
    ),
    click.option(
        "--confusion",
        type=_PATH,
        help="A kernel for each model from its own mistakes: a table with the columns sample and"
        " label, the true one, for some of the samples.",
    ),
    click.option("--spelling", is_flag=True, help="Kernel from how alike labels are spelled."),
    click.option(
        "--epsilon",
        type=_Epsilon(),
        default="auto",
        help="How far a score spreads to similar labels: the larger, the farther. auto chooses it"
        " so that each label has a few neighbours.",
        **_SHOWN,
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
        default=0.2,
        help="With --confusion: how strongly a label is taken to mean what its name says, until"
        " enough mistakes speak against it.",
        **_SHOWN,
    ),
)

aliases_option = click.option(
    "--aliases",
    type=_PATH,
    help="Table of what labels stand for: source, target, and if need be model and weight."
    " Labels that it does not list go by their names.",
)

other_option = click.option(
    "--other",
    "others",
    multiple=True,
    metavar="[MODEL=]LABEL",
    help='The label by which a model says "none of my labels": its mass may go to every target'
    " label that the model does not declare.",
)

truth_column_option = click.option(
    "--truth-column",
    metavar="NAME",
    help="Column that holds the true labels, in a table that may have other columns too."
    "  [default: label, or the only column beside the ids if it is text]",
)

fold_option = click.option(
    "--fold", is_flag=True, help="Match labels whatever their case, and with _ and - as spaces."
)

allow_disjoint_option = click.option(
    "--allow-disjoint",
    is_flag=True,
    help="Fuse files that have no samples, or few, in common; without it, that is an error or a"
    " warning.",
)

fusion_options = _stack(
    click.option(
        "--target",
        type=_PATH,
        help="Text file with the labels that the consensus is to have, one per line.  [default:"
        " those of all models]",
    ),
    aliases_option,
    other_option,
    truth_column_option,
    fold_option,
    click.option(
        "--samples",
        type=click.Choice(["all", "common"]),
        default="all",
        help="all: fuse every sample that some file has. common: only those that all files have.",
        **_SHOWN,
    ),
    allow_disjoint_option,
    click.option(
        "--weights",
        metavar="MODEL=W,...|accuracy",
        help="How much each model counts; weights must sum to 1. accuracy: in proportion to what"
        " each model gets right, with --confusion.  [default: equal]",
    ),
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
        help="Penalty of the paper's Algorithm 2: the larger, the less may a model's scores differ"
        " in sum from those of the consensus.  [default: 2, with an epsilon of 0.3]",
    ),
    click.option(
        "--rule",
        type=click.Choice(["barycenter", "arithmetic", "geometric", "hellinger"]),
        default="barycenter",
        help="How models are combined: by the Wasserstein barycenter, or by a mean of what each"
        " model says once its own kernel has been applied.",
        **_SHOWN,
    ),
    click.option(
        "--leftover",
        type=float,
        default=0.05,
        help="How much of its weight a model has on labels that it does not know but that its"
        " kernel reaches, from 0 to 1.",
        **_SHOWN,
    ),
    click.option(
        "--unobserved",
        type=click.Choice(["spread", "renormalize", "drop"]),
        default="spread",
        help="Scores that a file does not report, as beyond a top 5. spread: share the missing"
        " probability out among them. renormalize: divide what is there by its sum. drop: leave"
        " them out.",
        **_SHOWN,
    ),
    click.option(
        "--hard-confidence",
        type=float,
        default=0.9,
        help="Probability that is assumed for a label that comes without a score.",
        **_SHOWN,
    ),
    click.option(
        "--max-sweeps",
        type=int,
        default=1000,
        help="Number of sweeps after which a sample is given up as not converged.",
        **_SHOWN,
    ),
    click.option(
        "--tolerance",
        type=_Tolerance(),
        default="1e-6",
        help="A sample has converged when a sweep changes it by less. none: always do"
        " --max-sweeps sweeps.",
        **_SHOWN,
    ),
    click.option(
        "--n-top",
        type=int,
        help="Use only so many of the largest scores of each sample, which is faster with many"
        " labels.  [default: all]",
    ),
    click.option("--n-threads", type=int, help="Number of threads.  [default: all cores]"),
)

output_options = _stack(
    click.option(
        "--json", "as_json", is_flag=True, help="Print what was found as JSON on standard output."
    ),
    click.option("--quiet", is_flag=True, help="Print no messages, only errors."),
    config_option,
)

top_option = click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="K",
    help="Write the K best labels of each sample instead of all scores: a table with the columns"
    " sample, label and confidence, best first. With 1, the answer for each sample.",
)


def hide(command: click.Command, *names: str) -> None:
    """Leave options out of a help text: the command refuses them, and says what to do."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name in names:
            parameter.hidden = True


def is_given(name: str) -> bool:
    """Whether a flag or --config says something about an option of this command."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT


def split_names(values: tuple[str, ...], what: str) -> tuple[dict[str, Path], Path | None]:
    """``MODEL=FILE`` pairs, and the one FILE that is for all."""
    named: dict[str, Path] = {}
    shared: Path | None = None
    for value in values:
        name, sign, path = value.partition("=")
        if sign and not Path(value).exists():
            named[name] = Path(path)
        elif shared is None:
            shared = Path(value)
        else:
            fail(f"{what} for all models must be one; got {shared} and {value}.")
    return named, shared


def read_meanings(aliases: Path | None, others: tuple[str, ...], models: Any) -> dict[str, Any]:
    """What labels of the ``models`` stand for, as Python takes it: ``aliases`` and ``other``."""
    from wassemble.inputs import read_aliases

    names = [each.model for each in models]
    found: dict[str, str] = {}
    for value in others:
        model, sign, label = value.partition("=")
        if sign and model in names:
            found[model] = label
            continue
        having = [each.model for each in models if value in each.labels]
        if not having:
            fail(
                f"--other must be a label of some model; none has {value!r}.",
                hint=f"--other MODEL=LABEL names one of {', '.join(names)}",
            )
        found |= dict.fromkeys(having, value)
    return {
        "aliases": None if aliases is None else read_aliases(aliases),
        "other": found or None,
    }


def read_labels(path: Path) -> LabelSpace:
    """Label names: one a line, or those of a prediction file."""
    from wassemble.inputs import open_predictions
    from wassemble.labels import LabelSpace

    if path.suffix.lower() not in (".txt", ""):
        with open_predictions(path) as file:
            return file.labels
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        fail(f"{path}: a list of labels must be UTF-8 text.")
    except OSError as error:
        fail(f"{path}: {(error.strerror or str(error)).lower()}.")
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        fail(f"{path}: must name at least one label; got none.")
    return LabelSpace(names)


@contextmanager
def open_models(
    files: tuple[str, ...], reading: FileOptions
) -> Iterator[list[PredictionFile] | list[DataSet]]:
    """The prediction files, open, or the folders of part files, in the order given."""
    arguments = read_arguments(files, reading)
    _check_names(arguments)
    sets = _open_data_sets(arguments, reading)
    if sets is not None:
        yield sets
        return
    with _open(arguments, reading, together=True) as opened:
        yield opened


def open_files(
    files: tuple[str, ...], reading: FileOptions, *, together: bool = True
) -> AbstractContextManager[list[PredictionFile]]:
    """The prediction files, open, in the order given; ``together`` if their samples are matched."""
    arguments = read_arguments(files, reading)
    if together:
        _check_names(arguments)
    return _open(arguments, reading, together=together)


@contextmanager
def _open(
    arguments: Sequence[_Argument], reading: FileOptions, *, together: bool
) -> Iterator[list[PredictionFile]]:
    from wassemble.inputs import open_predictions
    from wassemble.inputs.folders import fetch_file
    from wassemble.inputs.predictions.overlap import common_row_ids

    with ExitStack() as stack:
        opened = [
            stack.enter_context(
                open_predictions(stack.enter_context(fetch_file(place)), how, model=model)
            )
            for model, place, how in arguments
        ]
        if reading.by_row and together:
            ids = common_row_ids(opened)
            for file in opened:
                file.samples = ids
        yield opened


def read_truth_file(
    path: Path,
    column: str | None,
    reading: FileOptions,
    models: Sequence[Any],
) -> Predictions:
    """The true labels in a file; with --by-row, of the rows of ``models``."""
    from wassemble.errors import InvalidInputError
    from wassemble.inputs.files import read_truth
    from wassemble.inputs.predictions.overlap import common_row_ids

    id_column = _column_of("truth", reading.id_column, "--id-column")
    options: dict[str, Any] = {"column": column, "by_row": reading.by_row}
    try:
        truth = read_truth(path, id_column=id_column, **options)
    except InvalidInputError as error:
        # The column that holds the models' ids may have another name here.
        if id_column is None or f"truth={id_column}" in reading.id_column:
            raise
        try:
            truth = read_truth(path, **options)
        except InvalidInputError:
            raise error from None
    if reading.by_row:
        common_row_ids([*models, truth])  # as many rows, and no other ids
        truth = truth.replace(samples=models[0].samples)
    return truth


def _open_data_sets(arguments: Sequence[_Argument], reading: FileOptions) -> list[DataSet] | None:
    """The folders of part files, in the order given; None if none of them is a folder."""
    from wassemble.inputs.folders import open_folder
    from wassemble.inputs.part_files import is_data_set, open_data_set

    places = [place for _, place, _ in arguments]
    folders = [place for place in places if is_data_set(place)]
    if not folders:
        return None
    if reading.by_row:
        fail(
            "--by-row must go with files; got folders of part files.",
            hint="samples of part files are matched by id",
        )
    if len(folders) < len(places):
        others = [place for place in places if place not in folders]
        for place in others:
            if open_folder(place).look("") is None:
                fail(f"{place}: must be a folder, as {folders[0]} is; there is nothing.")
        fail(f"models must be all files or all folders; got {folders[0]} and {others[0]}.")
    return [open_data_set(place, how, model=model) for model, place, how in arguments]


def read_arguments(files: tuple[str, ...], reading: FileOptions) -> list[_Argument]:
    """Model, place and way to read it, of each argument."""
    from wassemble.inputs.reading import Reading

    declared, for_all = split_names(reading.labels, "--labels")
    spaces: dict[Path, LabelSpace] = {}
    found = []
    for value in files:
        name, sign, rest = value.partition("=")
        # A path may hold the sign, too: date=2024-01-01/part.parquet.
        is_named = bool(sign) and "://" not in name and not Path(value).exists()
        place = rest if is_named else value
        model = name if is_named else PurePath(place.rstrip("/")).name.split(".")[0]
        own = declared.get(model, for_all)
        if own is not None and own not in spaces:
            spaces[own] = read_labels(own)
        how = Reading(
            _column_of(model, reading.id_column, "--id-column"),
            _column_of(model, reading.label_column, "--label-column"),
            _column_of(model, reading.score_column, "--score-column"),
            None if own is None else spaces[own],
            reading.kind,
            reading.by_row,
            reading.normalize,
        )
        found.append((model, place, how))
    models = [model for model, _, _ in found]
    strange = set(declared) - set(models)
    if strange:
        fail(f"--labels must name a model; got {', '.join(sorted(strange))}.")
    _check_columns("--id-column", reading.id_column, [*models, "truth"])
    _check_columns("--label-column", reading.label_column, models)
    _check_columns("--score-column", reading.score_column, models)
    return found


def _check_names(arguments: Sequence[_Argument]) -> None:
    """Refuse two files of one name, which models that are matched must not have."""
    places: dict[str, list[str]] = {}
    for model, place, _ in arguments:
        places.setdefault(model, []).append(place)
    for model, own in places.items():
        if len(own) > 1:
            free = (f"{model}_{i}" for i in count(2) if f"{model}_{i}" not in places)
            names = [model, *islice(free, len(own) - 1)]
            said = " ".join(f"{name}={place}" for name, place in zip(names, own, strict=True))
            fail(
                f"models must have different names; got {model!r} for {' and '.join(own)}.",
                hint=f"say NAME=FILE: {said}",
            )


def _check_columns(flag: str, columns: tuple[str, ...], models: Sequence[str]) -> None:
    for column in columns:
        if "=" in column and not any(column.startswith(f"{model}=") for model in models):
            name = column.partition("=")[0]
            fail(f"{flag} must name a model, one of {', '.join(models)}; got {name}.")


def _column_of(model: str, columns: tuple[str, ...], flag: str) -> str | None:
    """The column of a model that ``flag`` names: the one given for it, else the one for all."""
    own = [c.removeprefix(f"{model}=") for c in columns if c.startswith(f"{model}=")]
    shared = [c for c in columns if "=" not in c]
    if len(own) > 1 or len(shared) > 1:
        fail(f"{flag} must be one for {model}; got {', '.join(own or shared)}.")
    found = own or shared
    return found[0] if found else None
