"""Labels with an order on the command line."""

import json

import numpy as np
import pytest

import wassemble as ws
from wassemble import Predictions, read_predictions, write_predictions
from wassemble.cli import main
from wassemble.ensemble import tree_barycenter
from wassemble.ensemble.learning import LearnedEnsemble
from wassemble.inputs import read_edges, read_positions

GRADES = ["bad", "fair", "good"]
BREEDS = ["husky", "beagle", "cat"]
IN_TREE = ["breeds.csv", "kinds.csv", "--tree", "tree.csv", "--exact"]


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        scores = rng.dirichlet(np.ones(3), 8)
        write_predictions(f"{name}.csv", Predictions(name, range(8), GRADES, scores))
    (tmp_path / "line.csv").write_text("label,position\ngood,10\nbad,0\nfair,2\n")
    (tmp_path / "grades.txt").write_text("bad\nfair\ngood\n")
    lines = "".join(f"{i},{GRADES[i % 3]}\n" for i in range(8))
    (tmp_path / "truth.csv").write_text(f"sample,label\n{lines}")
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        ([], ws.LineBarycenter(2)),
        (["--power", "1"], ws.LineBarycenter(1)),
        (["--target", "line.csv"], ws.LineBarycenter(2, (0, 2, 10))),
        (["--target", "line.csv", "--power", "1"], ws.LineBarycenter(1)),
        (["--target", "grades.txt"], ws.LineBarycenter(2)),
    ],
)
def test_ordered_labels_are_fused_on_the_line(folder, flags, rule):
    assert main(["fuse", "a.csv", "b.csv", "c.csv", "--ordered", *flags, "--out", "f.csv"]) == 0
    fused = read_predictions("f.csv")
    assert list(fused.labels) == GRADES
    given = [read_predictions(f"{name}.csv").scores for name in "abc"]
    np.testing.assert_allclose(fused.scores, rule.fuse(given).scores, atol=1e-6)


@pytest.mark.parametrize("flags", [[], ["--target", "line.csv"], ["--target", "grades.txt"]])
def test_models_are_ranked_on_the_line(folder, capsys, flags):
    files = ["a.csv", "b.csv", "c.csv"]
    assert main(["rank", *files, "--ordered", *flags, "--out", "c1.csv"]) == 0
    assert "errors near against" in capsys.readouterr().err
    line = read_positions("line.csv") if "line.csv" in flags else GRADES
    target = ws.LabelSpace(line).on_line()
    expected = ws.rank_models([read_predictions(file) for file in files], target=target)
    np.testing.assert_array_equal(read_predictions("c1.csv").scores, expected.consensus.scores)


def test_models_are_ranked_on_no_line_unless_told_so(folder, capsys):
    assert main(["rank", "a.csv", "b.csv", "c.csv"]) == 0
    assert "errors near against" not in capsys.readouterr().err


def test_a_list_of_answers_gives_no_order_to_rank_on(folder, capsys):
    (folder / "answers.csv").write_text("sample,label\n0,good\n1,bad\n")
    assert main(["rank", "answers.csv", "b.csv", "c.csv", "--ordered"]) == 2
    assert "the order of all labels must be known" in capsys.readouterr().err


def test_numbers_are_in_their_order_whichever_file_comes_first(folder):
    write_predictions("lacks.csv", Predictions("lacks", range(2), ["1", "10"], np.eye(2)))
    write_predictions("has.csv", Predictions("has", range(2), ["1", "2", "10"], np.eye(3)[:2]))
    (folder / "answers.csv").write_text("sample,label\n0,10\n1,2\n")
    for first, second in (("lacks", "has"), ("has", "lacks"), ("answers", "has")):
        assert main(["fuse", f"{first}.csv", f"{second}.csv", "--ordered", "--out", "f.csv"]) == 0
        assert list(read_predictions("f.csv").labels) == ["1", "2", "10"]
    assert main(["score", "lacks.csv", "--truth", "answers.csv", "--metric", "rps", "--json"]) == 0


