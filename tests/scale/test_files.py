"""Files in, a file out: streamed or whole, in order or not, the same consensus."""

import numpy as np
import pytest
from problems import fusion_with

import wassemble as ws
from wassemble import InvalidInputError, Predictions, read_predictions
from wassemble.inputs import open_predictions
from wassemble.scale import files as module, fuse_files


def make(rng, model, samples, labels):
    scores = rng.uniform(0.05, 1, size=(len(samples), len(labels)))
    scores /= scores.sum(axis=1, keepdims=True)
    return Predictions(model, samples, labels, scores)


@pytest.fixture
def members(rng):
    return [
        make(rng, "a", [f"s{i}" for i in range(40)], ["cat", "dog"]),
        make(rng, "b", [f"s{i}" for i in range(3, 50, 2)], ["cat", "lynx"]),
        make(rng, "c", [f"s{i}" for i in range(20, 45)], ["dog", "wolf", "cat"]),
    ]


def fuse_them(folder, members, suffix, out="out.parquet", **options):
    paths = []
    for member in members:
        paths.append(folder / f"{member.model}.{suffix}")
        ws.write_predictions(paths[-1], member)
    opened = [open_predictions(path) for path in paths]
    how = {name: options.pop(name) for name in ("progress", "receive") if name in options}
    account = fuse_files(opened, folder / out, fusion_with(**options), **how)
    for file in opened:
        file.close()
    return read_predictions(folder / out), account


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "npy", "npz", "jsonl"])
@pytest.mark.parametrize("n_scores", [1, 50, 10**6])
def test_chunks_give_what_the_whole_gives(tmp_path, members, suffix, n_scores, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK_SCORES", n_scores)
    found, account = fuse_them(tmp_path, members, suffix)
    whole = ws.Fusion().run(members)
    assert account.n_samples == 48
    order = np.array([whole.row(sample) for sample in found.samples])
    assert sorted(order) == list(range(48))
    np.testing.assert_allclose(found.scores, whole.consensus.scores[order], rtol=1e-6)
    said = [line for line in account.lines() if "; 2 labels: " not in line]
    assert [line for line in said if "; 3 labels: " not in line][2:] == whole.account.lines()[2:]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunks_that_a_model_lacks_keep_the_type(tmp_path, members, dtype, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK_SCORES", 7 * 5)
    narrow = members[0].replace(scores=members[0].scores.astype(np.float32))
    last = members[2].replace(scores=members[2].scores.astype(dtype))  # nothing at first
    found, _ = fuse_them(tmp_path, [narrow, last], "parquet")
    assert found.scores.dtype == dtype


def test_files_in_another_order_are_matched_too(tmp_path, members):
    turned = [members[0], members[1].take(slice(None, None, -1)), members[2]]
    straight, _ = fuse_them(tmp_path, members, "csv")
    found, _ = fuse_them(tmp_path, turned, "csv", "turned.csv")
    place = {sample: i for i, sample in enumerate(found.samples)}
    rows = [place[sample] for sample in straight.samples]
    np.testing.assert_allclose(found.scores[rows], straight.scores, rtol=1e-9)


def test_common_samples_only(tmp_path, members):
    found, _ = fuse_them(tmp_path, members, "csv", samples="common")
    assert set(found.samples) == set.intersection(*(set(m.samples) for m in members))


def test_chunks_are_handed_over_and_counted(tmp_path, members, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK_SCORES", 70)
    seen, told = [], []
    fuse_them(
        tmp_path,
        members,
        "csv",
        receive=lambda chunk: seen.append(chunk.n_samples),
        progress=lambda done, total: told.append((done, total)),
    )
    assert sum(seen) == 48
    assert len(seen) > 3
    assert told[-1] == (48, 48)


def test_an_error_on_the_way_leaves_the_old_file(tmp_path, members):
    (tmp_path / "out.csv").write_text("old")

    def fail_late(done, total):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fuse_them(tmp_path, members, "csv", "out.csv", progress=fail_late)
    assert (tmp_path / "out.csv").read_text() == "old"
    assert not list(tmp_path.glob(".unfinished-*"))


def test_wrong_calls_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="at least one file"):
        fuse_files([], None)
    ws.write_predictions(tmp_path / "a.csv", Predictions("a", ["x"], ["cat"], [[1.0]]))
    with (
        open_predictions(tmp_path / "a.csv") as file,
        pytest.raises(InvalidInputError, match="all"),
    ):
        fuse_files([file], None, ws.Fusion(samples="some"))


def test_memory_stays_flat(tmp_path, rng, monkeypatch):
    """Twenty times the rows, about the same peak: only ids are kept whole."""
    import tracemalloc

    monkeypatch.setattr(module, "_CHUNK_SCORES", 2**16)
    peaks = []
    for n_samples in (2_000, 40_000):
        big = make(rng, "a", range(n_samples), [f"label {i}" for i in range(50)])
        ws.write_predictions(tmp_path / "a.npy", big)
        del big
        tracemalloc.start()
        with open_predictions(tmp_path / "a.npy") as file:
            fuse_files([file], tmp_path / "out.npy")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    scores_in_bytes = 40_000 * 50 * 8
    assert peaks[1] - peaks[0] < 0.6 * scores_in_bytes


@pytest.mark.parametrize("samples", ["all", "common"])
def test_ids_that_all_files_have_are_not_copied(tmp_path, monkeypatch, samples):
    import tracemalloc

    monkeypatch.setattr(module, "_CHUNK_SCORES", 2**12)
    n_samples = 50_000
    halves = np.full((n_samples, 2), 0.5, dtype=np.float32)
    opened = []
    for model in "ab":
        path = tmp_path / f"{model}.npy"
        ws.write_predictions(path, Predictions(model, range(n_samples), ["cat", "dog"], halves))
        opened.append(open_predictions(path))
    tracemalloc.start()
    account = fuse_files(opened, None, ws.Fusion(ws.ARITHMETIC, samples=samples))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for file in opened:
        file.close()
    assert account.n_samples == n_samples
    assert peak < 30 * n_samples + 2**20


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_rounded_histograms_are_detected_alike_in_chunks_and_as_a_whole(
    tmp_path, monkeypatch, suffix
):
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(60)]
    scores = [rng.dirichlet(np.full(10, 0.3), size=60).round(2) for _ in range(2)]
    models = [Predictions(m, names, range(10), x) for m, x in zip("ab", scores, strict=True)]
    for model in models:
        ws.write_predictions(tmp_path / f"{model.model}{suffix}", model)
    monkeypatch.setattr(module, "_CHUNK_SCORES", 100)
    files = [open_predictions(tmp_path / f"{m}{suffix}") for m in "ab"]
    account = fuse_files(files, tmp_path / "fused.csv")
    for file in files:
        file.close()
    whole = ws.Fusion().run(models)
    found = read_predictions(tmp_path / "fused.csv").scores
    np.testing.assert_allclose(found, whole.consensus.scores, atol=1e-9)
    said = [line for line in account.lines() if "rounding" in line]
    assert said == [line for line in whole.account.lines() if "rounding" in line]
    assert "each divided by its sum" in said[0]


def test_rows_are_normalised_where_files_are_opened(tmp_path, rng):
    path = tmp_path / "a.csv"
    counts = Predictions("a", ["x", "y"], ["cat", "dog"], [[3, 1], [1, 4]], kind="multilabel")
    ws.write_predictions(path, counts)
    fusion = ws.Fusion(normalize=True)
    with (
        open_predictions(path, kind="multilabel") as file,
        pytest.raises(ws.InvalidInputError, match=r"opened with normalize=True.*\nhint: open_pred"),
    ):
        fuse_files([file], None, fusion)
    with open_predictions(path, normalize=True) as file:
        fuse_files([file], tmp_path / "out.csv", fusion)
    found = read_predictions(tmp_path / "out.csv").scores
    np.testing.assert_allclose(found, [[0.75, 0.25], [0.2, 0.8]])
