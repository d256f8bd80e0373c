"""Options that several commands share, and the prediction files that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import cached_property, partial, wraps
from itertools import count, islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from wassemble.cli.config import config_option
from wassemble.cli.places import NamedFile, Within
from wassemble.errors import fail

if TYPE_CHECKING:
    from wassemble.inputs import DataSet, PredictionFile, Predictions, Reading
    from wassemble.labels import LabelSpace


Function = TypeVar("Function", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
shown_option = partial(click.option, show_default=True)


def stack(
    *decorators: Callable[[Any], Any], group: str | None = None
) -> Callable[[Function], Function]:
    """The decorators as one; options go into the section ``group`` of the help text."""

    def decorate(function: Any) -> Any:
        n_before = len(getattr(function, "__click_params__", ()))
        for decorator in reversed(decorators):
            function = decorator(function)
        for parameter in function.__click_params__[n_before:]:
            if group is not None and not hasattr(parameter, "group"):
                parameter.group = group
        return function

    return decorate


class NumberOr(click.ParamType):
    """A number, or a word that stands for something else."""

    def __init__(self, word: str) -> None:
        self.name = f"NUMBER|{word}"
        self._word = word

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        if value == self._word:
            return self._word
        try:
            number = float(value)
        except ValueError:
            self.fail(f'must be a number or "{self._word}"; got {value!r}.', param, ctx)
        if not 0 < number < float("inf"):
            self.fail(f'must be a number above 0 or "{self._word}"; got {value}.', param, ctx)
        return number


_COLUMNS = {
    "id": "Column that holds the sample ids, in all files or in that of MODEL; may be repeated."
    "  [default: sample, sample_id, id, or the only column of text]",
    "label": "Column that holds the labels, in files with one row per sample and label: in all"
    " files or in that of MODEL; may be repeated.  [default: label]",
    "score": "Column that holds the scores, in files with one row per sample and label: in all"
    " files or in that of MODEL; may be repeated.  [default: score]",
}
_file_arguments = stack(
    click.argument("files", nargs=-1, required=True, type=NamedFile(), metavar="[MODEL=]FILE..."),
    *(
        click.option(f"--{name}-column", multiple=True, metavar="[MODEL=]NAME", help=what)
        for name, what in _COLUMNS.items()
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
    group="Input",
)


def file_arguments(function: Function) -> Function:
    """Prediction files and how to read them, which the command gets as ``inputs``."""

    @wraps(function)
    def collect(*arguments: Any, **values: Any) -> Any:
        inputs = ModelFiles(**{each.name: values.pop(each.name) for each in fields(ModelFiles)})
        return function(*arguments, inputs=inputs, **values)

    return cast("Function", _file_arguments(collect))


aliases_option = click.option(
    "--aliases",
    type=PATH,
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
    "--fold",
    is_flag=True,
    help="Match labels whatever their case, with _ and - as spaces, and 2.0 as 2.",
)

allow_disjoint_option = click.option(
    "--allow-disjoint",
    is_flag=True,
    help="Fuse files that have no samples, or few, in common; without it, that is an error or a"
    " warning.",
)

_TRUTH = (
    "True labels: a table with the columns sample and label or, where samples have several"
    " labels, a column of 0 and 1 for each label."
)
truth_option = click.option("--truth", type=PATH, required=True, help=_TRUTH)
optional_truth_option = click.option(
    "--truth", type=PATH, help=f"{_TRUTH}  [default: models are judged by each other]"
)

gold_option = click.option(
    "--gold",
    type=PATH,
    help="True labels of a few samples, as a table with the columns sample and label, where those"
    " of the other samples are not known.",
)

target_option = click.option(
    "--target",
    type=PATH,
    help="Text file with the labels that the consensus is to have, one per line; or a table with"
    " the columns label and position, where each lies on a line.  [default: every label of the"
    " models and of the truth, if that is given]",
)

output_options = stack(
    click.option(
        "--json", "as_json", is_flag=True, help="Print what was found as JSON on standard output."
    ),
    click.option("--quiet", is_flag=True, help="Print no messages, only errors."),
    config_option,
    group="Output",
)

top_option = click.option(
    "--top",
    type=Within(click.IntRange(min=1)),
    metavar="K",
    help="Write the K best labels of each sample instead of all scores: a table with the columns"
    " sample, label and confidence, best first. With 1, the answer for each sample.",
)


def hide(command: click.Command, *names: str) -> None:
    """Leave options out of a help text: the command refuses them, and says what to do."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name in names:
            parameter.hidden = True