def test_an_order_that_nobody_told_is_asked_for(folder, capsys):
    write_predictions(
        "lacks.csv", Predictions("lacks", range(8), ["bad", "good"], np.ones((8, 2)) / 2)
    )
    files = ["lacks.csv", "a.csv"]
    assert main(["fuse", *files, "--ordered"]) == 2
    assert "the first model gives no place to 'fair'.\nhint: name all labels, from the lowest" in (
        capsys.readouterr().err
    )
    assert main(["fuse", "truth.csv", "a.csv", "--ordered"]) == 2  # a list of answers
    assert "gives no place to 'bad', 'fair', 'good'" in capsys.readouterr().err
    scored = ["score", "lacks.csv", "--truth", "truth.csv", "--metric", "rps"]
    assert main(scored) == 2
    assert "gives no place to 'fair'" in capsys.readouterr().err
    assert main([*scored, "--target", "grades.txt", "--json"]) == 0
    # A half on each end is 1/4 + 1/4 off for each truth, in the middle and at both ends.
    [found] = json.loads(capsys.readouterr().out)
    assert found["value"] == pytest.approx(0.5)
    fit = ["fit", "lacks.csv", "a.csv", "--truth", "truth.csv", "--metric", "rps", "--out", "e"]
    assert main(fit) == 2
    assert "gives no place to 'fair'" in capsys.readouterr().err


def test_scales_that_are_cut_differently_are_joined(folder, capsys):
    scores = np.eye(2)[[0, 1] * 4]
    write_predictions("coarse.csv", Predictions("coarse", range(8), ["fail", "pass"], scores))
    files = ["a.csv", "coarse.csv"]
    given = ["--ordered", "--scales", "--target", "grades.txt"]
    assert main(["fuse", *files, *given, "--out", "f.csv"]) == 0
    fused = read_predictions("f.csv")
    assert list(fused.labels) == GRADES
    middle = fused.scores @ [0, 1, 2]
    own = read_predictions("a.csv").scores @ [0, 1, 2]
    # "fail" is 0 or 1, "pass" 1 or 2, the ends twice as likely.
    np.testing.assert_allclose(middle, (own + np.array([1 / 3, 5 / 3] * 4)) / 2, atol=1e-6)
    assert main(["fuse", *files, "--ordered", "--scales"]) == 2
    assert "--scales must go with --target" in capsys.readouterr().err


def test_columns_of_numbers_are_scales_in_the_order_of_numbers(folder, capsys):
    grades = ["5", "4", "3", "2", "1"]
    for name, labels in (("down", grades), ("up", grades[::-1])):
        scores = np.eye(5)[[labels.index("1"), labels.index("4")]]
        write_predictions(f"{name}.csv", Predictions(name, range(2), labels, scores))
    (folder / "five.txt").write_text("1\n2\n3\n4\n5\n")
    given = ["fuse", "down.csv", "up.csv", "--ordered", "--scales", "--out", "f.csv"]
    assert main([*given, "--target", "five.txt"]) == 0
    assert "kernel of 'down': scales; 1 < 2 < 3 < 4 < 5\n" in capsys.readouterr().err
    np.testing.assert_allclose(read_predictions("f.csv").scores, np.eye(5)[[0, 3]], atol=1e-12)
    assert main([*given, "--target", "down.csv"]) == 2
    said = capsys.readouterr().err
    assert "a target scale of numbers must go from the lowest" in said
    assert "hint: --target FILE, a table with the columns label and position" in said


def test_a_target_scale_of_numbers_keeps_its_gaps(folder):
    (folder / "ends.csv").write_text("sample,0,10\na,1,0\nb,0,1\n")
    (folder / "gaps.txt").write_text("0\n1\n10\n")
    given = ["fuse", "m=ends.csv", "n=ends.csv", "--ordered", "--scales", "--target", "gaps.txt"]
    assert main([*given, "--out", "f.csv"]) == 0
    # Of a 0 and what lies near it: 1 is a tenth of the way to the 10.
    np.testing.assert_allclose(read_predictions("f.csv").scores[0], [10 / 19, 9 / 19, 0])


