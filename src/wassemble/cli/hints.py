"""What the library says of its arguments, as the command line spells them."""

from __future__ import annotations

import re

import click

from wassemble.cli.places import FILE_TYPES

__all__ = ["speak_flags"]

# Python that is worth a flag of another name.
_PHRASES = {
    r"mass=Unbalanced\([^)]*\)": "--mass-penalty NUMBER --epsilon NUMBER",
    r"mass=Balanced\(\)": "--balanced",
    r"`kernels.from_graph`": "--graph",
    r"`kernels.from_tree`": "--tree",
    r"leave out `label_column` for tables without it": "--label-column MODEL=NAME is for one file",
    r"leave out `score_column` for tables without it": "--score-column MODEL=NAME is for one file",
    r"`read_truth\(path, column=\"([^\"]*)\"\)`": r"--truth-column \1",
    r"`read_embeddings\(path\)` reads them.*": "--embeddings reads them from a file",
    r"another `AutoEpsilon\([^)]*\)`": "leave it out",
}
_QUOTES = "\"'"
_QUOTED = "\"[^\"]*\"|'[^']*'"
_LISTED = r"\[[^\]]*\]|\{[^}]*\}"
# Only what is a value in Python: `kernel=new.csv` names a model, and stays.
_VALUE = rf"{_QUOTED}|{_LISTED}|\.\.\.|True|False|None|-?[0-9][0-9.e-]*(?![\w.])"
_KEYWORD = re.compile(rf"(?P<tick>`?)(?<![\w.])(?P<name>[a-z_]+)=(?P<value>{_VALUE})(?P=tick)")
_NAME = re.compile(r"`([a-z_]+)`")


def speak_flags(text: str, command: click.Command) -> str:
    """A message in which arguments that ``command`` has as options are flags.

    ``kind="multilabel"`` becomes ``--kind multilabel``, `` `weights` `` becomes ``--weights``;
    what the command has no option for is left as it is.
    """
    options = {
        flag.removeprefix("--").replace("-", "_"): option
        for option in command.params
        if isinstance(option, click.Option)
        for flag in option.opts
    }

    def keyword(found: re.Match[str]) -> str:
        option = options.get(found["name"])
        return found[0] if option is None else _flag(option, found["value"])

    def name(found: re.Match[str]) -> str:
        option = options.get(found[1])
        return found[0] if option is None else option.opts[0]

    for phrase, flag in _PHRASES.items():
        if flag.split()[0].removeprefix("--").replace("-", "_") in options or flag[0] != "-":
            text = re.sub(phrase, flag, text)
    return _NAME.sub(name, _KEYWORD.sub(keyword, text))


def _flag(option: click.Option, value: str) -> str:
    flag = option.opts[0]
    if option.is_flag:
        return flag
    if isinstance(option.type, FILE_TYPES):
        return f"{flag} FILE"
    if value == "..." or value[0] in "[{":
        is_number = isinstance(option.type, click.types.FloatParamType | click.types.IntParamType)
        return f"{flag} {'NUMBER' if is_number else (option.metavar or 'VALUE')}"
    return f"{flag} {'none' if value == 'None' else value.strip(_QUOTES)}"
