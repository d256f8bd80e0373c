"""The page that fuses in the browser, [try](../try.md): what it runs, put beside it by `make site`.

    python docs/try/build.py site/try

Python for browsers and NumPy for it come as packages of npm, each pinned by its version and by the
SHA-512 of its archive; the library, what it needs in plain Python, and what stands in for SciPy are
those of this clone. Without npm, or where there is nothing to fetch from, nothing is put there, and
the page says so.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

HERE = Path(__file__).parent
LIBRARY = HERE.parents[1] / "src" / "wassemble"
# Archives are fetched once, and go with the environment of the site.
ARCHIVES = HERE.parents[1] / ".venv-docs" / "npm"

PACKAGES = {
    "pyodide@0.24.1": (
        "7e436894dc22bf8d44d8a2823f66e05be770afde41fb42920bf586f560a69563"
        "3d30d15b4555f4ac5f62e0e8a444cefc6c679552f2dd549c3c8d8d7bc312a845"
    ),
    "@emscripten-forge/numpy@2.1.1-py311hc8e14bb-0": (
        "54f9d283e46e402f73cf46e7073cc8fe6695ca892e6d28322ac7d2aafb3368bb"
        "65c91498f8b76d9805298d9f4d944a42dd2592608df48d65d8ea1ad35355e2ac"
    ),
}
RUNTIME = (
    "pyodide.mjs",
    "pyodide.asm.js",
    "pyodide.asm.wasm",
    "pyodide-lock.json",
    "python_stdlib.zip",
)
SITE_PACKAGES = "lib/python3.11/site-packages"
WHEEL = "numpy-2.1.1-cp311-cp311-emscripten_3_1_45_wasm32.whl"
PURE = ("array-api-compat", "lazy-loader", "threadpoolctl")
# What has no place on the page, or needs more of SciPy; what only a compiler reads.
LEFT_OUT = (
    *("cli/", "ensemble/estimators/", "ensemble/learning/", "ensemble/without_truth/", "export/"),
    *("report/", "scale/", "text/", "web/"),
)
NOT_RUN = ("numpy/f2py/", "numpy/_core/include/", "numpy/_core/lib/", "numpy/distutils/")

NOTICE = """\
What this folder has, and under which terms
===========================================

Pyodide 0.24.1            MPL-2.0 (mozilla.org/MPL/2.0); source: github.com/pyodide/pyodide
  with CPython 3.11.3     PSF-2.0; in pyodide.asm.wasm and python_stdlib.zip
NumPy 2.1.1               BSD-3-Clause, and what its licence names; as emscripten-forge builds it
array-api-compat          MIT
lazy-loader               BSD-3-Clause
threadpoolctl             BSD-3-Clause
wassemble                 Apache-2.0; its data keep their own terms, which are with them

No file was changed; NumPy is packed again, without what only compilers read. What stands in for
SciPy (scipy/ in library.zip) is part of wassemble, not of SciPy.
"""


class NotThereError(Exception):
    """What keeps the page from being built, on a machine that is not at fault."""


def main() -> int:
    """Build it; 0 also where it cannot be, because nothing can be fetched."""
    parser = argparse.ArgumentParser(prog="python docs/try/build.py", description=__doc__)
    parser.add_argument("folder", type=Path, help="where to put it: site/try")
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    try:
        pyodide, numpy = (fetch(name, digest) for name, digest in PACKAGES.items())
    except NotThereError as error:
        print(f"the page that fuses in the browser was not built: {error}", file=sys.stderr)
        return 0
    folder.mkdir(parents=True)
    for name in RUNTIME:
        (folder / name).write_bytes(read_tar(pyodide, f"package/{name}"))
    repack_numpy(numpy, folder)
    write_zip(folder / "library.zip", list_library())
    (folder / "LICENCES.txt").write_text("\n\n".join([NOTICE, *list_licences(numpy)]))
    # Last: the page looks whether it is there.
    about = {"wheel": WHEEL, "packages": f"/{SITE_PACKAGES}"}
    (folder / "built.json").write_text(json.dumps(about) + "\n")
    return 0


def fetch(name: str, digest: str) -> Path:
    """The archive of a package of npm, of the content that is pinned."""
    path = ARCHIVES / (name.lstrip("@").replace("/", "-").replace("@", "-") + ".tgz")
    if not path.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise NotThereError("there is no npm here.")
        ARCHIVES.mkdir(parents=True, exist_ok=True)
        pack = [npm, "pack", name, "--silent", "--ignore-scripts", "--pack-destination", ARCHIVES]
        done = subprocess.run(pack, capture_output=True, text=True, check=False)
        if done.returncode or not path.exists():
            raise NotThereError(f"npm could not fetch {name}.")
    if hashlib.sha512(path.read_bytes()).hexdigest() != digest:
        path.unlink()
        sys.exit(f"{name} is not what it was when it was pinned in {Path(__file__).name}.")
    return path


def read_tar(path: Path, name: str) -> bytes:
    """A file of an archive."""
    with tarfile.open(path) as archive:
        return archive.extractfile(name).read()


def read_numpy(archive: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Files of the conda package inside the archive."""
    with tarfile.open(archive) as outer:
        (name,) = [each for each in outer.getnames() if each.endswith(".tar.gz")]
        inner = io.BytesIO(outer.extractfile(name).read())
    with tarfile.open(fileobj=inner) as package:
        for member in package:
            if member.isfile():
                yield PurePosixPath(member.name), package.extractfile(member).read()


def repack_numpy(archive: Path, folder: Path) -> None:
    """NumPy as a wheel, which the loader of packages takes."""
    files = ((p, t) for p, t in read_numpy(archive) if p.is_relative_to(SITE_PACKAGES))
    files = ((p.relative_to(SITE_PACKAGES), t) for p, t in files)
    kept = ((p, t) for p, t in files if not str(p).startswith(NOT_RUN) and p.suffix != ".pyi")
    write_zip(folder / WHEEL, kept)


def list_library() -> Iterator[tuple[PurePosixPath, bytes]]:
    """The library, what it needs in plain Python, what stands in for SciPy, and what runs all."""
    for top in (LIBRARY, HERE / "scipy"):
        for path in sorted(top.rglob("*")):
            place = path.relative_to(top).as_posix()
            if path.is_file() and path.suffix != ".pyc" and not place.startswith(LEFT_OUT):
                yield PurePosixPath(top.name, place), path.read_bytes()
    yield PurePosixPath("page.py"), (HERE / "page.py").read_bytes()
    for name in PURE:
        for path in distribution(name).files or ():
            if path.suffix == ".py" and ".." not in path.parts:
                yield PurePosixPath(path), path.read_binary()


def list_licences(numpy: Path) -> Iterator[str]:
    """Texts of licences that must go with what they are of."""
    texts = {path.stem: path.read_text() for path in (HERE / "licences").glob("*.txt")}
    for path, text in read_numpy(numpy):
        if "licenses" in path.parts:
            texts["NumPy"] = text.decode()
    if (own := Path(os.__file__).with_name("LICENSE.txt")).is_file():
        texts["CPython"] = own.read_text()
    for name in PURE:
        for path in distribution(name).files or ():
            if "LICENSE" in path.name.upper():
                texts[name] = path.read_text()
    for name, text in texts.items():
        yield f"{name}\n{'-' * len(name)}\n\n{text}"


def write_zip(path: Path, files: Iterable[tuple[PurePosixPath, bytes]]) -> None:
    """An archive that is the same whenever it is made of the same."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files:
            archive.writestr(zipfile.ZipInfo(str(name)), text, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    sys.exit(main())
