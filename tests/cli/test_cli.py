"""The command: what a person types, and what comes back."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from patience import SECONDS

import wassemble as ws
from wassemble import Predictions, read_predictions, write_predictions
from wassemble.cli import main

nan = np.nan


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with three files of three kinds and three label sets."""
    monkeypatch.chdir(tmp_path)
    cats = [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]
    write_predictions("a.csv", Predictions("a", ["x", "y", "z"], ["cat", "dog"], cats))
    wild = [[0.1, 0.9], [0.6, 0.4]]
    write_predictions("b.parquet", Predictions("b", ["y", "x"], ["cat", "lynx"], wild))
    (tmp_path / "c.jsonl").write_text(
        '{"sample": "x", "label": "dog", "score": 0.4}\n'
        '{"sample": "z", "label": "cat", "score": 0.9}\n'
    )
    return tmp_path


def test_three_files_become_one(folder, capsys):
    assert main(["fuse", "a.csv", "b.parquet", "c.jsonl", "--out", "fused.parquet"]) == 0
    fused = read_predictions("fused.parquet")
    assert fused.samples.tolist() == ["x", "y", "z"]
    assert fused.labels.names == ("cat", "dog", "lynx")
    np.testing.assert_allclose(fused.scores.sum(axis=1), 1)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "fused.parquet: 3 samples x 3 labels from 3 models" in printed.err
    assert "c: no answer for 1 of 3 samples" in printed.err
    expected = ws.fuse([read_predictions(f) for f in ("a.csv", "b.parquet", "c.jsonl")])
    np.testing.assert_allclose(fused.scores, expected.scores, rtol=1e-6)


@pytest.mark.parametrize(
    "out", ["f.csv", "f.tsv", "f.parquet", "f.arrow", "f.feather", "f.npz", "f.npy", "f.jsonl"]
)
def test_every_format_can_be_written(folder, out):
    assert main(["fuse", "a.csv", "b.parquet", "--out", out, "--quiet"]) == 0
    assert read_predictions(out).labels.names == ("cat", "dog", "lynx")


def test_without_out_the_consensus_is_csv_on_standard_output(folder, capsys):
    assert main(["fuse", "a.csv", "b.parquet"]) == 0
    (folder / "piped.csv").write_text(capsys.readouterr().out)
    main(["fuse", "a.csv", "b.parquet", "--out", "f.csv"])
    np.testing.assert_array_equal(
        read_predictions("piped.csv").scores, read_predictions("f.csv").scores
    )


def test_json_is_an_account_for_machines(folder, capsys):
    assert main(["fuse", "a.csv", "b.parquet", "--out", "f.csv", "--json", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    account = json.loads(printed.out)
    assert account["n_samples"] == 3
    assert account["models"][1]["model"] == "b"
    assert account["label_aware_weights"] is True


def test_models_can_be_named(folder, capsys):
    assert main(["fuse", "first=a.csv", "second=a.csv", "--out", "f.csv", "--json"]) == 0
    assert [m["model"] for m in json.loads(capsys.readouterr().out)["models"]] == [
        "first",
        "second",
    ]


def test_a_config_file_says_what_flags_say(folder, capsys):
    (folder / "fuse.toml").write_text(
        'files = ["a.csv", "b.parquet"]\nout = "from_config.csv"\nmass-penalty = 3\n'
        "epsilon = 0.5\nfold = true\n[weights]\na = 0.25\nb = 0.75\n"
    )
    assert main(["fuse", "--config", "fuse.toml"]) == 0
    flags = ["--mass-penalty", "3", "--epsilon", "0.5", "--weights", "a=0.25,b=0.75", "--fold"]
    assert main(["fuse", "a.csv", "b.parquet", *flags, "--out", "from_flags.csv"]) == 0
    assert (folder / "from_config.csv").read_bytes() == (folder / "from_flags.csv").read_bytes()
    assert main(["fuse", "--config", "fuse.toml", "--out", "other.csv"]) == 0
    assert (folder / "other.csv").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epsilonn = 1", "unknown key 'epsilonn'"),
        ("epsilon = ", "must be TOML"),
        ("epsilon = [1, 2]", "'epsilon' must be one value"),
        ("fold = 3", "'fold' must be true or false"),
        ("epsilon = true", "'epsilon' must not be true or false"),
        ("epsilon = 'much'", "must be a number or \"auto\"; got 'much'"),
    ],
)
def test_a_wrong_config_is_refused(folder, capsys, text, message):
    (folder / "fuse.toml").write_text(text)
    assert main(["fuse", "a.csv", "--config", "fuse.toml"]) == 2
    assert message in capsys.readouterr().err


