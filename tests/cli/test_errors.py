"""Errors of the command line: one each, clear, and in flags rather than in Python."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

import wassemble
from wassemble import Predictions, write_predictions
from wassemble.cli import main
from wassemble.cli.command import command as whole_command
from wassemble.cli.places import flags_of
from wassemble.errors import option, speaking
from wassemble.solvers.mass import say_unbalanced

FUSE = whole_command.commands["fuse"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = [[0.7, 0.3], [0.2, 0.8]]
    for name in ("a", "b"):
        write_predictions(f"{name}.csv", Predictions(name, ["x", "y"], ["cat", "dog"], table))
    (tmp_path / "c.csv").write_text("sample,cat,dog\nz,.7,.3\n")
    (tmp_path / "scores.csv").write_text("sample,cat,dog\nx,3,4\ny,1,0\n")
    (tmp_path / "two.csv").write_text("sample,id,cat\nx,1,0.5\n")
    (tmp_path / "truth.csv").write_text("sample,label\nx,cat\ny,dog\n")
    (tmp_path / "v.txt").write_text("cat 1 0\ndog 0 1\n")
    (tmp_path / "k.csv").write_text("source,target,similarity\ncat,cat,1\ndog,dog,1\n")
    (tmp_path / "at.csv").write_text("sample,cat,dog\ncat,1,0\ndog,0,1\n")
    return tmp_path


# -- options that would have no effect ----------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fuse a.csv --epsilon -1", "above 0"),
        ("fuse a.csv --epsilon 0", "above 0"),
        ("fuse a.csv --epsilon nan", "above 0"),
        ("fuse a.csv --epsilon inf", "above 0"),
        ("fuse a.csv --embeddings v.txt --epsilon -1", "above 0"),
        ("kernel --source a.csv --spelling --epsilon -1", "above 0"),
        ("fuse a.csv b.csv --epsilon 0.3", "or --mass-penalty; got none of them"),
        ("explain a.csv b.csv --epsilon 0.3", "or --mass-penalty; got none of them"),
        ("fuse a.csv --kernel k.csv --epsilon 0.3", "got --kernel"),
        ("fuse a.csv --attributes at.csv --epsilon 0.3", "got --attributes"),
        ("kernel --kernel k.csv --epsilon 0.3", "--costs or --spelling; got --kernel"),
        ("fit a.csv --truth truth.csv --out e --epsilon 0.3", "--spelling; got none of them"),
        ("fuse a.csv --n-neighbors 3", "--n-neighbors must go with --embeddings; got none"),
        ("fuse a.csv --prior 0.3", "--prior must go with --confusion; got none"),
        ("fuse a.csv --truth-column label", "--truth-column must go with --confusion; got none"),
        ("explain a.csv b.csv --label cat", "--label must go with --sample"),
        ("explain a.csv b.csv --n-largest 0", "--n-largest must"),
        ("fit a.csv --truth truth.csv --out e --time-budget -1", "--time-budget must"),
        ("fuse a.csv c.csv --allow-disjoint --samples common", "none that all models have"),
        ("fuse a.csv b.csv --aliases truth.csv", "truth.csv: some alias must be of a label"),
        ("fuse a.csv --mass-penalty -1", "mass"),
    ],
)
def test_an_option_that_nothing_uses_is_refused(folder, capsys, line, message):
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said


@pytest.mark.parametrize(
    "line",
    [
        "fuse a.csv b.csv --mass-penalty 2 --epsilon 0.3",
        "fuse a.csv b.csv --embeddings v.txt --epsilon 0.3",
        "fuse a.csv b.csv --attributes at.csv --mass-penalty 2 --epsilon 0.3",
        "kernel --source a.csv --spelling --epsilon 0.3",
    ],
)
def test_an_option_that_something_uses_is_taken(folder, line):
    assert main(line.split()) == 0


# -- the language of the caller -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "python", "flag"),
    [
        ("kind", ("multilabel",), 'kind="multilabel"', "--kind multilabel"),
        ("weights", (), "`weights`", "--weights"),
        ("id_column", (), "`id_column`", "--id-column"),
        ("label_column", ("label",), 'label_column="label"', "--label-column label"),
        ("labels", (["label"],), 'labels=["label"]', "--labels FILE"),
        ("labels", (...,), "labels=...", "--labels FILE"),
        ("other", ({"a": "none"},), 'other={"a": "none"}', "--other a=none"),
        ("fold", (True,), "fold=True", "--fold"),
        ("tolerance", (None,), "tolerance=None", "--tolerance none"),
        ("max_sweeps", (500,), "max_sweeps=500", "--max-sweeps 500"),
        ("mass_penalty", (...,), "mass_penalty=...", "--mass-penalty NUMBER"),
        # What the command has no option for stays Python.
        ("mixed_precision", (True,), "mixed_precision=True", "mixed_precision=True"),
        ("scores", (), "`scores`", "`scores`"),
    ],
)  # fmt: skip
def test_an_argument_is_named_as_the_reader_types_it(name, value, python, flag):
    assert option(name, *value) == python
    with speaking(flags_of(FUSE)):
        assert option(name, *value) == flag
    assert option(name, *value) == python


def test_python_without_a_flag_of_its_own_is_said_by_others():
    python = "mass=Unbalanced(mass_penalty, epsilon=...)"
    assert say_unbalanced() == python
    with speaking(flags_of(whole_command.commands["score"])):
        assert say_unbalanced() == python
    with speaking(flags_of(FUSE)):
        assert say_unbalanced() == "--mass-penalty NUMBER --epsilon NUMBER"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fuse scores.csv --kind multiclass", "--kind multilabel"),
        ("fuse a.csv scores.csv", "--kind multilabel takes rows of any mass"),
        ("fuse two.csv", "--id-column says which one"),
        ("fuse a.csv b.csv --weights a=0.5,b=0.1", "--weights must sum to 1"),
        ("fuse a.csv b.csv --unobserved drop --balanced", "--mass-penalty NUMBER"),
        ("fuse a.csv --leftover 2", "--leftover"),
        ("fuse a.csv --hard-confidence 2", "--hard-confidence"),
        ("fuse a.csv --max-sweeps 0", "--max-sweeps"),
        ("fuse a.csv --n-top 0", "--n-top"),
        ("fit a.csv --truth truth.csv --out e --n-folds 1", "--n-folds"),
        ("fit a.csv --truth truth.csv --out e --metric best", "--metric must be one of"),
    ],
)
def test_hints_of_the_library_reach_a_person_as_flags(folder, capsys, line, message):
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert message in said
    assert not re.search(r"`[a-z_]+`|[a-z_]+=[\"'.]", said), said


# Parts in which hints may name arguments in Python: no command reaches them.
PYTHON_ALONE = {
    "kernels/dense.py": "the command gives kernels and arrays that fit",
    "kernels/named": "built from files, never by hand",
    "kernels/builders/word_vectors.py": "read from files",
    "kernels/builders/embeddings.py": "metrics and features are Python's alone",
    "solvers": "the command gives kernels and arrays that fit",
    "metrics": "functions of arrays",
    "text": "models of text are Python's alone",
    "ensemble/estimators": "scikit-learn's manner",
    "ensemble/decisions.py": "costs of decisions are Python's alone",
    "ensemble/learning/kernel": "learned kernels are Python's alone",
    "ensemble/learning/evaluation.py": "metrics that are functions",
    "inputs/predictions/frames.py": "data frames",
    "scale": "folders and streams that Python opens",
    "web": "pages",
    "_": "what libraries are missing",
}


def every_option():
    """Arguments that an option of some command stands for."""
    found = set()
    todo = list(whole_command.commands.values())
    while todo:
        each = todo.pop()
        todo += getattr(each, "commands", {}).values()
        found |= flags_of(each).keys()
    return found


def texts_of(node):
    """Texts in an expression; what is filled in is an x."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "option_or":
        return []  # has the flags beside the Python
    if isinstance(node, ast.JoinedStr):
        parts = (getattr(part, "value", "") for part in node.values)
        return ["".join(part if isinstance(part, str) else "x" for part in parts)]
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    return [text for child in ast.iter_child_nodes(node) for text in texts_of(child)]


