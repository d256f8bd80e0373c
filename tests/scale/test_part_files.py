"""Folders as Dask, Spark and pandas write them, and parts that do not fit each other."""

import os
import uuid

import numpy as np
import pytest
from problems import fusion_with

import wassemble as ws
from wassemble import InvalidInputError, Predictions, read_predictions, write_predictions
from wassemble.cli import main
from wassemble.scale import fuse_partitions

dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")

LABELS = ["cat", "dog", "eel"]


@pytest.fixture
def frames(rng):
    """Two models of the same 40 samples."""
    ids = [f"s{i}" for i in range(40)]
    return {
        model: pd.DataFrame(rng.dirichlet(np.ones(3), 40), columns=LABELS).assign(sample=ids)
        for model in "ab"
    }


def cut(frame, n_parts=4):
    return [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), n_parts)]


def fuse_folders(folder, models="ab", out="fused", **options):
    models = {model: folder / model for model in models}
    return fuse_partitions(models, folder / out, fusion_with(**options))


def assert_is_fusion_of(folder, frames):
    """The parts of a folder together are the consensus of the whole frames."""
    found = pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))])
    expected = ws.fuse(frames)
    pd.testing.assert_frame_equal(
        found.reset_index(drop=True)[[*LABELS, "sample"]],
        expected.reset_index(drop=True)[[*LABELS, "sample"]],
        rtol=1e-9,
    )


def write_by_dask(frame, folder):
    dd.from_pandas(frame, npartitions=4).to_parquet(folder)
    return frame


def write_filtered(frame, folder):
    folder.mkdir(parents=True)
    few = frame[frame["sample"] != "s3"]  # whose index does not just count
    for place, part in enumerate(cut(few)):
        part.to_parquet(folder / f"part-{place}.parquet")
    return few


def write_by_spark(frame, folder, write_id=None):
    """Names as Spark gives them, with all that lies beside."""
    folder.mkdir(parents=True)
    write_id = uuid.uuid4() if write_id is None else write_id
    (folder / "_SUCCESS").touch()
    (folder / "._SUCCESS.crc").touch()
    for place, part in enumerate(cut(frame)):
        name = f"part-{place:05}-{write_id}-c000.snappy.parquet"
        part.to_parquet(folder / name, index=False)
        (folder / f".{name}.crc").touch()
    return frame


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own
@pytest.mark.parametrize("write", [write_by_dask, write_filtered, write_by_spark])
def test_folders_that_others_write_are_fused(frames, tmp_path, write):
    written = {model: write(frame, tmp_path / model) for model, frame in frames.items()}
    fusion = fuse_folders(tmp_path)
    assert fusion.account.plan.target.names == tuple(LABELS)
    assert_is_fusion_of(tmp_path / "fused", written)
    lazy = ws.scale.fuse_lazily({model: tmp_path / model for model in frames})
    assert len(lazy.compute()) == len(written["a"])


def test_parts_of_spark_have_the_names_of_the_first_model_and_are_kept(frames, tmp_path):
    for model, frame in frames.items():
        write_by_spark(frame, tmp_path / model)
    assert fuse_folders(tmp_path).n_kept == 0
    names = {path.name for path in (tmp_path / "a").glob("*.parquet")}
    assert {path.name for path in (tmp_path / "fused").glob("*.parquet")} == names
    first = tmp_path / "fused" / min(names)
    first.unlink()
    assert fuse_folders(tmp_path).n_kept == 3
    # Written again, all names are others: no part of before stays.
    for path in (tmp_path / "a").iterdir():
        path.unlink()
    (tmp_path / "a").rmdir()
    write_by_spark(frames["b"], tmp_path / "a")
    assert fuse_folders(tmp_path).n_changed == 4
    assert not first.exists()
    assert_is_fusion_of(tmp_path / "fused", {"a": frames["b"], "b": frames["b"]})


def test_partitioned_tables_of_pandas_are_fused(frames, tmp_path):
    for model, frame in frames.items():
        days = frame.assign(day=np.arange(40) // 10)
        days.to_parquet(tmp_path / model, partition_cols=["day"], index=False)
    assert list(ws.inputs.open_data_set(tmp_path / "a").parts) == [
        f"day={day}/0" for day in range(4)
    ]
    assert fuse_folders(tmp_path).account.n_samples == 40
    assert fuse_folders(tmp_path).n_kept == 4


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        # Two writes into one folder, and names that are nothing else: whole names.
        (["part-0-{0}-c000", "part-0-{1}-c000"], ["part-0-{0}-c000", "part-0-{1}-c000"]),
        (["{0}", "{1}"], ["{0}", "{1}"]),
        (["part-0-{0}-c000", "part-1-{1}-c000"], ["part-0-c000", "part-1-c000"]),
        (["part-r-00000-{0}.gz"], ["part-r-00000.gz"]),
        (["part-00000-{0}_00001.c000"], ["part-00000_00001.c000"]),
        (["{0}_1_2"], ["1_2"]),
        (["day-{0}/p"], ["day-{0}/p"]),
        (["p0{0}"], ["p0{0}"]),
    ],
)
def test_ids_of_writes_in_names_do_not_count_if_names_differ_without(tmp_path, names, parts):
    ids = [str(uuid.UUID(int=place)) for place in (5, 7)]
    for name in names:
        one = Predictions("m", ["x"], LABELS, [[0.2, 0.3, 0.5]])
        write_predictions(tmp_path / f"{name.format(*ids)}.parquet", one)
    assert list(ws.inputs.open_data_set(tmp_path).parts) == [part.format(*ids) for part in parts]