def test_words_of_answers_must_be_told_in_order(folder, capsys):
    (folder / "answers.csv").write_text("sample,label\n0,good\n1,bad\n2,fair\n")
    (folder / "five.txt").write_text("1\n2\n3\n4\n5\n")
    how = ["--scales", "--target", "five.txt"]
    for command in (
        ["fuse", "a.csv", "answers.csv", "--ordered", *how, "--out", "f.csv"],
        ["explain", "a.csv", "answers.csv", "--ordered", *how],
    ):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "grades of 'answers' must have an order; it lists answers, which name 'good'" in said
        assert "hint: --labels answers=FILE names all grades, from the lowest" in said
        assert main([*command, "--labels", "answers=grades.txt"]) == 0
        capsys.readouterr()
    fuse = ["fuse", "a.csv", "answers.csv", "--ordered", *how, "--labels", "answers=grades.txt"]
    assert main([*fuse, "--out", "f.csv"]) == 0
    assert "kernel: scales; bad < fair < good\n" in capsys.readouterr().err
    (folder / "truth5.csv").write_text("sample,label\n0,1\n1,5\n2,3\n3,1\n4,5\n")
    fit = ["fit", "a.csv", "answers.csv", *how, "--truth", "truth5.csv", "--out", "e"]
    assert main(fit) == 2
    assert "grades of 'answers' must have an order" in capsys.readouterr().err


def test_a_scale_of_answers_ends_at_those_that_occur_and_says_so(folder, capsys):
    (folder / "answers.csv").write_text("sample,label\na,2\nb,0\nc,1\n")
    (folder / "ends.csv").write_text("sample,0,3\na,0,1\nb,1,0\nc,1,0\n")
    (folder / "four.txt").write_text("0\n1\n2\n3\n")
    given = ["fuse", "answers.csv", "ends.csv", "--ordered", "--scales", "--target", "four.txt"]
    told = "warning: answers: its scale is taken to end at the grades that occur, 0 and 2;"
    assert main([*given, "--out", "f.csv"]) == 0
    assert f"{told} --labels answers=FILE names all grades" in capsys.readouterr().err
    assert main([*given, "--labels", "answers=four.txt", "--out", "f.csv"]) == 0
    assert "occur" not in capsys.readouterr().err


def test_grades_of_one_column_are_answers(folder, capsys):
    for name, grades in (("ann", "315"), ("bob", "4 5")):
        lines = "".join(f"{i},{grade.strip()}\n" for i, grade in enumerate(grades))
        (folder / f"{name}.csv").write_text(f"sample,grade\n{lines}")
    files = ["fuse", "ann.csv", "bob.csv", "--out", "f.csv"]
    assert main([*files, "--ordered"]) == 2
    said = capsys.readouterr().err
    assert "must be at least two; got 'grade' alone.\nhint: --label-column grade" in said
    assert main(files) == 0
    said = capsys.readouterr().err
    assert "'grade' has whole numbers up to 5: if they are answers, such as grades, --label" in said
    assert main([*files, "--ordered", "--label-column", "grade"]) == 0
    assert list(read_predictions("f.csv").labels) == ["1", "3", "4", "5"]


def test_two_scales_on_one_line_are_doubted(folder, capsys):
    for low, high in ((0, 3), (1, 5)):
        grades = [str(grade) for grade in range(low, high + 1)]
        given = Predictions("m", range(2), grades, np.eye(len(grades))[:2])
        write_predictions(f"to{high}.csv", given)
    files = ["fuse", "to3.csv", "to5.csv", "--ordered", "--out", "f.csv"]
    assert main(files) == 0
    said = capsys.readouterr().err
    assert "grades from 0 to 3 (to3), 1 to 5 (to5) are taken as one scale; --scales" in said
    (folder / "five.txt").write_text("1\n2\n3\n4\n5\n")
    assert main([*files, "--scales", "--target", "five.txt"]) == 0
    assert "one scale" not in capsys.readouterr().err


def test_labels_that_a_target_lacks_are_named_where_files_are_scored(folder, capsys):
    (folder / "two.csv").write_text("label,position\nbad,0\ngood,1\n")
    (folder / "ends.csv").write_text("sample,label\n0,bad\n2,good\n")
    assert main(["score", "a.csv", "--truth", "ends.csv", "--target", "two.csv"]) == 0
    assert "a: scores of labels that are no target labels do not count: 'fair'" in (
        capsys.readouterr().err
    )


