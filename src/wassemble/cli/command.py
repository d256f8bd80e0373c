"""The command line: its commands, and how errors leave it."""

import os
import signal
import sys
import threading
import warnings
from typing import Any

import click

from wassemble import __version__
from wassemble.cli.back_off import back_off
from wassemble.cli.console import allow_any_text, talk
from wassemble.cli.describe import describe
from wassemble.cli.example import example
from wassemble.cli.explain import explain
from wassemble.cli.export import export, serve_head, verify
from wassemble.cli.fuse import fuse
from wassemble.cli.hub import hub
from wassemble.cli.kernel import kernel
from wassemble.cli.learn import evaluate, fit, predict, report
from wassemble.cli.rank import jury, rank
from wassemble.cli.ranks import ranks
from wassemble.cli.score import score
from wassemble.cli.serve import serve
from wassemble.cli.study import study

_EPILOG = """\b
Exit codes: 0 success; 1 failure; 2 wrong options or input.
Results go to standard output or --out, messages to standard error.
"""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name="wassemble")
def command() -> None:
    """Fuse the predictions of several models into one consensus, whatever their labels are.

    \b
    wassemble example languages demo          # writes nine files to try it on
    wassemble describe demo/*.npz             # what is in them
    wassemble fuse demo/*.npz --out all.parquet
    wassemble fuse demo/*.npz --confusion demo/truth.csv --out better.parquet
    wassemble explain demo/*.npz --sample 0007
    """


@command.command(short_help="Set up completion in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands, options and file names in your shell.

    \b
    eval "$(wassemble completion bash)"       # in ~/.bashrc; likewise zsh in ~/.zshrc
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(command, {}, "wassemble", "_WASSEMBLE_COMPLETE").source())


_fusing, _learning = (
    (fuse, explain, kernel, describe, hub, back_off),
    (fit, predict, evaluate, report, score, rank, jury),
)
_heads = (export, verify, serve_head)
for _command in (*_fusing, *_learning, *_heads, ranks, serve, study, example):
    command.add_command(_command)


def run(
    arguments: list[str] | None = None, group: click.Group = command, *, program: str = "wassemble"
) -> int:
    """Run a group of commands; every error is words on standard error and an exit code."""
    from wassemble.errors import InputWarning, InvalidInputError, WassembleError

    allow_any_text()
    warnings.simplefilter("ignore")  # what they say is part of the account
    warnings.simplefilter("always", InputWarning)
    warnings.showwarning = _show
    if threading.current_thread() is threading.main_thread():
        # A polite kill cleans up as an interrupt does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = group.main(arguments, prog_name=program, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:  # no mistake, and nothing done
        click.echo(error.format_message(), err=True)
        return 2
    except click.UsageError as error:
        _say(error.format_message(), hint=_help_of(error))
        return 2
    except InvalidInputError as error:
        _say(str(error))
        return 2
    except (KeyboardInterrupt, click.exceptions.Abort):
        _say("interrupted; no file was changed.")
        return 1
    except BrokenPipeError:  # the reader of our output has gone: nothing to say, nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (WassembleError, click.ClickException) as error:
        _say(str(error))
        return 1
    except OSError as error:
        _say(f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}.")
        return 1
    except MemoryError:
        _say("memory ran out.", hint="--n-top or a sparse kernel (--n-neighbors) need less")
        return 1
    except Exception as error:
        if os.environ.get("WASSEMBLE_DEBUG"):
            raise
        _say(
            f"this should not happen: {type(error).__name__}: {error}",
            hint="WASSEMBLE_DEBUG=1 shows where; please report it",
        )
        return 1


def _show(message: Warning | str, *about: Any, **more: Any) -> None:
    """Show a warning as a message of the command."""
    context = click.get_current_context(silent=True)
    talk(f"warning: {message}", quiet=context is not None and context.params.get("quiet", False))


def _say(message: str, *, hint: str | None = None) -> None:
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)


def _help_of(error: click.UsageError) -> str | None:
    context: Any = error.ctx
    return f"`{context.command_path} --help` shows every option" if context else None
