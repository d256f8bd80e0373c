"""The page that fuses in the browser: what stands in for SciPy there, its programs, and itself."""

import functools
import http.server
import importlib.util
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from patience import SECONDS
from report.browser import open_browser

ROOT = Path(__file__).parents[1]
HERE = ROOT / "docs" / "try"
SITE = ROOT / "site"


def load(path, name):
    """A file that is no part of a package here, or a folder that is one, under another name."""
    folder = [str(path)] if path.is_dir() else None
    file = path / "__init__.py" if folder else path
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


stand_in = load(HERE / "scipy", "stand_in")
page = load(HERE / "page.py", "page_of_try")
build = load(HERE / "build.py", "build_of_try")


def programs():
    """Programs of the page by their headings."""
    text = (ROOT / "docs" / "try.md").read_text(encoding="utf-8")
    return dict(
        re.findall(r"^## ([^\n]*)\n(?:(?!^## ).)*?^```python\n(.*?)^```$", text, re.M | re.S)
    )


PROGRAMS = programs()


# -- what stands in for SciPy is SciPy, as far as it goes --------------------------------


def draw(rng, shape=(5, 4)):
    dense = rng.integers(0, 5, shape) * (rng.random(shape) < 0.5)
    return dense.astype(float)


# What kernels and fusions do with sparse arrays, as a function of SciPy or what stands in for it.
OPERATIONS = {
    "dense": lambda sp, a, b: sp.csr_array(a),
    "places": lambda sp, a, b: sp.csr_array((a[a > 0], a.nonzero()), shape=a.shape),
    "places twice": lambda sp, a, b: sp.csr_array(
        (np.tile(a[a > 0], 2), np.tile(a.nonzero(), 2)), shape=a.shape
    ),
    "rows": lambda sp, a, b: sp.csr_array((np.ones(3), [0, 2, 1], [0, 1, 1, 3]), shape=(3, 4)),
    "empty": lambda sp, a, b: sp.csr_array((3, 2)),
    "coordinates": lambda sp, a, b: sp.coo_array(a > 0),
    "transpose": lambda sp, a, b: sp.csr_array(a).T.tocsr(),
    "product": lambda sp, a, b: sp.csr_array(a) @ sp.csr_array(b).T,
    "sum": lambda sp, a, b: sp.csr_array(a) + sp.csr_array(b),
    "difference": lambda sp, a, b: abs(sp.csr_array(a) - sp.csr_array(b)),
    "entries": lambda sp, a, b: sp.csr_array(a) * sp.csr_array(b),
    "power": lambda sp, a, b: sp.csr_array(a).power(0.5),
    "square": lambda sp, a, b: sp.csr_array(a) ** 2,
    "comparison": lambda sp, a, b: sp.csr_array(a) > 1,
    "unlike": lambda sp, a, b: sp.csr_array(a) != sp.csr_array(b),
    "some rows": lambda sp, a, b: sp.csr_array(a)[np.array([3, 0, 0])],
    "some columns": lambda sp, a, b: sp.csr_array(a)[:, np.array([2, 1])],
    "type": lambda sp, a, b: sp.csr_array(a).astype(np.float32),
    "below": lambda sp, a, b: sp.vstack([sp.coo_array(a), sp.csr_array(b)], format="csr"),
    "blocks": lambda sp, a, b: sp.block_array(
        [[sp.csr_array((4, 4)), None], [sp.csr_array(a), sp.csr_array((5, 5))]]
    ),
    "identity": lambda sp, a, b: sp.csr_array(sp.eye_array(3)),
    "diagonal": lambda sp, a, b: sp.csr_array(sp.diags_array(a[0])),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_sparse_arrays_are_those_of_scipy(name, rng):
    a, b = draw(rng), draw(rng)
    expected = OPERATIONS[name](scipy.sparse, a, b)
    found = OPERATIONS[name](stand_in.sparse, a, b)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    np.testing.assert_array_equal(found.sum(axis=0), expected.sum(axis=0))
    found, expected = found.tocsr(), expected.tocsr()
    for each in (found, expected):
        each.sum_duplicates()  # which puts columns in order
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


def test_a_product_with_vectors_is_that_of_scipy(rng):
    a, vectors = draw(rng), rng.random((4, 3))
    found = stand_in.sparse.csr_array(a) @ vectors
    np.testing.assert_allclose(found, scipy.sparse.csr_array(a) @ vectors, rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1])