def test_a_target_that_is_no_file_says_what_it_must_be(folder, capsys):
    assert main(["fuse", "a.csv", "b.csv", "--target", "bad,fair,good"]) == 2
    assert "must be a file; there is none.\nhint: labels are named in a text file, one a line" in (
        capsys.readouterr().err
    )


def test_a_jury_without_verdicts_is_told_of_its_file(folder, capsys):
    for text in ("", "judge,item,verdict\n"):
        (folder / "empty.csv").write_text(text)
        assert main(["jury", "empty.csv"]) == 2
        assert "empty.csv: must hold verdicts" in capsys.readouterr().err


def test_how_an_ordered_consensus_came_about_is_explained_and_scored(folder, capsys):
    assert main(["explain", "a.csv", "b.csv", "--ordered", "--sample", "3"]) == 0
    shares = [line.split("\t")[:2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert sum(float(share) for share, model in shares if model == "a") == pytest.approx(50)
    assert main(["fuse", "a.csv", "b.csv", "--ordered", "--out", "f.csv"]) == 0
    wanted = ["--metric", "rps", "--metric", "quadratic_kappa"]
    assert main(["score", "f.csv", "--truth", "truth.csv", *wanted, "--json"]) == 0
    scores, truth = read_predictions("f.csv").scores, np.arange(8) % 3
    expected = ws.metrics.ranked_probability_score(scores, truth)
    assert f"{expected:.6f}"[:6] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--power", "1"], "--power must go with --ordered"),
        (["--ordered", "--rule", "geometric"], "--ordered must go with the barycenter"),
        (["--ordered", "--balanced"], "--balanced must go with sweeps"),
        (["--ordered", "--max-sweeps", "5"], "--max-sweeps must go with sweeps"),
        (["--exact"], "--exact must go with --tree alone; got none"),
        (["--exact", "--tree", "t.csv", "--epsilon", "1"], "got --tree and --epsilon"),
        (["--exact", "--tree", "t.csv", "--ordered"], "got --tree and --ordered"),
        (["--exact", "--tree", "t.csv", "--balanced"], "--balanced must go with sweeps"),
    ],
)
def test_options_that_say_nothing_are_refused(folder, capsys, flags, message):
    assert main(["fuse", "a.csv", "b.csv", *flags]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold a label and its position in each line; got none"),
        ("a,1\na,2\n", "line 2: labels and positions must differ"),
        ("a,1\nb,1\n", "line 2: labels and positions must differ"),
        ("a,one\n", "line 1: must hold a label and its position"),
        ("a,1,2\n", "line 1: must hold a label and its position"),
        ("a,inf\n", "line 1: must hold a label and its position"),
    ],
)
def test_a_file_of_positions_must_hold_positions(folder, text, message):
    (folder / "wrong.csv").write_text(text)
    with pytest.raises(ws.InvalidInputError, match=message):
        read_positions("wrong.csv")


@pytest.fixture
def animals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree.csv").write_text("animal,dog\nanimal,cat\ndog,husky\ndog,beagle\n")
    scores = [[0.5, 0.4, 0.1], [0.1, 0.2, 0.7], [0.0, 0.0, 0.0]]
    found = Predictions("f", ["a", "b", "c"], ["husky", "beagle", "cat"], scores, kind="multilabel")
    write_predictions("f.csv", found)
    return tmp_path


