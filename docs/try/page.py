"""What the page that fuses in the browser does with a program: runs it, and shortens its errors.

It is imported there beside the library, as `page`, and by `tests/test_try.py`.
"""

from __future__ import annotations

import ast
import ctypes
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

PROGRAM = "program"
# NumPy for this Python asks once, as it meets a large array, who called it, and stops where there
# is nothing to ask. This library for WebAssembly has that one function, and it answers: nobody.
BACKTRACE = bytes.fromhex(
    "0061736d01000000"  # a module of version 1
    "000f0864796c696e6b2e30010400000000"  # dylink.0: needs no memory and no table
    "01070160027f7f017f"  # a type: two numbers in, one out
    "03020100"  # a function of that type
    "070d01096261636b74726163650000"  # exported as "backtrace"
    "0a0601040041000b"  # which returns 0
)


class Rest(MetaPathFinder):
    """Parts of the library that are not on the page, asked for after those that are."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse a part by name; other modules are for others to find."""
        if fullname.startswith("wassemble."):
            raise NotImplementedError(
                f"`{fullname}` is not on this page, which fuses arrays and tables of predictions:"
                " install wassemble for the rest."
            )
        return None


def run(source: str) -> bool:
    """Run a program and show what its last line is, as a notebook does; whether it ended well."""
    names = {"__name__": "__main__"}
    try:
        tree = ast.parse(source, PROGRAM)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, PROGRAM, "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), PROGRAM, "eval"), names)
            if shown is not None:
                print(repr(shown))
    except BaseException as error:  # an exit ends the program, not the page
        print(tell(error))
        return False
    return True


def tell(error: BaseException) -> str:
    """An error in a line or two: where in the program, and what."""
    what = "".join(traceback.format_exception_only(error)).strip()
    steps = traceback.extract_tb(error.__traceback__)
    lines = [step.lineno for step in steps if step.filename == PROGRAM]
    return f"line {lines[-1]}: {what}" if lines else what


def prepare() -> None:
    """What is done once, before the first program."""
    path = Path(tempfile.mkdtemp()) / "backtrace.so"
    path.write_bytes(BACKTRACE)
    ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    sys.meta_path.append(Rest())