def test_models_that_are_cut_at_other_rows_are_asked_about(frames, tmp_path, capsys):
    for model, frame in {"a": frames["a"], "b": frames["b"].sample(frac=1, random_state=0)}.items():
        write_filtered(frame, tmp_path / model)
    command = ["fuse", str(tmp_path / "a"), str(tmp_path / "b")]
    question = "'a', 'b' lack many samples: are they cut into the same parts?"
    assert main([*command, "--out", str(tmp_path / "fused")]) == 0
    assert question in capsys.readouterr().err
    assert main([*command, "--out", str(tmp_path / "other"), "--samples", "common"]) == 0
    assert question not in capsys.readouterr().err


def test_a_model_that_lacks_samples_is_not_asked_about(frames, tmp_path):
    write_filtered(frames["a"], tmp_path / "a")
    write_filtered(frames["b"], tmp_path / "b")
    path = tmp_path / "b" / "part-2.parquet"
    pd.read_parquet(path).iloc[:0].to_parquet(path)
    said = "\n".join(fuse_folders(tmp_path).account.lines())
    assert "b: no answer for 10 of 39 samples" in said
    assert "cut into the same parts" not in said


def write_half_common(folder):
    """Part 0 has common samples, part 1 none, and part 2 has no rows of b."""
    samples = {"a": [["x", "y"], ["z"], ["u"]], "b": [["y"], ["w"], []]}
    for model, parts in samples.items():
        for place, ids in enumerate(parts):
            scores = np.full((len(ids), 3), [0.2, 0.3, 0.5])
            given = Predictions(model, ids, LABELS, scores)
            write_predictions(folder / model / f"{place}.parquet", given)


def test_parts_with_nothing_in_common_have_no_rows(tmp_path):
    write_half_common(tmp_path)
    assert fuse_folders(tmp_path, samples="common").account.n_samples == 1
    parts = [read_predictions(tmp_path / "fused" / f"{place}.parquet") for place in range(3)]
    assert [part.samples.tolist() for part in parts] == [["y"], [], []]
    folders = {model: tmp_path / model for model in "ab"}
    lazy = ws.scale.fuse_lazily(folders, ws.Fusion(samples="common", allow_disjoint=True))
    assert lazy.compute()["sample"].tolist() == ["y"]


def test_models_with_nothing_in_common_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_half_common(tmp_path)
    for model in "ab":
        os.remove(f"{model}/0.parquet")
    with pytest.raises(InvalidInputError, match="samples in common, in parts of the same name"):
        fuse_folders(tmp_path, samples="common")
    # Of single files, nothing is written.
    files = ["a=a/1.parquet", "b=b/1.parquet"]
    assert main(["fuse", *files, "--samples", "common", "--out", "f.csv"]) == 2
    said = capsys.readouterr().err
    assert "samples in common; got none" in said
    assert "Ids of a are such as 'z', those of b such as 'w'" in said
    assert not (tmp_path / "f.csv").exists()


def test_a_model_that_is_not_there_is_named(frames, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_filtered(frames["a"], tmp_path / "a")
    assert main(["fuse", "a", "nosuch", "--out", "fused"]) == 2
    assert "nosuch: must be a folder, as a is; there is nothing" in capsys.readouterr().err
    assert main(["fuse", "a", "a/part-0.parquet", "--out", "fused"]) == 2
    assert "all files or all folders" in capsys.readouterr().err


def test_samples_that_are_in_several_parts_are_told_in_every_run(frames, tmp_path):
    for model, frame in frames.items():
        for place, part in enumerate(cut(frame)):
            counted = part.assign(sample=range(len(part)))
            (tmp_path / model).mkdir(exist_ok=True)
            counted.to_csv(tmp_path / model / f"part-{place}.csv", index=False)
    for n_kept in (0, 4):
        with pytest.warns(ws.InputWarning, match="in part-0 and in part-1") as caught:
            assert fuse_folders(tmp_path).n_kept == n_kept
        assert len([each for each in caught if "several parts" in str(each.message)]) == 1