def test_breeds_that_tie_are_answered_by_their_kind(animals, capsys):
    given = ["back-off", "f.csv", "--tree", "tree.csv"]
    assert main([*given, "--out", "answers.csv"]) == 0
    expected = "sample,label,share\na,dog,0.9\nb,cat,0.7\nc,,\n"
    assert (animals / "answers.csv").read_text() == expected
    assert "3 samples, 1 answered above the labels" in capsys.readouterr().err
    assert main([*given, "--confidence", "0.95"]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == ["a,animal,1.0", "b,animal,1.0"]
    assert main([*given, "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert answers[2] == {"sample": "c", "label": None, "share": None}


def test_one_file_backs_off_at_a_time(animals, capsys):
    assert main(["back-off", "f.csv", "f.csv", "--tree", "tree.csv"]) == 2
    assert "takes one file; got 2" in capsys.readouterr().err


@pytest.fixture
def breeds(tmp_path, monkeypatch, rng):
    """A model that knows breeds and one that knows kinds, and the breeds that are true."""
    monkeypatch.chdir(tmp_path)
    tree = "parent,child,length\nanimal,dog,3\nanimal,cat,1\ndog,husky,1\ndog,beagle,2\n"
    (tmp_path / "tree.csv").write_text(tree)
    (tmp_path / "breeds.txt").write_text("\n".join(BREEDS))
    scores = rng.dirichlet(np.ones(3), 40)
    write_predictions("breeds.csv", Predictions("breeds", range(40), BREEDS, scores))
    kinds = np.column_stack([scores[:, :2].sum(axis=1), scores[:, 2]])[::-1]
    write_predictions("kinds.csv", Predictions("kinds", range(40), ["dog", "cat"], kinds))
    lines = "".join(f"{i},{BREEDS[row.argmax()]}\n" for i, row in enumerate(scores))
    (tmp_path / "truth.csv").write_text(f"sample,label\n{lines}")
    return tmp_path


@pytest.mark.parametrize("flags", [[], ["--target", "breeds.txt"]])
def test_labels_are_fused_in_a_tree_with_lengths(breeds, capsys, flags):
    assert main(["fuse", *IN_TREE, *flags, "--out", "f.csv"]) == 0
    assert "rule: median in a tree" in capsys.readouterr().err
    fused, edges = read_predictions("f.csv"), read_edges("tree.csv")
    labels = [*BREEDS, "dog"][: len(fused.labels)]
    assert list(fused.labels) == labels
    assert len(labels) == (3 if flags else 4)  # without a target, "dog" is an answer, too
    given = np.zeros((2, 40, len(labels)))
    given[0, :, :3] = read_predictions("breeds.csv").scores
    kinds = read_predictions("kinds.csv").scores
    given[1][:, [2]] = kinds[:, 1:]
    given[1][:, [0, 1] if flags else [3]] = kinds[:, :1] / (2 if flags else 1)
    expected = tree_barycenter(labels, edges).fuse(given).scores
    np.testing.assert_allclose(fused.scores, expected, atol=1e-6)


def test_a_consensus_in_a_tree_is_explained_with_how_far_models_are_from_it(breeds, capsys):
    given = ["explain", *IN_TREE, "--target", "breeds.txt"]
    assert main([*given, "--sample", "3"]) == 0
    shares = [line.split("\t")[:2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert sum(float(share) for share, model in shares if model == "kinds") == pytest.approx(50)
    assert main([*given, "--json"]) == 0
    [most, *_] = json.loads(capsys.readouterr().out)
    # Between two models the consensus is on the way: it is as far as they are from each other.
    place = int(most["sample"])
    first, second = (read_predictions(f"{name}.csv").scores[place] for name in ("breeds", "kinds"))
    apart = abs(first - [second[0] / 2, second[0] / 2, second[1]])
    apart = apart @ [1, 2, 1] + 3 * abs(first[2] - second[1])
    assert most["breeds"] + most["kinds"] == pytest.approx(apart, abs=1e-6)


def test_learning_tries_the_tree_that_it_is_given(breeds):
    how = ["--truth", "truth.csv", "--out", "e", "--n-folds", "2", "--log", "log.jsonl"]
    assert main(["fit", *IN_TREE, "--target", "breeds.txt", *how]) == 0
    assert '"tree barycenter"' in (breeds / "log.jsonl").read_text()


def test_learning_tries_the_line_that_it_is_given_and_keeps_it(folder, capsys):
    how = ["--truth", "truth.csv", "--out", "e", "--n-folds", "2", "--log", "log.jsonl"]
    assert main(["fit", "a.csv", "b.csv", "--target", "line.csv", *how]) == 0
    assert '"line barycenter"' in (folder / "log.jsonl").read_text()
    assert LearnedEnsemble.load("e").target.positions == (0, 2, 10)
    assert main(["fit", "a.csv", "b.csv", "--exact", *how]) == 2
    assert "--exact must go with --tree alone; got none" in capsys.readouterr().err
