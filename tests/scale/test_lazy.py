"""Dask arrays, Dask data frames and folders: the same consensus, block by block, when asked for."""

import numpy as np
import pytest
from problems import fusion_with

import wassemble as ws
from wassemble import InvalidInputError, Predictions
from wassemble.scale import fuse_lazily

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
cloudpickle = pytest.importorskip("cloudpickle")

KERNEL = np.random.default_rng(1).uniform(0.1, 1, (5, 4))
LABELS = {"a": ["cat", "dog"], "b": ["dog", "cat", "lynx"]}


@pytest.fixture
def arrays(rng):
    return [rng.dirichlet(np.ones(5), 20) for _ in range(2)]


@pytest.mark.parametrize("chunks", [(20, 5), (6, 2), (1, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_of_arrays_are_fused_each_for_itself(arrays, chunks, dtype):
    arrays = [array.astype(dtype) for array in arrays]
    lazy = [da.from_array(arrays[0], chunks=chunks), da.from_array(arrays[1], chunks=(7, 5))]
    found = fuse_lazily(lazy, ws.Fusion(kernel=KERNEL, normalize=True))
    assert isinstance(found, da.Array)
    assert found.chunks == (lazy[0].chunks[0], (4,))
    assert found.dtype == dtype
    expected = ws.fuse(arrays, kernel=KERNEL, normalize=True)
    computed = found.compute()
    assert computed.dtype == dtype
    np.testing.assert_allclose(computed, expected, rtol=1e-5 if dtype == "float32" else 1e-6)


def test_one_array_of_all_models_will_do_and_so_will_means(arrays):
    stacked = da.from_array(np.stack(arrays), chunks=(1, 6, 5))
    np.testing.assert_allclose(fuse_lazily(stacked), ws.fuse(arrays), rtol=1e-10)
    found = fuse_lazily(stacked, ws.Fusion(ws.ARITHMETIC))
    np.testing.assert_allclose(found, np.mean(arrays, axis=0))


def test_nothing_is_computed_before_it_is_asked_for(arrays):
    n_calls = 0

    def counted(block):
        nonlocal n_calls
        n_calls += 1
        return block

    lazy = [da.from_array(a, chunks=(5, 5)).map_blocks(counted, dtype=a.dtype) for a in arrays]
    n_calls = 0
    found = fuse_lazily(lazy, ws.Fusion(kernel=KERNEL))
    assert n_calls == 0
    found[:5].compute()
    assert n_calls == 2


def test_the_kernel_is_in_the_graph_once(arrays):
    lazy = [da.from_array(array, chunks=(1, 5)) for array in arrays]
    found = fuse_lazily(lazy, ws.Fusion(kernel=KERNEL))
    graph = found.__dask_graph__()
    holders = [key for key, task in graph.items() if "Fusion" in str(key)]
    assert len(holders) == 1
    assert len(graph) > 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, b: fuse_lazily([a, b[:9]]), "the same samples; got 9, 20"),
        (
            lambda a, b: fuse_lazily([a[0], b[0]]),
            r"must have shape \(n_samples, n_labels\)",
        ),
        (
            lambda a, b: fuse_lazily([a, b], ws.Fusion(kernel=KERNEL.T)),
            "one row per source label",
        ),
        (
            lambda a, b: fuse_lazily([a, b], ws.Fusion(weights=[0.5, 0.6])),
            "`weights` must sum to 1",
        ),
        (lambda a, b: fuse_lazily([a, b], ws.Fusion(fold=True)), "`fold` must go with"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_at_once(arrays, call, message):
    with pytest.raises(InvalidInputError, match=message):
        call(*(da.from_array(array, chunks=(6, 5)) for array in arrays))


def make(rng, model, samples):
    return Predictions(
        model, samples, LABELS[model], rng.dirichlet(np.ones(len(LABELS[model])), 12)
    )


@pytest.fixture
def models(rng):
    return {model: make(rng, model, [f"s{i}" for i in range(12)]) for model in LABELS}


def to_pandas(given, **columns):
    frame = pd.DataFrame(given.scores, columns=list(given.labels))
    return frame.assign(sample=given.samples.astype(str), **columns)


@pytest.mark.parametrize("options", [{}, {"kind": "multilabel", "target": ["cat", "lynx"]}])
def test_frames_give_a_frame_of_the_same_partitions(models, options):
    frames = {m: dd.from_pandas(to_pandas(given), npartitions=3) for m, given in models.items()}
    found = fuse_lazily(frames, fusion_with(**options))
    assert found.npartitions == 3
    expected = fusion_with(**options).run(models).to_frame(like=to_pandas(models["a"]))
    computed = found.compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(computed, expected, rtol=1e-9)
    # What it says of itself without being computed is true.
    pd.testing.assert_series_equal(found.dtypes, computed.dtypes)
    assert found.partitions[1].compute()["sample"].tolist() == ["s4", "s5", "s6", "s7"]


def test_ids_may_be_an_index_of_numbers(models):
    frames, whole = {}, {}
    for name, given in models.items():
        whole[name] = to_pandas(given).drop(columns="sample").set_axis(list(range(7, 19)))
        whole[name].index.name = "id"
        frames[name] = dd.from_pandas(whole[name], npartitions=2)
    found = fuse_lazily(frames)
    computed = found.compute()
    pd.testing.assert_frame_equal(computed, ws.fuse(whole), rtol=1e-9)
    assert found._meta.index.name == computed.index.name == "id"


def write(folder, models, n_parts=3):
    for name, given in models.items():
        for part, rows in enumerate(np.array_split(np.arange(given.n_samples), n_parts)):
            ws.write_predictions(folder / name / f"{part}.parquet", given.take(rows))
    return {name: folder / name for name in models}


def test_folders_give_a_frame_of_their_parts(models, tmp_path):
    found = fuse_lazily(write(tmp_path, models))
    assert found.npartitions == 3
    expected = ws.Fusion().run(models).to_frame(like=to_pandas(models["a"]))
    computed = found.compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(computed, expected, rtol=1e-9)
    pd.testing.assert_series_equal(found.dtypes, computed.dtypes)


def test_folders_may_begin_with_a_bad_part(models, tmp_path):
    folders = write(tmp_path, models)
    (tmp_path / "a" / "0.parquet").write_bytes(b"nothing")
    assert fuse_lazily(folders).partitions[1].compute()["sample"].tolist() == [
        "s4",
        "s5",
        "s6",
        "s7",
    ]


@pytest.mark.parametrize("from_folders", [False, True])
def test_tasks_of_partitions_are_small(rng, tmp_path, from_folders):
    labels = [f"label {i}" for i in range(400)]
    scores = rng.dirichlet(np.ones(400), 6)
    models = {name: Predictions(name, [f"s{i}" for i in range(6)], labels, scores) for name in "ab"}
    kernel = rng.uniform(0.1, 1, (400, 400))
    if from_folders:
        given = write(tmp_path, models, 6)
    else:
        given = {m: dd.from_pandas(to_pandas(each), npartitions=6) for m, each in models.items()}
    graph = dict(fuse_lazily(given, ws.Fusion(kernel=kernel)).optimize().dask)
    sizes = sorted(len(cloudpickle.dumps(task)) for task in graph.values())
    assert sizes[-1] > 1_000_000  # the kernel, once
    assert sum(size > 50_000 for size in sizes) <= 2  # and the labels
    assert len(sizes) > 12


def test_frames_that_do_not_fit_are_refused(models, tmp_path):
    frames = {m: dd.from_pandas(to_pandas(given), npartitions=3) for m, given in models.items()}
    with pytest.raises(InvalidInputError, match="same number of partitions; got 3 of a, 2 of b"):
        fuse_lazily(frames | {"b": dd.from_pandas(to_pandas(models["b"]), npartitions=2)})
    with pytest.raises(InvalidInputError, match="all Dask data frames or all folders"):
        fuse_lazily(frames | {"b": to_pandas(models["b"])})
    with pytest.raises(InvalidInputError, match=r"scale\.fuse_lazily` takes Dask"):
        ws.Fusion().run(frames)
    with pytest.raises(InvalidInputError, match="at least one model"):
        fuse_lazily({})
    long = pd.DataFrame({"sample": ["x"], "label": ["cat"], "score": [1.0]})
    with pytest.raises(InvalidInputError, match="must be wide"):
        fuse_lazily({"a": dd.from_pandas(long, npartitions=1)})


def test_a_partition_of_another_kind_is_refused(models):
    odd = to_pandas(models["a"])
    odd.loc[9:, ["cat", "dog"]] *= 3
    found = fuse_lazily({"a": dd.from_pandas(odd, npartitions=3)})
    found.partitions[0].compute()
    with pytest.raises(
        InvalidInputError, match="the kind that the first partition has, multiclass"
    ):
        found.compute()


def test_a_part_with_other_labels_is_named(models, tmp_path):
    folders = write(tmp_path, models)
    strange = models["b"].take(slice(8, None)).replace(labels=ws.LabelSpace(["dog", "cat", "yak"]))
    ws.write_predictions(tmp_path / "b" / "2.parquet", strange)
    with pytest.raises(InvalidInputError, match=r"^2: the labels of 'b' must be .* got .*'yak'"):
        fuse_lazily(folders).compute()
    odd = to_pandas(models["a"])
    odd.loc[9:, ["cat", "dog"]] *= 3
    with pytest.raises(InvalidInputError, match=r"^partition 2: a: the kind"):
        fuse_lazily({"a": dd.from_pandas(odd, npartitions=3)}).compute()


@pytest.mark.parametrize("gather", [list, tuple, lambda paths: next(iter(paths))])
def test_paths_need_names(models, tmp_path, gather):
    folders = write(tmp_path, models)
    for given in (folders.values(), map(str, folders.values())):
        with pytest.raises(InvalidInputError, match=r"models .*\nhint: .*\{\"my model\": table"):
            fuse_lazily(gather(given))
