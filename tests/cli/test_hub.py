"""A forecast hub in its own layout: read, fused, written and scored."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wassemble as ws
from wassemble.cli import main
from wassemble.ensemble.hub import fuse_hub, learn_hub, score_hub
from wassemble.errors import InputWarning
from wassemble.inputs.hub import HubTable, read_hub, read_oracle

CATEGORIES = ["decrease", "stable", "increase"]
LEVELS = ["0.025", "0.5", "0.975"]
PLACES = ["01", "02", "US"]
HEADER = "reference_date,target,location,output_type,output_type_id,value"


def rows_of(target, place, sort, names, values):
    pairs = zip(names, values, strict=True)
    return [f"2025-01-04,{target},{place},{sort},{name},{value:.12g}" for name, value in pairs]


@pytest.fixture
def hub(tmp_path, monkeypatch, rng):
    """Three models; the last has no forecast of the second place, and gives a mean, too."""
    monkeypatch.chdir(tmp_path)
    chances = rng.dirichlet(np.ones(3), (3, 3))
    counts = np.sort(rng.uniform(0, 100, (3, 3, 3)), axis=2)
    for model, name in enumerate(("a-one", "b-two", "c-three")):
        lines = [HEADER]
        for place, where in enumerate(PLACES):
            if (model, place) != (2, 1):
                lines += rows_of(
                    "trend", where, "pmf", CATEGORIES[::-1], chances[model, place, ::-1]
                )
                lines += rows_of("count", where, "quantile", LEVELS, counts[model, place])
        lines += ["2025-01-04,count,01,mean,,7"] * (model == 2)
        folder = tmp_path / "model-output" / name
        folder.mkdir(parents=True)
        (folder / f"2025-01-04-{name}.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "order.txt").write_text("\n".join(CATEGORIES))
    (tmp_path / "oracle.csv").write_text(
        "location,target,output_type,output_type_id,oracle_value\n"
        "01,trend,pmf,stable,1\n01,trend,pmf,increase,0\n02,trend,pmf,decrease,1\n"
        "01,count,quantile,,40\n02,count,quantile,,60\n"
    )
    return chances, counts


def test_a_hub_is_read_with_its_gaps(hub):
    chances, counts = hub
    quantiles, pmf = read_hub(".")
    assert (quantiles.sort, pmf.sort) == ("quantile", "pmf")
    assert quantiles.models == ("a-one", "b-two", "c-three")
    assert pmf.tasks == [("2025-01-04", "trend", place) for place in PLACES]
    missing = np.zeros((3, 3), dtype=bool)
    missing[2, 1] = True
    np.testing.assert_allclose(quantiles.values[~missing], counts[~missing])
    np.testing.assert_allclose(pmf.in_order(CATEGORIES).values[~missing], chances[~missing])
    assert np.isnan(pmf.values[missing]).all()
    assert list(pmf.to_predictions()[0].labels) == CATEGORIES[::-1]


@pytest.mark.parametrize("power", [1, 2])
def test_the_consensus_of_a_hub_is_the_exact_barycenter_in_its_layout(hub, power):
    chances, counts = hub
    flags = ["--order", "order.txt", "--power", str(power)]
    Path("all/consensus").mkdir(parents=True)
    assert main(["hub", "model-output", *flags, "--out", "all/consensus/fused.csv"]) == 0
    quantiles, pmf = read_hub("all")
    assert pmf.models == ("consensus",)
    rule = ws.LineBarycenter(power)
    np.testing.assert_allclose(pmf.values[0, 0], rule.fuse(chances[:, :1]).scores[0], atol=1e-9)
    np.testing.assert_allclose(pmf.values[0, 1], rule.fuse(chances[:2, 1:2]).scores[0], atol=1e-9)
    expected = rule.fuse_quantiles(counts[:2, 1:2])[0]
    np.testing.assert_allclose(quantiles.values[0, 1], expected, rtol=1e-9)


def test_models_and_consensus_are_scored_by_what_happened(hub, capsys):
    assert main(["hub", ".", "--order", "order.txt", "--oracle", "oracle.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_name = {(each["metric"], each["model"]): each for each in found}
    assert len(by_name) == 8
    assert by_name["rps", "consensus"]["n_tasks"] == 2
    assert by_name["wis", "c-three"]["n_tasks"] == 1
    chances, counts = hub
    one = ws.metrics.ranked_probability_score(chances[0, :2], [1, 0])
    assert by_name["rps", "a-one"]["loss"] == pytest.approx(one)
    levels = [float(level) for level in LEVELS]
    two = ws.metrics.weighted_interval_score(counts[1, :2], levels, [40, 60])
    assert by_name["wis", "b-two"]["loss"] == pytest.approx(two)
    inside = ws.metrics.interval_coverage(counts[1, :2], levels, [40, 60])
    assert by_name["wis", "b-two"]["coverage"] == pytest.approx(inside)
    assert by_name["rps", "b-two"]["coverage"] is None
    assert main(["hub", ".", "--oracle", "oracle.csv"]) == 0
    assert "consensus" in capsys.readouterr().out


def test_weights_are_of_the_models_of_the_hub(hub, capsys):
    _, counts = hub
    (quantiles, _) = read_hub(".")
    weights = {"a-one": 0.5, "b-two": 0.25, "c-three": 0.25}
    fused = fuse_hub(quantiles, weights=weights).values[0]
    np.testing.assert_allclose(fused[0], [0.5, 0.25, 0.25] @ counts[:, 0])
    np.testing.assert_allclose(fused[1], [2 / 3, 1 / 3] @ counts[:2, 1])
    assert main(["hub", ".", "--weights", "a-one=1"]) == 2
    assert "--weights must name each model" in capsys.readouterr().err


def test_draws_of_a_sample_are_sorted_and_fused(tmp_path):
    for name, draws in (("a", (3, 1, 2)), ("b", (30, 20, 10))):
        (tmp_path / name).mkdir()
        lines = [HEADER, *rows_of("count", "01", "sample", ["s1", "s2", "s3"], draws)]
        (tmp_path / name / "x.csv").write_text("\n".join(lines) + "\n")
    (table,) = read_hub(tmp_path)
    consensus = fuse_hub(table)
    np.testing.assert_allclose(consensus.values[0, 0], [5.5, 11, 16.5])
    scores = score_hub(table, consensus, np.array([2.0]))
    assert scores[0].model == "a"
    assert scores[0].coverage is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "a folder for each model"),
        (["location,value", "01,2"], "no output_type"),
        ([HEADER], "must have rows"),
        ([HEADER, "d,t,01,mean,,4"], "forecasts of type pmf, quantile, cdf, sample"),
        ([HEADER, "d,t,01,quantile,0.5,many"], "line 2: value must be a number; got 'many'"),
        ([HEADER, "d,t,01,quantile,0.5"], "line 2: must have as many columns"),
        ([HEADER, *["d,t,01,quantile,0.5,4"] * 2], "once; got several"),
    ],
)
def test_what_is_no_hub_is_refused(tmp_path, lines, message):
    if lines:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "x.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(ws.InvalidInputError, match=message):
        read_hub(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("location,what\n01,2\n", "oracle_value or observation or value"),
        ("planet,oracle_value\nmars,2\n", "some of the columns 'reference_date'"),
    ],
)
def test_what_happened_must_be_told(hub, text, message):
    with open("wrong.csv", "w", encoding="utf-8") as file:
        file.write(text)
    with pytest.raises(ws.InvalidInputError, match=message):
        read_oracle("wrong.csv", read_hub(".")[0])


def test_what_happened_must_be_known_for_some_task(hub):
    (quantiles, pmf) = read_hub(".")
    with pytest.raises(ws.InvalidInputError, match="it is for none"):
        score_hub(quantiles, fuse_hub(quantiles), np.full(3, np.nan))
    with pytest.raises(ws.InvalidInputError, match="must name all of"):
        pmf.in_order(["up", "down"])
    with pytest.raises(ws.InvalidInputError, match="got a quantile"):
        quantiles.to_predictions()


def test_parquet_and_other_spellings_of_levels_are_the_same_forecasts(hub, tmp_path):
    before = read_hub(tmp_path)
    folder = tmp_path / "model-output" / "a-one"
    [path] = folder.glob("*.csv")
    frame = pd.read_csv(path, dtype={"location": str, "output_type_id": str})
    frame["output_type_id"] = frame["output_type_id"].replace({"0.5": "0.50"})
    frame["reference_date"] = pd.to_datetime(frame["reference_date"]).dt.date
    path.unlink()
    frame.to_parquet(folder / "2025-01-04-a-one.parquet")
    after = read_hub(tmp_path)
    for one, other in zip(before, after, strict=True):
        assert (one.ids, one.models, one.tasks) == (other.ids, other.models, other.tasks)
        np.testing.assert_array_equal(one.values, other.values)


def test_types_that_are_not_read_are_told(hub, tmp_path):
    [path] = (tmp_path / "model-output" / "a-one").glob("*.csv")
    path.write_text(path.read_text() + "2025-01-04,count,01,trajectory,10,0.5\n")
    with pytest.warns(InputWarning, match="these types are not read: 'trajectory'"):
        read_hub(tmp_path)


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """Two models that are sure of 10 and of 30, of numbers up to 10, 20 and 30."""
    monkeypatch.chdir(tmp_path)
    for name, values in (("low", [1, 1, 1]), ("high", [0, 0, 1])):
        lines = [HEADER, *rows_of("count", "01", "cdf", ["10", "20.0", "30"], values)]
        folder = tmp_path / "model-output" / name
        folder.mkdir(parents=True)
        (folder / "forecast.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_distribution_functions_are_fused_and_written_as_such(functions):
    [table] = read_hub(".")
    assert (table.sort, table.ids) == ("cdf", ("10", "20", "30"))
    assert fuse_hub(table).values.tolist() == [[[0, 1, 1]]]  # halfway, at 20
    assert fuse_hub(table, power=1).values.tolist() == [[[0.5, 0.5, 1]]]
    assert main(["hub", "model-output", "--weights", "low=0.75,high=0.25", "--out", "f.csv"]) == 0
    written = pd.read_csv("f.csv")
    assert written["output_type"].unique().tolist() == ["cdf"]
    assert written["value"].tolist() == [0.5, 1, 1]  # at 15, between 10 and 20


@pytest.mark.parametrize(
    "told",
    [
        "location,oracle_value\n01,25\n",
        "location,output_type,output_type_id,oracle_value\n"
        "01,cdf,10,0\n01,cdf,20,0\n01,cdf,30.0,1\n",
    ],
)
def test_distribution_functions_are_scored_by_the_truth_or_by_what_it_is_at_most(functions, told):
    (functions / "oracle.csv").write_text(told)
    [table] = read_hub(".")
    truth = read_oracle("oracle.csv", table)
    assert truth.tolist() == [2]
    found = {score.model: score.loss for score in score_hub(table, fuse_hub(table), truth)}
    assert found == {"consensus": 1, "low": 2, "high": 0}


def test_a_truth_beyond_all_numbers_is_in_the_last_place(functions):
    (functions / "oracle.csv").write_text("location,oracle_value\n01,31\n")
    [table] = read_hub(".")
    assert read_oracle("oracle.csv", table).tolist() == [3]


def test_what_is_no_distribution_function_is_refused(functions):
    path = functions / "model-output" / "low" / "forecast.csv"
    path.write_text(
        path.read_text().replace("cdf,20,1", "cdf,20,0.5").replace("20.0,1", "20.0,0.5")
    )
    [table] = read_hub(".")
    with pytest.raises(ws.InvalidInputError, match="must rise from 0 to 1; that of low does not"):
        fuse_hub(table)


def test_a_model_without_all_levels_is_left_out_with_a_word(hub, tmp_path):
    path = tmp_path / "model-output" / "b-two" / "2025-01-04-b-two.csv"
    lines = [line for line in path.read_text().splitlines() if ",0.975," not in line]
    path.write_text("\n".join(lines) + "\n")
    with pytest.warns(
        InputWarning, match="'b-two' gave less than all 3 values of a quantile; 3 an"
    ):
        quantiles, _ = read_hub(".")
    assert np.isnan(quantiles.values[1]).all()


WEEKS = [f"2025-01-{day:02d}" for day in (4, 11, 18, 25)] + ["2025-02-01", "2025-02-08"]


def draw_weeks(rng, *, sort="pmf"):
    """Six weeks of four tasks, each known a week later; the first model is the best by far."""
    tasks = [(week, end, place) for week, end in zip(WEEKS, WEEKS, strict=True) for place in "pqrs"]
    truth = rng.integers(3, size=len(tasks))
    sure = 0.8 * np.eye(3)[truth] + 0.2 / 3
    values = np.stack([sure, *rng.dirichlet(np.ones(3), (2, len(tasks)))])
    ids = tuple(CATEGORIES)
    if sort == "quantile":
        ids, truth = tuple(LEVELS), truth.astype(float)
        values = np.sort(rng.normal(scale=[[[0.1]], [[3]], [[3]]], size=values.shape), axis=2)
        values += truth[:, None]
    columns = ("reference_date", "target_end_date", "location")
    return HubTable(sort, columns, tasks, ids, ("a", "b", "c"), values), truth


@pytest.mark.parametrize("sort", ["pmf", "quantile"])
def test_models_that_were_right_count_more(rng, sort):
    table, truth = draw_weeks(rng, sort=sort)
    learned = learn_hub(table, truth)
    assert learned.date == WEEKS[-1]
    assert learned.n_known == 20
    assert learned.power > 0
    assert learned.weights["a"] > 0.6
    alike = fuse_hub(table)
    losses = [
        next(each.loss for each in score_hub(table, fused, truth) if each.model == "consensus")
        for fused in (learned.consensus, alike)
    ]
    assert losses[0] < losses[1]
    # Nothing is known before the first week.
    np.testing.assert_allclose(learned.consensus.values[0, :4], alike.values[0, :4])


@pytest.mark.parametrize("sort", ["pmf", "quantile"])
@pytest.mark.parametrize("week", range(len(WEEKS)))
def test_a_consensus_knows_nothing_of_its_own_week_or_later(rng, sort, week):
    table, truth = draw_weeks(rng, sort=sort)
    before = learn_hub(table, truth).consensus.values[0, : 4 * week + 4]
    later, values = truth.copy(), table.values.copy()
    later[4 * week :] = 2 - later[4 * week :]
    values[:, 4 * week + 4 :] = values[::-1, 4 * week + 4 :]
    changed = HubTable(sort, table.columns, table.tasks, table.ids, table.models, values)
    after = learn_hub(changed, later).consensus.values[0, : 4 * week + 4]
    np.testing.assert_array_equal(before, after)


def test_a_model_that_is_new_counts_as_the_mean(rng):
    table, truth = draw_weeks(rng)
    table.values[2, :-4] = np.nan
    learned = learn_hub(table, truth)
    assert learned.weights["b"] < learned.weights["c"] < learned.weights["a"]
    table.values[1, -4:] = np.nan  # and one that is gone has no weight
    assert set(learn_hub(table, truth).weights) == {"a", "c"}


def test_weights_are_learned_on_the_command_line(hub, capsys):
    assert main(["hub", ".", "--learn"]) == 2
    assert "--learn must go with --oracle" in capsys.readouterr().err
    assert main(["hub", ".", "--learn", "--oracle", "oracle.csv"]) == 2
    assert "must have a column target_end_date or target_date" in capsys.readouterr().err
    for path in Path("model-output").glob("*/*.csv"):
        lines = path.read_text().splitlines()
        rows = [f"{lines[0]},target_end_date", *(f"{line},2025-01-04" for line in lines[1:])]
        path.write_text("\n".join(rows) + "\n")
    assert main(["hub", ".", "--learn", "--oracle", "oracle.csv", "--order", "order.txt"]) == 0
    said = capsys.readouterr().err
    assert "weights on 2025-01-04, from 0 tasks: a-one=0.33333333,b-two=0.33333333," in said


def test_categories_lie_where_the_order_says(hub, tmp_path, capsys):
    lines = [f"{name},{position}" for name, position in zip(CATEGORIES, (0, 1, 9), strict=True)]
    (tmp_path / "line.csv").write_text("\n".join(["label,position", *lines]))
    given = ["hub", "model-output", "--order", "line.csv", "--oracle", "oracle.csv"]
    assert main([*given, "--out", "f.csv", "--json"]) == 0
    found = {
        s["model"]: s["loss"] for s in json.loads(capsys.readouterr().out) if s["metric"] == "rps"
    }
    fused = pd.read_csv("f.csv", dtype={"location": str})
    own = fused[(fused.output_type == "pmf") & (fused.location == "01")].value.to_numpy()
    rule = ws.LineBarycenter(2, positions=(0, 1, 9))
    np.testing.assert_allclose(own, rule.fuse(hub[0][:, :1]).scores[0], atol=1e-9)
    # Gaps of 1 and 8 weigh as much as two of the usual one together; stable and decrease happened.
    below = hub[0][0, :2].cumsum(axis=1)[:, :2] - [[0, 1], [1, 1]]
    assert found["a-one"] == pytest.approx(np.mean(below**2 @ [2 / 9, 16 / 9]))


def test_an_outcome_without_a_date_is_never_known(rng):
    table, truth = draw_weeks(rng)
    tasks = [(made, "NA", place) for made, _, place in table.tasks]
    values = (table.ids, table.models, table.values)
    learned = learn_hub(HubTable("pmf", table.columns, tasks, *values), truth)
    assert (learned.n_known, learned.power) == (0, 0)
    np.testing.assert_allclose(learned.consensus.values, fuse_hub(table).values)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",pmf,stable,", ",pmf,stable,1", "a-one for 2025-01-04|trend|01 sum to"),
        (",pmf,stable,", ",pmf,stable,-", "a-one for 2025-01-04|trend|01 sum to"),
        (",quantile,0.975,", ",quantile,0.9,", None),
    ],
)
def test_forecasts_that_are_none_are_refused(old, new, words, hub, capsys):
    path = Path("model-output/a-one/2025-01-04-a-one.csv")
    path.write_text(path.read_text().replace(old, new))
    if words is None:  # each model has levels of its own
        for name in ("b-two", "c-three"):
            other = Path(f"model-output/{name}/2025-01-04-{name}.csv")
            other.write_text(other.read_text().replace("0.025", "0.05"))
        words = "some answer must have all 5 values of a quantile"
    assert main(["hub", "model-output", "--order", "order.txt", "--out", "f.csv"]) == 2
    assert words in capsys.readouterr().err
    assert not Path("f.csv").exists()


def test_a_probability_that_is_missing_leaves_no_distribution(hub, capsys):
    path = Path("model-output/b-two/2025-01-04-b-two.csv")
    lines = [line for line in path.read_text().splitlines() if ",01,pmf,stable" not in line]
    path.write_text("\n".join(lines) + "\n")
    assert main(["hub", "model-output", "--order", "order.txt", "--out", "f.csv"]) == 2
    assert "a category that is not listed counts as 0" in capsys.readouterr().err