def test_no_other_hint_speaks_python():
    """A hint names an argument through `option`, or is of a part without commands."""
    root = Path(wassemble.__file__).parent
    names = "|".join(sorted(every_option()))
    python = re.compile(rf"`(?:{names})`|(?<![-\w])[a-z_]+=[\"'\[{{.A-Z0-9]")
    left = []
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root).as_posix()
        if any(where.startswith(part) for part in PYTHON_ALONE):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                left += [
                    f"{where}:{node.value.lineno}: {text}"
                    for text in texts_of(node.value)
                    if python.search(text)
                ]
    assert left == []


# -- a damaged ensemble ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    """A learned ensemble with kernels and stacking, and the files that it was learned from."""
    folder = tmp_path_factory.mktemp("learned")
    rng = np.random.default_rng(0)
    labels = ["cat", "dog", "cow"]
    truth = rng.integers(3, size=90)
    for name in ("a", "b"):
        scores = np.exp(rng.normal(size=(90, 3)) + 1.5 * np.eye(3)[truth])
        scores /= scores.sum(axis=1, keepdims=True)
        write_predictions(folder / f"{name}.csv", Predictions(name, range(90), labels, scores))
    lines = "".join(f"{i},{labels[t]}\n" for i, t in enumerate(truth))
    (folder / "truth.csv").write_text(f"sample,label\n{lines}")
    files = [f"{folder}/a.csv", f"{folder}/b.csv", "--truth", f"{folder}/truth.csv"]
    assert main(["fit", *files, "--out", f"{folder}/e", "--n-folds", "2", "--quiet"]) == 0
    return folder