def test_largest_entries_are_those_of_scipy(axis, rng):
    a = draw(rng)
    found, expected = (
        sp.csr_array(a).max(axis=axis).toarray().ravel() for sp in (stand_in.sparse, scipy.sparse)
    )
    np.testing.assert_array_equal(found, expected)


def test_duplicates_and_zeros_go_as_in_scipy():
    parts = np.array([1.0, 2.0, 0.0, 4.0]), np.array([1, 1, 0, 2]), np.array([0, 2, 4])
    made = [sp.csr_array(parts, shape=(2, 3), copy=True) for sp in (scipy.sparse, stand_in.sparse)]
    for each in made:
        each.sum_duplicates()
        each.eliminate_zeros()
    expected, found = made
    for part in ("data", "indices", "indptr", "nnz"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


@pytest.mark.parametrize("connection", ["weak", "strong"])
def test_components_are_those_of_scipy(connection, rng):
    for _ in range(20):
        graph = draw(rng, (9, 9)) * (rng.random((9, 9)) < 0.3)
        how = {"connection": connection}
        n_expected, expected = scipy.sparse.csgraph.connected_components(graph, **how)
        n_found, found = stand_in.sparse.csgraph.connected_components(graph, **how)
        assert n_found == n_expected
        pairs = set(zip(found.tolist(), expected.tolist(), strict=True))
        assert len(pairs) == n_expected  # the same parts, whatever their numbers


def test_inverses_by_choleskys_factors_are_inverses(rng):
    half = rng.random((4, 4))
    matrix = half @ half.T + np.eye(4)
    factor, failed = stand_in.linalg.lapack.dpotrf(matrix.T, clean=0)
    inverse, _ = stand_in.linalg.lapack.dpotri(factor, overwrite_c=1)
    assert not failed
    np.testing.assert_allclose(np.triu(inverse), np.triu(np.linalg.inv(matrix)), rtol=1e-10)
    assert stand_in.linalg.lapack.dpotrf(-matrix)[1]


@pytest.mark.parametrize("module", ["special", "spatial.distance", "optimize", "linalg", "sparse"])
def test_what_is_not_there_can_be_imported_and_refuses_to_be_used(module):
    found = importlib.import_module(f"stand_in.{module}").no_such_function
    with pytest.raises(NotImplementedError, match=rf"`stand_in.{module}.no_such.* needs SciPy"):
        found(1)


# -- the programs ------------------------------------------------------------------------

# Runs a program with SciPy, or with what stands in for it: that is found first, where it is named.
RUN = "import scipy, page, sys; print(scipy.__file__, file=sys.stderr); page.run(sys.argv[1])"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_page_says_the_same_with_what_stands_in_for_scipy(name, tmp_path):
    (tmp_path / "page.py").write_text((HERE / "page.py").read_text())
    said = {}
    for folder in (HERE, tmp_path):
        places = [str(folder), str(ROOT / "src")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "WASSEMBLE_NATIVE": "0"}
        command = [sys.executable, "-c", RUN, PROGRAMS[name]]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert (str(HERE) in done.stderr) == (folder == HERE)
        said[folder] = done.stdout
    assert said[HERE] == said[tmp_path]
    assert "Error" not in said[HERE]


def test_the_page_has_the_case_of_the_readme():
    assert next(iter(PROGRAMS)) == "Which car"
    assert len(PROGRAMS) >= 3


def test_a_program_shows_its_last_line_as_a_notebook_does(capsys):
    assert page.run("a = 2\na + 3")
    assert page.run("None")
    assert capsys.readouterr().out == "5\n"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("a = 1\na / 0\n", "line 2: ZeroDivisionError: division by zero"),
        ("def f():\n    raise ValueError('no')\n\nf()", "line 2: ValueError: no"),
        ("a = (", "SyntaxError"),
        ("import wassemble as ws\nws.fuse([[0.5, 0.6]])", "line 2: wassemble.errors.Invalid"),
        ("raise SystemExit(3)", "line 1: SystemExit: 3"),
    ],
)
def test_an_error_is_told_with_its_line(program, words, capsys):
    assert not page.run(program)
    said = capsys.readouterr().out
    assert words in said
    assert "Traceback" not in said


