"""The public API is pinned as text: a change of it is seen, and meant.

`python tests/test_api.py` writes `tests/api.txt` anew.
"""

import importlib
import inspect
import re
from enum import EnumType
from pathlib import Path

import wassemble

PINNED = Path(__file__).with_name("api.txt")
NAMESPACES = ("export", "inputs", "kernels", "metrics", "scale", "solvers", "text")
# At the top stands what most users import; the rest is in a namespace.
MOST_AT_THE_TOP = 54


def describe_api():
    """A line for each public name, with its arguments."""
    lines = [describe("wassemble", name) for name in sorted(wassemble.__all__)]
    for namespace in NAMESPACES:
        module = importlib.import_module(f"wassemble.{namespace}")
        lines += [describe(module.__name__, name) for name in public_names(module)]
    return "\n".join(lines) + "\n"


def public_names(module):
    """What a package hands out: its own list, or all that it imports under a public name."""
    given = getattr(module, "__all__", None)
    if given is None:
        given = [
            name
            for name, thing in vars(module).items()
            if not name.startswith("_") and not inspect.ismodule(thing)
        ]
    return sorted(set(given) - {"annotations"})


def describe(module, name):
    thing = getattr(importlib.import_module(module), name)
    if inspect.ismodule(thing):
        return f"{module}.{name}"
    if isinstance(thing, EnumType):  # whose arguments each version of Python has its own of
        return f"{module}.{name}: {', '.join(thing.__members__)}"
    if not callable(thing) or isinstance(thing, wassemble.Rule):
        return f"{module}.{name}: {type(thing).__name__}"
    try:
        arguments = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # an exception
        return f"{module}.{name}"
    return f"{module}.{name}({', '.join(describe_arguments(arguments))})"


def describe_arguments(arguments):
    """Names and defaults; annotations are for type checkers."""
    keyword_only = False
    for argument in arguments:
        if argument.kind is argument.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            yield "*"
        keyword_only |= argument.kind is argument.VAR_POSITIONAL
        plain = argument.replace(annotation=argument.empty)
        yield re.sub(r" at 0x[0-9a-f]+", "", str(plain))


def test_the_public_api_is_the_one_that_is_pinned():
    assert describe_api() == PINNED.read_text(), "python tests/test_api.py pins a change"


def test_the_top_holds_only_what_most_users_import():
    assert len(wassemble.__all__) <= MOST_AT_THE_TOP


if __name__ == "__main__":
    PINNED.write_text(describe_api())