def check_as_json(as_json: bool, out: Any) -> None:
    """Refuse --json where standard output has the consensus."""
    if as_json and out is None:
        fail("--json answers on standard output; got no --out for the consensus.")


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


def read_meanings(
    aliases: Path | None, others: tuple[str, ...], models: Any, *, fold: bool
) -> dict[str, Any]:
    """What labels of the ``models`` stand for: ``aliases``, ``other`` and ``fold``."""
    from wassemble.inputs import read_aliases

    names = [each.model for each in models]
    other: dict[str, str] = {}
    for value in others:
        model, sign, label = value.partition("=")
        if sign and model in names:
            other[model] = label
            continue
        having = [each.model for each in models if value in each.labels]
        if not having:
            fail(
                f"--other must be a label of some model; none has {value!r}.",
                hint=f"--other MODEL=LABEL names one of {', '.join(names)}",
            )
        other |= dict.fromkeys(having, value)
    meanings = None if aliases is None else read_aliases(aliases)
    if meanings is not None:
        spaces = {each.model: each.labels for each in models}
        unused = meanings.unused(spaces, fold=fold)
        if len(unused) == len({source for _, source, _, _ in meanings.rows}):
            fail(
                f"{aliases}: some alias must be of a label that some model has; got"
                f" {', '.join(map(repr, unused[:3]))}{' ...' if len(unused) > 3 else ''}.",
                hint="the first line names the columns: source, target and, if need be, model and"
                " weight; source is the label of a model",
            )
    return {"aliases": meanings, "other": other or None, "fold": fold}


def read_labels(path: Path) -> LabelSpace:
    """Label names: one a line, with their positions, or those of a prediction file."""
    from wassemble.inputs import open_predictions, read_positions
    from wassemble.labels import LabelSpace

    if not path.exists():
        fail(
            f"{path}: must be a file; there is none.",
            hint="labels are named in a text file, one a line",
        )
    suffix = path.suffix.lower()
    if suffix in (".txt", "", ".csv", ".tsv") and _tells_positions(path):
        return read_positions(path)
    if suffix not in (".txt", ""):
        with open_predictions(path) as file:
            return file.labels
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        fail(f"{path}: a list of labels must be UTF-8 text.")
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        fail(f"{path}: must name at least one label; got none.")
    return LabelSpace(names)