@pytest.fixture
def damaged(ensemble, tmp_path):
    """A copy of the ensemble to damage, and the command that uses it."""
    for path in (ensemble / "e").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    files = [f"{ensemble}/a.csv", f"{ensemble}/b.csv"]
    return tmp_path, ["predict", str(tmp_path), *files, "--out", str(tmp_path / "fused.csv")]


def test_a_whole_ensemble_is_used(damaged):
    assert main(damaged[1]) == 0


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("ensemble.json", None, "must hold ensemble.json"),
        ("ensemble.json", b"", "it is damaged"),
        ("ensemble.json", b'{"format": "wass', "it is damaged"),
        ("ensemble.json", b"\xff\xfe", "it is damaged"),
        ("ensemble.json", b"[" * 100_000, "it is damaged"),
        ("ensemble.json", b"[]", "must be a learned ensemble"),
        ("ensemble.json", b'{"format": "other"}', "must be a learned ensemble"),
        ("ensemble.json", b'{"format": "wassemble ensemble 1"}', "it lacks 'fusion'"),
        ("kernel-0.npz", None, "kernel-0.npz: must be a file; there is none"),
        ("kernel-0.npz", b"PK", "kernel-0.npz"),
        ("rule-*.npz", None, ".npz: must be a .npz file"),
        ("rule-*.npz", b"PK", ".npz: must be a .npz file"),
    ],
)
def test_a_damaged_ensemble_is_one_clear_error(damaged, capsys, file, damage, message):
    folder, command = damaged
    path = next(iter(sorted(folder.glob(file))))
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert main(command) == 2
    said = capsys.readouterr().err
    assert message in said
    assert str(folder) in said
    assert len(said.splitlines()) <= 2


def test_no_entry_of_an_ensemble_can_be_lost_or_changed_without_words(damaged, capsys):
    folder, command = damaged
    record = keep_one_of_each(folder)
    whole = json.dumps(record)
    (folder / "ensemble.json").write_text(whole)
    assert main(command) == 0
    for path in entries(record):
        for value in (None, "x", -1, 0.5, [], {}, ["x"], {"x": 1}, "gone"):
            changed = json.loads(whole)
            *above, last = path
            place = changed
            for key in above:
                place = place[key]
            if value == "gone":
                del place[last]
            else:
                place[last] = value
            (folder / "ensemble.json").write_text(json.dumps(changed))
            capsys.readouterr()
            code = main(command)
            said = capsys.readouterr().err
            assert code in (0, 2), (path, value, said)


def keep_one_of_each(folder):
    """The record of an ensemble with one rule of each kind: the same lines read those like it."""
    record, first = json.loads((folder / "ensemble.json").read_text()), {}
    for place, (entry, kernel) in enumerate(zip(record["rules"], record["kernel"], strict=True)):
        first.setdefault((entry["rule"]["rule"], type(kernel)), place)
    assert len(first) >= 4
    for key in ("rules", "kernel"):
        record[key] = [record[key][place] for place in first.values()]
    for new, place in enumerate(first.values()):
        if (folder / f"rule-{place}.npz").exists():
            (folder / f"rule-{place}.npz").rename(folder / f"rule-{new}.npz")
    return record


def entries(record):
    """Places in nested dicts and lists; of lists, and of dicts of the same form, the first."""
    places = list(record.items() if isinstance(record, dict) else enumerate(record))
    forms = {tuple(value) if isinstance(value, dict) else None for _, value in places}
    if isinstance(record, list) or (len(forms) == 1 and None not in forms):
        places = places[:1]
    for key, value in places:
        if key == "leaderboard":
            continue
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, *rest) for rest in entries(value))


def test_keys_of_a_config_file_are_names_of_options(folder, capsys):
    (folder / "c.toml").write_text('other = "dog"\nkernel = "k.csv"\njson = true\nout = "f.csv"\n')
    assert main(["fuse", "a.csv", "b.csv", "--config", "c.toml"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == "f.csv"


def test_a_forgotten_ensemble_is_said(folder, capsys):
    assert main(["predict", "a.csv", "b.csv", "--out", "p.csv"]) == 2
    assert "the folder that `wassemble fit` wrote; got the file a.csv" in capsys.readouterr().err


def test_an_interrupted_fit_keeps_its_log(folder, capsys, monkeypatch):
    def interrupted(*_, log, **__):
        log.write_text("")
        raise KeyboardInterrupt

    monkeypatch.setattr("wassemble.ensemble.learning.learn_ensemble", interrupted)
    fit = ["fit", "a.csv", "b.csv", "--truth", "truth.csv", "--out", "e", "--log", "l.jsonl"]
    assert main(fit) == 1
    assert "l.jsonl is kept, and the same command goes on" in capsys.readouterr().err


def test_a_kernel_that_lacks_labels_is_told_by_flags(folder, capsys):
    (folder / "one.csv").write_text("source,target,similarity\ncat,pet,1\n")
    assert main(["fuse", "a.csv", "b.csv", "--kernel", "one.csv"]) == 2
    assert "its own kernel, --kernel MODEL=FILE" in capsys.readouterr().err
