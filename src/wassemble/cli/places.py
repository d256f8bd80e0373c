"""Files and folders as parameters: how shells complete them, and that no input is overwritten.

A parameter of type `click.Path` is read unless it is an `Output`. `Command` compares all of
them before anything is done, so that a new option needs only its type.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from wassemble._files import is_remote, refuse_overwriting
from wassemble.errors import fail, speaking

# Where the path of --config is kept, which no command gets to see.
READ_CONFIG = "wassemble.config"


class Output(click.Path):
    """What the command writes: a file, a folder, or (None) either, as the inputs are.

    ``beside`` leads from its path to those of what is written next to it.
    """

    def __init__(
        self,
        *,
        is_folder: bool | None = False,
        beside: Callable[[Path], Sequence[Path]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._is_folder = is_folder
        self._beside = beside

    def check(self, place: Any, name: str) -> None:
        """Refuse a place where this cannot be written, before there is anything to write."""
        if is_remote(place):
            return
        path = Path(place)
        if self._is_folder is True and path.exists() and not path.is_dir():
            fail(f"{name} must be a folder, new or not; got {path}, which is a file.")
        if self._is_folder is False and path.is_dir():
            fail(f"{name} must be a file; got {path}, which is a folder.")
        nearest = next(parent for parent in path.absolute().parents if parent.exists())
        if not nearest.is_dir():
            fail(f"{name} must be in a folder; got {path}, and {nearest} is a file.")

    def places(self, value: Any) -> list[Any]:
        """Everything that is written."""
        path = Path(value)
        written = [value]
        if self._beside is not None:
            written += self._beside(path)
        if path.suffix.lower() == ".npy":
            written += [path.with_suffix(".labels.txt"), path.with_suffix(".samples.txt")]
        return written


class EnsembleFolder(click.Path):
    """A folder that `fit` wrote; other files may lie in it."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The folder; a file is more likely a model's, with the folder forgotten."""
        if Path(value).is_file():
            fail(
                "the first argument must be the folder that `wassemble fit` wrote; got the file"
                f" {value}."
            )
        return super().convert(value, param, ctx)

    def places(self, value: Any) -> list[Any]:
        """The files that are read."""
        folder = Path(value)
        arrays = [*folder.glob("kernel-*.npz"), *folder.glob("rule-*.npz")]
        return [folder / "ensemble.json", *sorted(arrays)]


class NamedFile(click.ParamType):
    """``[MODEL=]FILE``, as text."""

    name = "[MODEL=]FILE"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        name, sign, rest = incomplete.partition("=")
        if not sign or any(_list_files(incomplete)):
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(f"{name}={path}") for path in _list_files(rest)]

    def places(self, value: str) -> list[str]:
        """The file, with and without its name: a path may hold the sign, too."""
        _, sign, rest = value.partition("=")
        return [value, rest] if sign and rest else [value]


class NameOrFile(click.ParamType):
    """One of a few names, or a file; as text."""

    name = "NAME|FILE"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = [name for name in self._names if name.startswith(incomplete)]
        if not names:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(value) for value in [*names, *_list_files(incomplete)]]

    def places(self, value: str) -> list[str]:
        """The file, if there is one of this name."""
        return [] if value in self._names else [value]


FILE_TYPES = (click.Path, NamedFile, NameOrFile)


class Within(click.ParamType):
    """A number of a range, which its help says in words: no ``INTEGER RANGE  [1<=x<=2]``."""

    def __init__(self, kind: click.IntRange | click.FloatRange, name: str = "NUMBER") -> None:
        self.name = name
        self._kind = kind

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number; one beyond the range is refused with the range."""
        return self._kind.convert(value, param, ctx)


class Command(click.Command):
    """A command that refuses, before it does anything, to write over what it reads.

    Messages name arguments by its flags. ``start_with`` names the arguments whose options the help
    text shows first; what has no group then comes last.
    """

    def __init__(self, *arguments: Any, start_with: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._start_with = start_with

    def invoke(self, ctx: click.Context) -> Any:
        inputs = [place for *_, place in _places(ctx, is_output=False)]
        config = [ctx.meta[READ_CONFIG]] if READ_CONFIG in ctx.meta else []
        for kind, name, out in _places(ctx, is_output=True):
            kind.check(out, name)
            # A folder may hold its own configuration.
            refuse_overwriting(out, inputs if Path(out).is_dir() else [*inputs, *config], name=name)
        with speaking(flags_of(self)):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options in the sections of their groups, what one starts with first.

        Options without a group are the command's own: they come first where it names none to start
        with, else last.
        """
        sections: dict[str, list[tuple[str, str]]] = {"Start with": []}
        if not self._start_with:
            sections["Options"] = []
        for parameter in self.get_params(ctx):
            is_option = isinstance(parameter, click.Option)
            record = parameter.get_help_record(ctx) if is_option else None
            title = getattr(parameter, "group", "Options")
            if record is not None:
                is_first = parameter.name in self._start_with
                sections.setdefault("Start with" if is_first else title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def flags_of(command: click.Command) -> dict[str, tuple[str, str]]:
    """The options of a command by the arguments they stand for: spelling, and what follows it."""
    return {
        flag.removeprefix("--").replace("-", "_"): (option.opts[0], _placeholder(option))
        for option in command.params
        if isinstance(option, click.Option)
        for flag in option.opts
    }


def _placeholder(option: click.Option) -> str:
    if option.is_flag:
        return ""
    if isinstance(option.type, FILE_TYPES):
        return "FILE"
    is_number = option.type.name in ("float", "integer", "NUMBER", "NUMBER|auto", "NUMBER|none")
    return "NUMBER" if is_number else (option.metavar or "VALUE")


def _places(ctx: click.Context, *, is_output: bool) -> Iterator[tuple[Any, str, Any]]:
    """Type and name of each parameter that names a file or folder, and the file or folder."""
    for parameter in ctx.command.params:
        kind: Any = parameter.type
        is_path = isinstance(kind, FILE_TYPES)
        if not is_path or isinstance(kind, Output) != is_output:
            continue
        value = ctx.params.get(parameter.name or "")
        is_option = isinstance(parameter, click.Option)
        name = parameter.opts[0] if is_option else parameter.make_metavar(ctx)
        for each in value if isinstance(value, tuple) else [value]:
            if each is not None:
                places = kind.places(each) if hasattr(kind, "places") else [each]
                yield from ((kind, name, place) for place in places)


def _list_files(prefix: str) -> Iterator[str]:
    """Paths that begin with ``prefix``; folders end in a slash."""
    folder, slash, start = prefix.rpartition("/")
    parent = Path(folder + slash) if slash else Path()
    try:
        paths = sorted(parent.iterdir())
    except OSError:
        return
    for path in paths:
        if path.name.startswith(start) and (start or not path.name.startswith(".")):
            yield f"{folder}{slash}{path.name}" + ("/" if path.is_dir() else "")