def test_a_kernel_is_built_looked_into_saved_and_used(folder, capsys):
    (folder / "vectors.txt").write_text("cat 1 0\nlynx 0.9 0.1\ndog 0 1\n")
    vectors = ["--embeddings", "vectors.txt", "--epsilon", "0.3"]
    (folder / "labels.txt").write_text("cat\nlynx\ndog\n")
    built = ["kernel", "--source", "labels.txt", *vectors]
    assert main([*built, "--out", "k.npz"]) == 0
    printed = capsys.readouterr()
    assert "lynx" in printed.out
    assert "saved k.npz" in printed.err
    assert main(["kernel", "--kernel", "k.npz", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(["fuse", "a.csv", "b.parquet", *vectors, "--out", "direct.npz"]) == 0
    assert main(["fuse", "a.csv", "b.parquet", "--kernel", "k.npz", "--out", "loaded.npz"]) == 0
    direct, loaded = read_predictions("direct.npz"), read_predictions("loaded.npz")
    places = [loaded.labels.place(name) for name in direct.labels]
    np.testing.assert_allclose(direct.scores, loaded.scores[:, places], rtol=1e-5)


def test_explain_says_where_mass_came_from(folder, capsys):
    files = ["a.csv", "b.parquet"]
    assert main(["explain", *files, "--sample", "x", "--label", "cat", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["label"] == "cat"
    assert sum(c["percent"] for c in found["contributions"]) == pytest.approx(100)
    assert main(["explain", *files, "--sample", "x"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split("\t")[0] == "percent"


def test_without_a_sample_the_most_disputed_are_listed(folder, capsys):
    assert main(["explain", "a.csv", "b.parquet", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["sample"] for row in rows} == {"x", "y", "z"}
    assert rows[0]["disagreement"] >= rows[1]["disagreement"]
    assert rows[-1]["b"] is None


def test_describe_says_what_is_in_files(folder, capsys):
    assert main(["describe", "a.csv", "c.jsonl"]) == 0
    out = capsys.readouterr().out
    assert "multiclass, detected" in out
    assert main(["describe", "c.jsonl", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["unobserved_scores"] == 0.5


def test_describe_has_dots_only_where_names_are_left_out(folder, capsys):
    (folder / "few.csv").write_text("id,even,odd\nx,0.5,0.5\n")
    many = ",".join("abcdef")
    rows = "".join(f"{sample},1,0,0,0,0,0\n" for sample in "stuv")
    (folder / "many.csv").write_text(f"id,{many}\n{rows}")
    assert main(["describe", "few.csv", "many.csv"]) == 0
    few, found = capsys.readouterr().out.split("\n\n")
    assert "1 (x)" in few
    assert "2 (even, odd)" in few
    assert "4 (s, t, u ...)" in found
    assert "6 (a, b, c, d, e ...)" in found


def test_files_of_one_name_are_named_as_one_names_files(folder, capsys):
    (folder / "sub").mkdir()
    (folder / "sub" / "a.csv").write_bytes((folder / "a.csv").read_bytes())
    for command in (["fuse", "a.csv", "sub/a.csv"], ["explain", "a.csv", "sub/a.csv"]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "models must have different names; got 'a' for a.csv and sub/a.csv." in said
        assert said.endswith("hint: say NAME=FILE: a=a.csv a_2=sub/a.csv\n")
        assert main([command[0], *said.split("NAME=FILE: ")[1].split()]) == 0
        capsys.readouterr()
    assert main(["describe", "a.csv", "sub/a.csv"]) == 0  # nothing is matched there


def test_declared_labels_of_a_long_file(folder, capsys):
    (folder / "c.txt").write_text("cat\ndog\nwolf\n")
    assert main(["describe", "c.jsonl", "--labels", "c=c.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["n_labels"] == 3


def test_id_columns_may_differ(folder, capsys):
    (folder / "d.csv").write_text("image,label,score\nx,cat,0.6\nx,dog,0.3\ny,dog,0.5\n")
    command = ["fuse", "a.csv", "d.csv", "--id-column", "d=image", "--out", "f.csv"]
    assert main(command) == 0
    assert read_predictions("f.csv").samples.tolist() == ["x", "y", "z"]
    assert main([*command, "--id-column", "d=sample"]) == 2
    assert "must be one for d" in capsys.readouterr().err


def test_animals_from_attributes_as_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["example", "animals", "demo"]) == 0
    command = capsys.readouterr().err.splitlines()[-1].removeprefix("try: wassemble ").split()
    assert main([*command, "--quiet"]) == 0
    data = ws.inputs.load_animals()
    fused = read_predictions("demo/fused.parquet", kind="multilabel")
    best = np.array(fused.labels)[fused.scores.argmax(axis=1)]
    right = best == np.array(data.animals)[data.truth]
    assert right[data.is_test].mean() == pytest.approx(0.940, abs=0.005)


def test_nine_language_detectors_as_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["example", "languages", "demo"]) == 0
    capsys.readouterr()
    files = sorted(str(p) for p in (tmp_path / "demo").glob("*.npz"))
    options = ["--confusion", "demo/truth.csv", "--weights", "accuracy", "--quiet"]
    assert main(["fuse", *files, *options, "--out", "demo/fused.npz"]) == 0
    data = ws.inputs.load_languages()
    fused = read_predictions("demo/fused.npz")
    best = np.array(fused.labels)[fused.scores.argmax(axis=1)]
    assert (best == np.array(data.truth))[data.is_test].mean() > 0.915


# -- errors --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fuse", "nothing.csv"], "nothing.csv"),
        (["fuse", "a.csv", "--weights", "a"], "MODEL=NUMBER"),
        (["fuse", "a.csv", "--weights", "b=1"], "must name each of 'a'"),
        (["fuse", "a.csv", "--weights", "accuracy"], "must go with --confusion"),
        (["fuse", "a.csv", "--epsilon", "much"], 'must be a number or "auto"'),
        (["fuse", "a.csv", "--tolerance", "much"], 'must be a number or "none"'),
        (["fuse", "a.csv", "--balanced", "--mass-penalty", "2"], "two algorithms"),
        (["fuse", "a.csv", "--rule", "geometric", "--mass-penalty", "2"], "--mass-penalty must go"),
        (["fuse", "a.csv", "--rule", "geometric", "--balanced"], "got --rule geometric"),
        (["fuse", "a.csv", "--rule", "geometric", "--tolerance", "1"], "--tolerance must go with"),
        (["fuse", "a.csv", "--out", "f.xyz"], "must end in .csv"),
        (["fuse", "a.csv", "--json"], "got no --out"),
        (["fuse", "a.csv", "--tree", "t", "--spelling"], "one origin"),
        (["fuse", "a.csv", "--spelling", "--n-neighbors", "3"], "must go with --embeddings"),
        (["fuse", "a.csv", "--tree", "t", "--local-bandwidth", "5"], "must go with --embeddings"),
        (["fuse", "a.csv", "--kernel", "b=k.npz"], "one of a; got b"),
        (["fuse", "a.csv", "--kernel", "k.npz", "--spelling"], "got --spelling beside it"),
        (["fuse", "a.csv", "a.csv"], "got 'a' for a.csv and a.csv."),
        (["fuse", "a.csv", "--target", "none.txt"], "none.txt"),
        (["fuse", "a.csv", "--labels", "q=a.csv"], "must name a model; got q"),
        (["fuse", "a.csv", "--rule", "best"], "is not one of"),
        (["fuse", "a.csv", "--frobnicate"], "--frobnicate"),
        (["fuse"], "Missing argument"),
        (["kernel"], "must have an origin"),
        (["kernel", "--spelling"], "no --source"),
        (["kernel", "--kernel", "a", "--kernel", "b"], "2 times"),
        (["kernel", "--confusion", "t.csv"], "needs predictions"),
        (["explain", "a.csv", "--sample", "q"], "got 'q'"),
        (["explain", "a.csv", "--sample", "x", "--label", "catt"], "near it: 'cat'"),
        (["frobnicate"], "No such command"),
    ],
)
def test_a_wrong_call_is_one_clear_error_and_exit_code_2(folder, capsys, arguments, message):
    before = sorted(folder.iterdir())
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert sorted(folder.iterdir()) == before


def test_what_should_not_happen_is_words_too(folder, capsys, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a wheel came off")

    monkeypatch.setattr("wassemble.scale.fuse_files", broken)
    assert main(["fuse", "a.csv", "--out", "f.csv"]) == 1
    assert "RuntimeError: a wheel came off" in capsys.readouterr().err


def test_an_interrupt_is_heeded_while_a_library_imports_another(folder):
    # pyarrow imports pandas, and takes whatever goes wrong there for a missing pandas.
    (folder / "modules" / "pandas").mkdir(parents=True)
    (folder / "modules" / "pandas" / "__init__.py").write_text(
        "import signal, sys\n"
        "if not hasattr(sys, 'once'):\n"
        "    sys.once = True\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "raise ImportError('pandas')\n"
    )
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        " sys.path.insert(0, 'modules');"
        " from wassemble.cli import main; sys.exit(main(['fuse', 'a.csv', '--out', 'f.csv']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "error: interrupted; no file was changed."
    assert done.returncode == 1
    assert not (folder / "f.csv").exists()


def test_an_interrupt_leaves_no_half_file(folder, capsys, monkeypatch):
    (folder / "f.csv").write_text("old")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("wassemble.ensemble.plan.FusionPlan.fuse", interrupted)
    before = sorted(folder.iterdir())
    assert main(["fuse", "a.csv", "--out", "f.csv"]) == 1
    assert "interrupted" in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before
    assert (folder / "f.csv").read_text() == "old"


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "wassemble", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        **options,
    )


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys\nfrom wassemble.cli import main\nmain(['--help'])\n"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'narwhals', 'rich', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    for command in ("fuse", "kernel", "explain", "describe", "example", "completion"):
        assert command in found.stdout
    # Twice as long today; processors differ.
    assert processor_seconds("-m", "wassemble", "fuse", "--help") < 6 * processor_seconds(
        "-c", "import click"
    )


def processor_seconds(*arguments):
    """Of a Python process at its quickest: what else the machine does is not ours."""
    times = []
    for _ in range(3):
        before = sum(os.times()[2:4])
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
        times.append(sum(os.times()[2:4]) - before)
    return min(times)


@pytest.mark.parametrize("command", ["fuse", "kernel", "explain", "describe", "example"])
def test_every_command_has_examples(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"wassemble {command} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("fuse", ["--out", "--top", "--target", "--embeddings", "--confusion"]),
        ("fit", ["--truth", "--out", "--metric", "--target"]),
    ],
)
def test_help_begins_with_what_one_starts_with_and_goes_on_in_groups(command, first, capsys):
    assert main([command, "--help"]) == 0
    sections = re.findall(r"^(\w[\w ]*):\n((?:  .*\n|\n)*)", capsys.readouterr().out, re.MULTILINE)
    titles = ["Start with", "Input", "Labels and samples", "Kernel", "Rule", "Output", "Options"]
    assert [title for title, _ in sections] == titles
    flags = [re.findall(r"^  (?:-h, )?(--\S+)", text, re.MULTILINE) for _, text in sections]
    assert flags[0] == first
    assert flags[-1] == ["--help"]


def test_help_of_a_command_that_names_nothing_to_start_with_begins_with_its_own(capsys):
    assert main(["hub", "--help"]) == 0
    titles = re.findall(r"^(\w[\w ]*):\n", capsys.readouterr().out, re.MULTILINE)
    assert titles == ["Options", "Output"]


@pytest.mark.parametrize("command", ["fuse", "hub", "serve", "serve-head", "back-off"])
def test_help_says_no_ranges_in_signs(command, capsys):
    assert main([command, "--help"]) == 0
    said = capsys.readouterr().out
    assert "RANGE" not in said
    assert "<=" not in said


def test_a_number_beyond_its_range_is_refused_with_the_range(folder, capsys):
    assert main(["fuse", "a.csv", "--ordered", "--power", "3"]) == 2
    assert "3 is not in the range 1<=x<=2" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "_WASSEMBLE_COMPLETE" in capsys.readouterr().out


def test_completion_answers_in_a_shell():
    environment = os.environ | {
        "_WASSEMBLE_COMPLETE": "bash_complete",
        "COMP_WORDS": "wassemble fuse --emb",
        "COMP_CWORD": "2",
    }
    assert "--embeddings" in run(env=environment).stdout


def test_a_closed_pipe_is_no_error_to_speak_of(folder):
    many = Predictions("m", range(20000), ["cat", "dog"], np.full((20000, 2), 0.5))
    write_predictions("m.csv", many)
    command = f"{sys.executable} -m wassemble fuse m.csv --quiet | head -n 2"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert found.stdout.splitlines()[0] == "sample,cat,dog"
    assert found.stderr == ""


@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_kill_in_the_middle_leaves_no_half_file(folder, kill):
    many = Predictions("m", range(20_000), ["cat", "dog"], np.full((20_000, 2), 0.5))
    write_predictions("m.csv", many)
    # However late the kill comes, the file has not got its name by then.
    script = (
        "import pathlib, sys, time\n"
        f"pathlib.Path.replace = lambda *_: time.sleep({SECONDS})\n"
        "from wassemble.cli import main\n"
        "sys.exit(main(['fuse', 'm.csv', 'n=m.csv', '--out', 'big.csv']))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    give_up = time.monotonic() + SECONDS
    while not list(folder.glob(".unfinished-*")):
        assert process.poll() is None
        assert time.monotonic() < give_up
        time.sleep(0.005)
    process.send_signal(kill)
    said = process.communicate()[1]
    assert not (folder / "big.csv").exists()
    if kill is not signal.SIGKILL:
        assert process.returncode == 1
        assert said.strip() == "error: interrupted; no file was changed."
        assert not list(folder.glob(".unfinished-*"))
