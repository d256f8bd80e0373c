"""A TOML file that says what flags say."""

import tomllib
from pathlib import Path
from typing import Any

import click

from wassemble.cli.places import READ_CONFIG
from wassemble.errors import fail


def _read(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Put the file's keys in place of the options' defaults; flags go before them."""
    if path is None:
        return
    context.meta[READ_CONFIG] = path
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"{path}: {(error.strerror or str(error)).lower()}.")
    except UnicodeDecodeError:
        fail(f"{path}: a config file must be UTF-8 text.")
    except tomllib.TOMLDecodeError as error:
        fail(f"{path}: must be TOML; {error}.")
    params = [p for p in context.command.params if p.name and p.name != "config"]
    known = {_spelled(p): p for p in params}
    by_name = {p.name: p for p in params}
    given: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        parameter = known.get(name) or by_name.get(name)
        if parameter is None or parameter.name is None:
            names = ", ".join(sorted(name.replace("_", "-") for name in known))
            fail(f"{path}: unknown key {key!r}.", hint=f"known keys: {names}")
        given[parameter.name] = _as_flag(value, parameter, key, path)
    context.default_map = {**(context.default_map or {}), **given}


def _spelled(parameter: click.Parameter) -> str:
    """The name of an option as `--help` spells it, which its argument may have otherwise."""
    long = [each for each in parameter.opts if each.startswith("--")]
    return (long[0].removeprefix("--") if long else str(parameter.name)).replace("-", "_")


def _as_flag(value: Any, parameter: click.Parameter, key: str, path: Path) -> Any:
    """The value as the flag would give it."""
    if parameter.name == "weights" and isinstance(value, dict):
        return ",".join(f"{model}={weight}" for model, weight in value.items())
    many = parameter.multiple or parameter.nargs == -1
    if isinstance(value, dict) and many:  # MODEL=FILE
        return [f"{model}={file}" for model, file in value.items()]
    if isinstance(value, list) and many:
        return [str(item) for item in value]
    if isinstance(value, dict | list):
        fail(f"{path}: {key!r} must be one value; got {type(value).__name__}.")
    if isinstance(value, bool) != bool(getattr(parameter, "is_flag", False)):
        fail(f"{path}: {key!r} must {'not ' if isinstance(value, bool) else ''}be true or false.")
    if many:
        return [str(value)]
    return value if isinstance(value, bool) else str(value)


config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_read,
    help="Read options from a TOML file whose keys are their names; those given here win.",
)