def test_a_part_of_the_library_that_is_not_there_is_refused_in_a_sentence():
    with pytest.raises(NotImplementedError, match=r"`wassemble\.text` is not on this page"):
        page.Rest().find_spec("wassemble.text", None)
    assert page.Rest().find_spec("json", None) is None


# -- what is built -----------------------------------------------------------------------


def test_the_library_goes_without_what_needs_more_of_scipy():
    names = {str(name) for name, _ in build.list_library()}
    for name in (
        "wassemble/__init__.pyi",
        "scipy/sparse/csgraph.py",
        "page.py",
        "threadpoolctl.py",
    ):
        assert name in names
    assert not [name for name in names if name.startswith(("wassemble/web/", "wassemble/text/"))]


def test_an_archive_of_other_content_than_was_pinned_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "ARCHIVES", tmp_path)
    (tmp_path / "some-thing-1.tgz").write_bytes(b"something else")
    with pytest.raises(SystemExit, match="@some/thing@1 is not what it was"):
        build.fetch("@some/thing@1", "0" * 128)
    assert not list(tmp_path.iterdir())


def test_without_npm_nothing_is_built_and_it_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build, "ARCHIVES", tmp_path)
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path / "try")])
    assert build.main() == 0
    assert not (tmp_path / "try").exists()
    assert "was not built: there is no npm here" in capsys.readouterr().err


# -- the page ----------------------------------------------------------------------------


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class NotBuilt(Quiet):
    def send_head(self):
        if self.path.endswith("/built.json"):
            return self.send_error(404)
        return super().send_head()


@pytest.fixture
def serve():
    """A function that serves the site as any server of files does, and says where the page is."""
    if not (SITE / "try" / "built.json").is_file():
        pytest.skip("no site with the page: `make site` builds it, where there is a network")
    servers = []

    def serve(handler=Quiet):
        how = functools.partial(handler, directory=str(SITE))
        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), how))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}/try.html"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.browser
def test_the_page_fuses_in_a_browser(serve, tmp_path):
    from selenium.webdriver.support.wait import WebDriverWait

    with open_browser(tmp_path) as browser:
        browser.get(serve())

        def find(name):
            return browser.find_element("id", f"try-{name}")

        def wait(words):
            WebDriverWait(browser, SECONDS).until(lambda _: find("state").text.startswith(words))

        WebDriverWait(browser, SECONDS).until(lambda _: browser.find_elements("id", "try-run"))
        find("run").click()
        wait(("done", "failed", "Python"))
        assert "consensus [0.63 0.37]" in find("output").text.splitlines()

        # Every other program, by its button.
        for button in browser.find_elements("class name", "try-own")[1:]:
            browser.execute_script("arguments[0].click()", button)
            wait(("done", "failed", "Python"))
            assert find("state").text.startswith("done"), find("output").text

        # One that does not end is stopped, and the page goes on.
        for program, end in (("while True: pass", None), ("1 / 0", "failed")):
            fill = "document.getElementById('try-program').value = arguments[0]"
            browser.execute_script(fill, program)
            find("run").click()
            wait(end or "running")
            if end is None:
                find("run").click()
                wait("stopped")
        assert "line 1: ZeroDivisionError" in find("output").text


@pytest.mark.browser
def test_a_page_that_was_not_built_says_so(serve, tmp_path):
    from selenium.webdriver.support.wait import WebDriverWait

    with open_browser(tmp_path) as browser:
        browser.get(serve(NotBuilt))
        words = "This copy of the site was built without Python"
        WebDriverWait(browser, SECONDS).until(
            lambda _: words in browser.find_element("id", "try").text
        )