def _tells_positions(path: Path) -> bool:
    """Whether the first line has the titles label and position, and nothing else."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            titles = file.readline()
    except OSError as error:
        fail(f"{path}: {(error.strerror or str(error)).lower()}.")
    return titles.replace(",", " ").casefold().split() == ["label", "position"]


class _Argument(NamedTuple):
    """One prediction file of the command line."""

    model: str
    place: str
    reading: Reading


@dataclass(frozen=True)
class ModelFiles:
    """The prediction files of a command line, and how to read them."""

    files: tuple[str, ...]
    id_column: tuple[str, ...]
    label_column: tuple[str, ...]
    score_column: tuple[str, ...]
    labels: tuple[str, ...]
    kind: Any
    by_row: bool
    normalize: bool

    @cached_property
    def arguments(self) -> list[_Argument]:
        """Model, place and way to read it, of each file."""
        from wassemble.inputs.reading import Reading

        declared, for_all = split_names(self.labels, "--labels")
        spaces = {path: read_labels(path) for path in {*declared.values(), for_all} if path}
        arguments = []
        for value in self.files:
            name, sign, rest = value.partition("=")
            # A path may hold the sign, too: date=2024-01-01/part.parquet.
            is_named = bool(sign) and "://" not in name and not Path(value).exists()
            place = rest if is_named else value
            model = name if is_named else PurePath(place.rstrip("/")).name.split(".")[0]
            own = declared.get(model, for_all)
            reading = Reading(
                self._column_of(model, "id_column"),
                self._column_of(model, "label_column"),
                self._column_of(model, "score_column"),
                None if own is None else spaces[own],
                self.kind,
                self.by_row,
                self.normalize,
            )
            arguments.append(_Argument(model, place, reading))
        models = [argument.model for argument in arguments]
        if strange := set(declared) - set(models):
            fail(f"--labels must name a model; got {', '.join(sorted(strange))}.")
        _check_columns("--id-column", self.id_column, [*models, "truth"])
        _check_columns("--label-column", self.label_column, models)
        _check_columns("--score-column", self.score_column, models)
        return arguments

    @contextmanager
    def open(self, *, together: bool = True) -> Iterator[list[PredictionFile]]:
        """The files, open, in the order given; ``together`` if their samples are matched."""
        from wassemble.inputs import open_predictions
        from wassemble.inputs.folders import fetch_file
        from wassemble.inputs.predictions.overlap import common_row_ids

        arguments = self.named_arguments if together else self.arguments
        with ExitStack() as stack:
            opened = [
                stack.enter_context(
                    open_predictions(stack.enter_context(fetch_file(place)), how, model=model)
                )
                for model, place, how in arguments
            ]
            if self.by_row and together:
                ids = common_row_ids(opened)
                for file in opened:
                    file.samples = ids
            yield opened

    @contextmanager
    def open_any(self) -> Iterator[list[PredictionFile] | list[DataSet]]:
        """The files, open, or the folders of part files, in the order given."""
        sets = self._open_data_sets()
        if sets is not None:
            yield sets
            return
        with self.open() as opened:
            yield opened

    def read(self) -> list[Predictions]:
        """All predictions."""
        with self.open() as opened:
            return [file.read() for file in opened]

    def read_truth(self, path: Path, column: str | None, models: Sequence[Any]) -> Predictions:
        """The true labels in a file; with --by-row, of the rows of ``models``."""
        from wassemble.errors import InvalidInputError
        from wassemble.inputs.files import read_truth
        from wassemble.inputs.predictions.overlap import common_row_ids

        id_column = self._column_of("truth", "id_column")
        options: dict[str, Any] = {"column": column, "by_row": self.by_row}
        try:
            truth = read_truth(path, id_column=id_column, **options)
        except InvalidInputError as error:
            # The column that holds the models' ids may have another name here.
            if id_column is None or f"truth={id_column}" in self.id_column:
                raise
            try:
                truth = read_truth(path, **options)
            except InvalidInputError:
                raise error from None
        if self.by_row:
            common_row_ids([*models, truth])  # as many rows, and no other ids
            truth = truth.replace(samples=models[0].samples)
        return truth

    def _open_data_sets(self) -> list[DataSet] | None:
        """The folders of part files, in the order given; None if none of them is a folder."""
        from wassemble.inputs.folders import is_folder, open_folder
        from wassemble.inputs.part_files import open_data_set

        places = [place for _, place, _ in self.named_arguments]
        folders = [place for place in places if is_folder(place)]
        if not folders:
            return None
        if self.by_row:
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
        return [open_data_set(place, how, model=model) for model, place, how in self.arguments]

    @property
    def named_arguments(self) -> list[_Argument]:
        """The arguments; no two files of one name, which models that are matched must not have."""
        places: dict[str, list[str]] = {}
        for model, place, _ in self.arguments:
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
        return self.arguments

    def _column_of(self, model: str, column: str) -> str | None:
        """The column that is named for a model, else the one for all."""
        given = getattr(self, column)
        own = [c.removeprefix(f"{model}=") for c in given if c.startswith(f"{model}=")]
        chosen = own or [c for c in given if "=" not in c]
        if len(chosen) > 1:
            flag = f"--{column.replace('_', '-')}"
            fail(f"{flag} must be one for {model}; got {', '.join(chosen)}.")
        return chosen[0] if chosen else None


def _check_columns(flag: str, columns: tuple[str, ...], models: Sequence[str]) -> None:
    for column in columns:
        if "=" in column and not any(column.startswith(f"{model}=") for model in models):
            name = column.partition("=")[0]
            fail(f"{flag} must name a model, one of {', '.join(models)}; got {name}.")
