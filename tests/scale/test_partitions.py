"""Folders of part files in, a folder out: what is written, kept, refused and told."""

import errno
import functools
import json
import os
import resource
import shutil
import subprocess
import time
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from patience import SECONDS
from problems import fusion_with
from scale.clusters import (
    ENVIRONMENT,
    HOW,
    LABELS,
    contents,
    fuse_command,
    parts_of,
    write_parts,
)

import wassemble as ws
from wassemble import (
    InputWarning,
    InvalidInputError,
    Predictions,
    read_predictions,
    write_predictions,
)
from wassemble.cli import main
from wassemble.errors import WassembleError
from wassemble.inputs.folders import LocalFolder, open_folder
from wassemble.scale import PartitionError, fuse_partitions
from wassemble.scale.folders.manifest import LOCK, MANIFEST, Manifest

pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_parts(tmp_path, 4)
    return tmp_path


def fuse_them(folder, out="fused", **options):
    place = out if "://" in str(out) else folder / out
    how = {name: options.pop(name) for name in HOW if name in options}
    models = {model: folder / model for model in LABELS}
    return fuse_partitions(models, place, fusion_with(**options), **how)


def interrupted(*_, **__):
    raise KeyboardInterrupt


def read_all(folder, suffix="parquet"):
    """Every part of a folder as one."""
    parts = [read_predictions(path) for path in sorted(folder.glob(f"*.{suffix}"))]
    samples = np.concatenate([part.samples for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    return Predictions(folder.name, samples, parts[0].labels, scores)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "csv.gz", "jsonl", "npz"])
def test_each_part_is_what_its_files_give(tmp_path, suffix):
    write_parts(tmp_path, 3, suffix=suffix)
    fuse_them(tmp_path)
    names = sorted(path.name for path in (tmp_path / "fused").glob("*.*"))
    assert names == [f"part-00{part}.{suffix}" for part in range(3)]
    for name in names:
        members = [read_predictions(tmp_path / model / name, model=model) for model in LABELS]
        expected = ws.Fusion().run(members).consensus
        found = read_predictions(tmp_path / "fused" / name)
        assert found.samples.tolist() == expected.samples.tolist()
        assert found.labels == expected.labels
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)


def test_the_account_is_that_of_one_large_file(folder):
    fusion = fuse_them(folder)
    whole = ws.Fusion().run([read_all(folder / model) for model in LABELS])
    assert [line for line in fusion.account.lines() if "ids in 'sample'" not in line] == [
        line for line in whole.account.lines() if "ids in 'sample'" not in line
    ]
    assert "a/: ids in 'sample'; 3 labels: cat, dog, eel" in fusion.account.lines()
    assert fusion.account.n_samples == 80
    again = fuse_them(folder)
    assert (again.n_partitions, again.n_kept) == (4, 4)
    assert again.account.to_dict() == fusion.account.to_dict()


def test_parts_may_lie_in_folders_and_have_other_formats(folder):
    for model, suffix in (("a", "parquet"), ("b", "csv")):
        for day in ("1", "2"):
            given = read_predictions(folder / model / f"part-00{day}.parquet")
            write_predictions(folder / "days" / model / f"day={day}" / f"p.{suffix}", given)
    (folder / "days" / "a" / "_SUCCESS").touch()
    (folder / "days" / "b" / ".p.crc").touch()
    fuse_them(folder / "days")
    assert read_predictions("days/fused/day=2/p.parquet").n_samples == 20


def test_stores_of_fsspec_hold_the_same(folder):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    fuse_them(folder)
    for model in LABELS:
        memory.put(f"{folder / model}/", f"/store/{model}/", recursive=True)
    urls = {model: f"memory://store/{model}" for model in LABELS}
    try:
        assert fuse_partitions(urls, "memory://store/fused").n_kept == 0
        memory.rm("/store/fused/part-002.parquet")
        assert fuse_partitions(urls, "memory://store/fused/").n_kept == 3
        for name in parts_of(folder / "fused"):
            stored = memory.cat_file(f"/store/fused/{name}")
            assert stored == (folder / "fused" / name).read_bytes()
        # Single files, too.
        one = [f"{model}=memory://store/{model}/part-000.parquet" for model in LABELS]
        assert main(["fuse", *one, "--out", "memory://store/one.parquet"]) == 0
        stored = memory.cat_file("/store/one.parquet")
        assert stored == (folder / "fused" / "part-000.parquet").read_bytes()
        with pytest.raises(InvalidInputError, match="part files; there are none"):
            fuse_partitions({"a": "memory://store/nothing"}, "memory://store/fused")
        with pytest.raises(InvalidInputError, match="must go to a folder of its own"):
            fuse_partitions(urls, "memory://store/a/fused")
        with pytest.raises(InvalidInputError, match="must be a place that fsspec can reach"):
            fuse_partitions({"a": "nosuch://store/a"}, "memory://store/fused")
    finally:
        memory.rm("/store", recursive=True)


def test_urls_of_local_files_are_paths(folder):
    fuse_them(folder)
    urls = {model: f"file://{folder / model}" for model in LABELS}
    fuse_partitions(urls, f"file://{folder / 'other'}")
    assert contents(folder / "other") == contents(folder / "fused")


def test_only_what_is_missing_is_done_again(folder):
    fuse_them(folder)
    whole, before = contents(folder / "fused"), parts_of(folder / "fused")
    (folder / "fused" / "part-001.parquet").unlink()
    cut = folder / "fused" / "part-003.parquet"
    cut.write_bytes(cut.read_bytes()[:-9])
    (folder / "fused" / ".unfinished-x").mkdir()
    assert fuse_them(folder).n_kept == 2
    assert contents(folder / "fused") == whole
    after = parts_of(folder / "fused")
    kept = {name for name in after if after[name] == before[name]}
    assert kept == {"part-000.parquet", "part-002.parquet"}
    assert sorted(os.listdir(folder / "fused" / "_wassemble")) == ["lock", "manifest.json"]
    assert not (folder / "fused" / ".unfinished-x").exists()


def test_threads_change_no_bit(folder):
    fuse_them(folder, n_threads=1)
    fuse_them(folder, "other", n_threads=2)
    assert contents(folder / "other") == contents(folder / "fused")


def spoil(folder):
    """Two parts that cannot be fused, for two reasons, and what they were."""
    garbled, strange = folder / "b" / "part-001.parquet", folder / "a" / "part-002.parquet"
    before = {path: path.read_bytes() for path in (garbled, strange)}
    garbled.write_bytes(b"PAR1 and nothing else")
    given = read_predictions(strange)
    write_predictions(strange, Predictions("a", given.samples, ["cat", "dog", "yak"], given.scores))
    return before


def test_bad_parts_are_named_the_rest_is_kept_and_once_repaired_all_is_well(folder, capsys):
    before = spoil(folder)
    command = ["fuse", "a", "b", "--out", "fused"]
    for _ in range(2):  # until they are repaired
        assert main(command) == 1
        said = capsys.readouterr().err.splitlines()
        assert said[0].startswith("error: 2 of 4 partitions could not be fused; the others are in")
        assert said[1].startswith("part-001: model b: part-001.parquet: must be a whole Parquet")
        assert said[2] == (
            "part-002: model a: part-002.parquet: every part must have the labels that most of the"
            " first have; got besides 'yak' and without 'eel'."
        )
        assert sorted(parts_of(folder / "fused")) == ["part-000.parquet", "part-003.parquet"]
    kept = parts_of(folder / "fused")
    for path, content in before.items():
        path.write_bytes(content)
    assert main(command) == 0
    assert "4 partitions, 2 of an earlier run" in capsys.readouterr().err
    after = parts_of(folder / "fused")
    assert {name: after[name] for name in kept} == kept
    fuse_them(folder, "other")
    assert {n: d for n, (d, _) in after.items()} == {
        n: d for n, (d, _) in parts_of(folder / "other").items()
    }


def test_the_first_part_may_be_the_bad_one(folder):
    (folder / "a" / "part-000.parquet").write_bytes(b"nothing")
    with pytest.raises(PartitionError, match=r"1 of 4 partitions .*\npart-000: model a"):
        fuse_them(folder)
    assert len(parts_of(folder / "fused")) == 3


def test_a_strange_first_part_does_not_decide_for_all(folder):
    strange = folder / "a" / "part-000.parquet"
    before, given = strange.read_bytes(), read_predictions(strange)
    write_predictions(strange, Predictions("a", given.samples, ["cat", "dog", "yak"], given.scores))
    with pytest.raises(PartitionError, match=r"1 of 4 partitions .*\npart-000: .* besides 'yak'"):
        fuse_them(folder)
    strange.write_bytes(before)
    assert fuse_them(folder).n_kept == 3


def test_a_first_part_without_rows_says_nothing_of_the_kind(folder):
    for model in LABELS:
        for part in range(4):
            path = folder / model / f"part-00{part}.parquet"
            given = read_predictions(path)
            scores = Predictions(model, given.samples, given.labels, 3 * given.scores)
            write_predictions(path, scores.take(slice(0, None if part else 0)))
    with pytest.warns(ws.InputWarning, match="if they are logits"):
        fusion = fuse_them(folder)
    assert fusion.account.plan.kind == "multilabel"
    assert fusion.account.n_samples == 60


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npz"])
def test_parts_without_rows_have_the_types_of_the_others(tmp_path, suffix):
    rng = np.random.default_rng(0)
    n_rows = {"a": [3, 0, 0, 2], "b": [3, 0, 2, 0]}
    for model, labels in LABELS.items():
        for part, n in enumerate(n_rows[model]):
            scores = rng.dirichlet(np.ones(len(labels)), n).astype(np.float32)
            given = Predictions(model, 10 * part + np.arange(n), labels, scores)
            write_predictions(tmp_path / model / f"part-{part}.{suffix}", given)
    models = {model: tmp_path / model for model in LABELS}
    fuse_partitions(models, tmp_path / "fused")
    parts = [read_predictions(tmp_path / f"fused/part-{part}.{suffix}") for part in range(4)]
    assert [part.samples.tolist() for part in parts] == [[0, 1, 2], [], [20, 21], [30, 31]]
    assert {part.samples.dtype for part in parts} == {np.dtype(np.int64)}
    assert {part.scores.dtype for part in parts} == {np.dtype(np.float32)}
    lazy = ws.scale.fuse_lazily({model: str(folder) for model, folder in models.items()})
    types = [part.compute().dtypes.tolist() for part in lazy.partitions]
    assert types == [lazy.dtypes.tolist()] * 4


def test_what_many_bad_parts_have_in_common_is_said_once(folder):
    for path in sorted((folder / "a").iterdir())[2:]:
        given = read_predictions(path)
        write_predictions(path, Predictions("a", given.samples, ["x", "y", "z"], given.scores))
    with pytest.raises(PartitionError, match="2 of 4") as caught:
        fuse_them(folder)
    assert str(caught.value).count("hint: `labels`") == 1


def test_a_link_to_nothing_is_a_bad_part_and_one_to_a_folder_a_folder(folder):
    (folder / "a" / "part-003.parquet").unlink()
    (folder / "a" / "part-003.parquet").symlink_to("nothing")
    with pytest.raises(PartitionError, match=r"1 of 4 partitions .*\npart-003: .*there is none"):
        fuse_them(folder)
    (folder / "days").mkdir()
    (folder / "days" / "1").symlink_to(folder / "b")
    assert fuse_partitions({"b": folder / "days"}, folder / "other").n_partitions == 4
    (folder / "b" / "round").symlink_to(folder / "b")
    with pytest.raises(InvalidInputError, match="must not lead to a folder that it is in"):
        fuse_them(folder)


def test_a_folder_that_cannot_be_read_is_an_error(folder, monkeypatch):
    def refused(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(InvalidInputError, match="a folder that can be read; Permission denied"):
        LocalFolder(folder / "a").find()


def test_many_bad_parts_are_counted(tmp_path):
    write_parts(tmp_path, 15, 2)
    for path in sorted((tmp_path / "a").iterdir())[1:]:
        path.write_bytes(b"nothing")
    with pytest.raises(PartitionError, match="14 of 15") as caught:
        fuse_them(tmp_path)
    assert "... and 4 more" in str(caught.value)


def test_a_part_of_another_kind_is_refused_unless_the_kind_is_declared(folder):
    given = read_predictions(folder / "b" / "part-002.parquet")
    scores = Predictions("b", given.samples, given.labels, given.scores * 3)
    write_predictions(folder / "b" / "part-002.parquet", scores)
    with pytest.raises(
        PartitionError, match=r"part-002: model b: .* multiclass, must hold for all"
    ):
        fuse_them(folder)
    with pytest.warns(
        ws.InputWarning, match=r"scores go up to 2\.\d+ \('b'\), but to 0\.\d+ \('a'\)"
    ):
        assert fuse_them(folder, "other", kind="multilabel").account.n_samples == 80


def test_when_a_file_cannot_be_written_the_rest_is_kept(tmp_path, capsys):
    write_parts(tmp_path, 3)
    for model, labels in LABELS.items():  # one part that is too large for the disk
        samples = [f"long name of sample {i}" for i in range(4000)]
        scores = np.random.default_rng(0).dirichlet(np.ones(len(labels)), len(samples))
        large = Predictions(model, samples, labels, scores)
        write_predictions(tmp_path / model / "part-001.parquet", large)
    command = fuse_command(tmp_path, tmp_path / "fused", "--rule", "arithmetic")
    full = subprocess.run(
        command,
        env=ENVIRONMENT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert full.returncode == 1
    assert "1 of 3 partitions could not be fused" in full.stderr
    assert "part-001: part-001.parquet: must be a file that can be written" in full.stderr
    assert "File too large" in full.stderr
    assert sorted(parts_of(tmp_path / "fused")) == ["part-000.parquet", "part-002.parquet"]
    assert not list((tmp_path / "fused").glob(".*"))
    assert main(command[command.index("fuse") :]) == 0
    assert "3 partitions, 2 of an earlier run" in capsys.readouterr().err


def test_two_runs_into_one_folder(folder, capsys):
    with LocalFolder(folder / "fused").lock(LOCK):
        assert main(["fuse", "a", "b", "--out", "fused"]) == 2
    assert "one run at a time may write here" in capsys.readouterr().err
    assert main(["fuse", "a", "b", "--out", "fused"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-sweeps", "7"], r"other fusion \(rule, max_sweeps\); it has 1000, and 7 was"),
        (
            ["--rule", "geometric"],
            r"other fusion \(rule, rule\); it has barycenter, and power mean",
        ),
        (
            ["--mass-penalty", "3"],
            r"other fusion \(rule, mass, mass_penalty\); it has 2",
        ),
        (["--weights", "a=.4,b=.6"], "other weights"),
        (["--samples", "common"], r"other fusion \(samples\); it has all, and common was"),
        (["--tree", "tree.txt"], r"other kernels \(a\)"),
        (["--kind", "multilabel"], r"other reading \(a, kind\)"),
        (["--fold", "--target", "wanted.txt"], "other target"),
    ],
)
def test_a_folder_of_another_request_is_refused(folder, options, message, capsys):
    (folder / "wanted.txt").write_text("cat\ndog\n")
    pairs = (
        ["animal", "cat"],
        ["animal", "dog"],
        ["cat", "lynx"],
        ["dog", "wolf"],
        ["animal", "eel"],
    )
    (folder / "tree.txt").write_text("\n".join(map("\t".join, pairs)))
    assert main(["fuse", "a", "b", "--out", "fused"]) == 0
    before = contents(folder / "fused")
    capsys.readouterr()
    assert main(["fuse", "a", "b", "--out", "fused", *options]) == 2
    said = capsys.readouterr().err
    with pytest.raises(InvalidInputError, match=message):
        raise InvalidInputError(said)
    assert "hint: choose another folder, or remove this one" in said
    assert contents(folder / "fused") == before


def test_a_folder_of_other_inputs_is_refused(folder):
    fuse_them(folder)
    other = folder / "other"
    for model in LABELS:
        shutil.copytree(folder / model, other / model)
    with pytest.raises(InvalidInputError, match=r"other models \(a\)"):
        fuse_partitions({model: other / model for model in LABELS}, folder / "fused")
    for model in LABELS:
        shutil.copy(folder / model / "part-000.parquet", folder / model / "part-009.parquet")
    with pytest.raises(InvalidInputError, match="other partitions"):
        fuse_them(folder)
    for model in LABELS:
        (folder / model / "part-009.parquet").unlink()
    assert fuse_them(folder).n_kept == 4


def test_a_part_whose_file_has_changed_is_made_again(folder, capsys):
    fuse_them(folder)
    path = folder / "b" / "part-002.parquet"
    given = read_predictions(path)
    turned = Predictions("b", given.samples, given.labels, given.scores[::-1])
    write_predictions(path, turned)
    before = parts_of(folder / "fused")
    assert main(["fuse", "a", "b", "--out", "fused"]) == 0
    told = "4 partitions, 3 of an earlier run, 1 made again from files that have changed"
    assert told in capsys.readouterr().err
    after = parts_of(folder / "fused")
    assert [name for name in after if after[name] != before[name]] == ["part-002.parquet"]
    fuse_them(folder, "other")
    name = "part-002.parquet"
    assert after[name][0] == parts_of(folder / "other")[name][0] != before[name][0]


def test_a_part_made_from_other_files_is_gone_before_it_is_made_again(folder, monkeypatch):
    fuse_them(folder)
    shutil.copy(folder / "b" / "part-001.parquet", folder / "b" / "part-002.parquet")
    monkeypatch.setattr("wassemble.scale.folders.worker.fuse_by_plan", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fuse_them(folder)
    assert "part-002.parquet" not in parts_of(folder / "fused")


def test_a_folder_without_parts_is_free(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("wassemble.scale.folders.worker.fuse_by_plan", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fuse_them(folder)
    assert fuse_them(folder, kind="multilabel").n_kept == 0
    with pytest.raises(InvalidInputError, match=r"other reading \(a, kind\)"):
        fuse_them(folder)


def test_other_ways_to_write_a_path_are_the_same_folder(folder):
    fuse_them(folder)
    (folder / "link").symlink_to(folder)
    for base in (folder / "link", folder / "a" / ".."):
        again = fuse_partitions({model: base / model for model in LABELS}, base / "fused")
        assert again.n_kept == 4
    (folder / "latest").symlink_to(folder / "a")
    assert ws.inputs.open_data_set(folder / "latest").model == "latest"


def test_rules_that_look_alike_are_told_apart(folder):
    def fuse_by(rule):
        return fuse_them(folder, rule=rule).n_kept

    assert fuse_by(ws.PowerMean(0.25)) == 0
    assert fuse_by(ws.PowerMean(0.25)) == 4
    with pytest.raises(InvalidInputError, match=r"other fusion \(rule, order\); it has 0.25, and"):
        fuse_by(ws.PowerMean(0.5))
    with pytest.raises(InvalidInputError, match=r"other fusion \(rule, rule\)"):
        fuse_by(ws.GatedMean(0.25, n_top=1, floor=0.5))


def test_numbers_of_numpy_are_numbers(folder):
    for n_kept in (0, 4):
        options = {"max_sweeps": np.int64(7), "leftover": np.float32(0.5)}
        assert fuse_them(folder, **options).n_kept == n_kept


def test_half_a_record_is_none(folder):
    (folder / "b" / "part-001.parquet").write_bytes(b"nothing")
    for text in ('{"file": "part-0', '{"file": "part-000.parquet"}', "[]"):
        with pytest.raises(PartitionError, match="1 of 4"):
            fuse_them(folder)
        (folder / "fused" / "_wassemble" / "partitions" / "part-000.json").write_text(text)
    write_parts(folder, 4)
    fuse_them(folder)
    fuse_them(folder, "other")
    assert contents(folder / "other") == contents(folder / "fused")


def test_a_manifest_that_cannot_be_written_is_one_clear_error(folder, monkeypatch):
    store = LocalFolder.store

    def full(self, name, **options):
        if name == MANIFEST and parts_of(folder / "fused"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return store(self, name, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "store", full)
        with pytest.raises(WassembleError, match=r"No space left on device. What is finished is"):
            fuse_them(folder)
    assert fuse_them(folder).n_kept == 4


def test_a_file_system_without_locks_is_one_clear_error(folder, monkeypatch):
    def without(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", without)
    with pytest.raises(InvalidInputError, match="that has locks; No locks available"):
        fuse_them(folder)


def test_passwords_in_urls_are_not_shown():
    pytest.importorskip("fsspec")
    assert str(open_folder("memory://user:se@cret@host/x/")) == "memory://host/x"
    assert str(open_folder("memory://host/x@y")) == "memory://host/x@y"


def test_a_folder_with_other_files_is_refused(folder):
    (folder / "fused").mkdir()
    (folder / "fused" / "mine.txt").touch()
    with pytest.raises(InvalidInputError, match="must be an empty folder"):
        fuse_them(folder)
    assert os.listdir(folder / "fused") == ["mine.txt"]
    (folder / "fused" / "mine.txt").unlink()
    fuse_them(folder)
    (folder / "fused" / "_wassemble" / "manifest.json").write_text("[]")
    with pytest.raises(InvalidInputError, match="must be a manifest of this version"):
        fuse_them(folder)
    (folder / "fused" / "_wassemble" / "manifest.json").write_text('{"format": "wassem')
    with pytest.raises(InvalidInputError, match=r"is cut off or damaged .*\nhint: remove the fol"):
        fuse_them(folder)


def test_a_task_that_outlives_its_run_writes_nothing(folder, monkeypatch):
    from wassemble.scale.folders import worker

    class Replaced:
        def __init__(self, fuse):
            self.fuse = fuse

        def __call__(self, *arguments, **options):
            self.fuse(*arguments, **options)
            (folder / "fused" / "_wassemble" / "run").write_text("another")

    monkeypatch.setattr(worker, "fuse_by_plan", Replaced(worker.fuse_by_plan))
    with pytest.raises(PartitionError, match="another has begun since"):
        fuse_them(folder)
    assert parts_of(folder / "fused") == {}


def outlived(folder_class, monkeypatch, first, second):
    """Call ``first``, which is frozen as it sends its first part until ``second`` has ended."""
    store = folder_class.store
    calls = [second]

    @contextmanager
    def frozen(self, name="", **options):
        with store(self, name, **options) as path:
            yield path
            if name == "part-000.parquet" and calls:
                calls.pop()()

    with monkeypatch.context() as patch:
        patch.setattr(folder_class, "store", frozen)
        patch.setattr(folder_class, "lock", lambda *_: nullcontext())  # as when it is killed
        patch.setattr(folder_class, "sweep", lambda _: None)
        first()


@pytest.mark.parametrize("store", ["memory://outlived", "local"])
def test_a_task_that_is_sending_when_its_run_is_replaced_takes_its_part_back(
    folder, store, monkeypatch
):
    pytest.importorskip("fsspec")
    out = open_folder(store if "://" in store else folder / store)
    place = str(out)

    def fuse_by(rule, out=place):
        return fuse_them(folder, out, rule=rule)

    def lose_by(rule):
        with pytest.raises(PartitionError, match=r"part-000: .* another has begun since"):
            fuse_by(rule)

    try:
        renew = functools.partial(fuse_by, ws.GEOMETRIC)
        outlived(type(out), monkeypatch, lambda: lose_by(ws.ARITHMETIC), renew)
        assert "part-000.parquet" not in out.find()
        assert renew().n_kept == 3
        fuse_by(ws.GEOMETRIC, folder / "expected")
        for name in parts_of(folder / "expected"):
            with out.fetch(name) as path:
                assert path.read_bytes() == (folder / "expected" / name).read_bytes()
        # Of the same request it would be the same part.
        out.remove("part-000.parquet")
        outlived(type(out), monkeypatch, lambda: lose_by(ws.GEOMETRIC), renew)
        assert renew().n_kept == 4
    finally:
        for name in ("_wassemble", *out.find()):
            out.remove(name)


def test_a_part_that_others_have_written_since_is_told_and_made_again(folder):
    fuse_them(folder, "expected")

    def overwrite(n_done, _):
        if n_done == 3:
            path = folder / "fused" / "part-001.parquet"
            path.write_bytes(bytes(path.stat().st_size))

    with pytest.raises(WassembleError, match=r"not what it has written: .part-001\.parquet"):
        fuse_them(folder, progress=overwrite)
    assert fuse_them(folder).n_kept == 3
    assert contents(folder / "fused") == contents(folder / "expected")


def test_records_of_another_request_count_for_nothing(folder):
    def fuse_by(rule, **options):
        return fuse_them(folder, rule=rule, **options)

    records = folder / "fused" / "_wassemble" / "partitions"

    def save(n_done, _):
        if n_done == 4:
            shutil.copytree(records, folder / "saved")

    fuse_by(ws.ARITHMETIC, progress=save)
    parts = {path.name: path.read_bytes() for path in (folder / "fused").glob("*.*")}
    shutil.rmtree(folder / "fused")
    fuse_by(ws.GEOMETRIC)
    before = contents(folder / "fused")
    # Of a task that was frozen: first its part is there, and then its record.
    shutil.copytree(folder / "saved", records)
    for name, content in parts.items():
        (folder / "fused" / name).write_bytes(content)
    assert fuse_by(ws.GEOMETRIC).n_kept == 0
    assert contents(folder / "fused") == before


def test_a_part_with_other_bytes_is_made_again_and_one_with_another_time_is_kept(folder):
    fuse_them(folder)
    before = contents(folder / "fused")
    os.utime(folder / "fused" / "part-001.parquet")
    other = folder / "fused" / "part-002.parquet"
    other.write_bytes(bytes(other.stat().st_size))
    assert fuse_them(folder).n_kept == 3
    assert contents(folder / "fused") == before


def test_parts_and_manifest_are_forced_onto_the_disk(folder, monkeypatch):
    forced = set()

    def note(descriptor):
        forced.add(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", note)
    fuse_them(folder)
    out = folder / "fused"
    names = [out, *out.glob("*.*"), out / "_wassemble", out / "_wassemble" / "manifest.json"]
    assert len(names) == 7
    assert {path.stat().st_ino for path in names} <= forced


def test_a_disk_that_does_not_take_a_part_is_an_error(folder, monkeypatch):
    def broken(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        store = LocalFolder.store
        patch.setattr(os, "fsync", broken)
        # All but the manifest.
        patch.setattr(
            LocalFolder,
            "store",
            lambda self, name, durable=False: store(
                self, name, durable=durable and name != MANIFEST
            ),
        )
        with pytest.raises(PartitionError, match=r"4 of 4 .*\npart-000: input/output error"):
            fuse_them(folder)
    assert parts_of(folder / "fused") == {}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_that_is_cut_off_at_its_very_end_is_finished(folder, moment, monkeypatch):
    fuse_them(folder, "expected")
    write = Manifest._write

    def cut_off(self, partitions):
        if not partitions or moment == "after":
            write(self, partitions)
        if partitions:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "_write", cut_off)
        with pytest.raises(KeyboardInterrupt):
            fuse_them(folder)
    assert fuse_them(folder).n_kept == 4
    assert contents(folder / "fused") == contents(folder / "expected")
    assert sorted(os.listdir(folder / "fused" / "_wassemble")) == ["lock", "manifest.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "b"], "--out must name a folder"),
        (["a", "b/part-000.parquet", "--out", "f"], "all files or all folders"),
        (["a", "c", "--out", "f"], "got 'part-003' of a and none of c"),
        (["c", "a", "--out", "f"], "got 'part-003' of a and none of c"),
        (["a", "b", "--out", "a"], "an input as well; got a"),
        (["a", "b", "--out", "b/fused"], "in a folder that is read"),
        (["a", "b", "--out", "."], "a folder of its own"),
        (["a", "b", "--out", "one.csv"], "one.csv: must be a folder"),
        (["empty", "--out", "f"], "must be a folder of part files; there are none"),
        (["odd", "--out", "f"], "part.txt: a file of predictions must end in"),
        (["twice", "--out", "f"], "a part must be one file; got p.csv and p.parquet"),
        (["npy", "--out", "f"], "p.labels.txt: a part must be one file"),
        (["one.csv", "--out", "f.csv", "--scheduler", "tcp://x:1"], "must go with folders"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_written(folder, arguments, message, capsys):
    one = Predictions("one", ["x"], ["cat", "dog"], [[0.5, 0.5]])
    write_predictions("one.csv", one)
    shutil.copytree("a", "c")
    os.remove("c/part-003.parquet")
    for name in ("empty", "odd"):
        (folder / name).mkdir()
    (folder / "odd" / "part.txt").touch()
    for name in ("twice/p.csv", "twice/p.parquet", "npy/p.npy"):
        write_predictions(name, one)
    before = sorted(folder.rglob("*"))
    assert main(["fuse", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(folder.rglob("*")) == before


def test_kernels_from_mistakes_see_every_part(folder, capsys):
    wholes = {model: read_all(folder / model) for model in LABELS}
    for model, whole in wholes.items():
        write_predictions(f"{model}.parquet", whole)
    rng = np.random.default_rng(1)
    lines = [f"{sample},{rng.choice(LABELS['a'])}" for sample in wholes["a"].samples]
    (folder / "truth.csv").write_text("\n".join(["sample,label", *lines]))
    learned = ["--confusion", "truth.csv", "--weights", "accuracy", "--json"]
    assert main(["fuse", "a", "b", "--out", "fused", *learned]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["n_partitions"], told["n_kept"], told["n_samples"]) == (4, 0, 80)
    assert main(["fuse", "a.parquet", "b.parquet", "--out", "whole.parquet", *learned]) == 0
    expected = read_predictions("whole.parquet")
    np.testing.assert_allclose(read_all(folder / "fused").scores, expected.scores, rtol=1e-9)


def test_long_parts_need_to_know_their_labels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "top").mkdir()
    for part, label in enumerate(["cat", "dog"]):
        (tmp_path / "top" / f"{part}.csv").write_text(f"sample,label,score\n{part},{label},0.9\n")
    assert main(["fuse", "top", "--out", "fused"]) == 1
    assert "1: model top: 1.csv: every part must have the labels" in capsys.readouterr().err
    (tmp_path / "labels.txt").write_text("cat\ndog\neel\n")
    assert main(["fuse", "top", "--out", "other", "--labels", "labels.txt"]) == 0
    assert read_predictions("other/1.csv").labels.names == ("cat", "dog", "eel")


def test_parts_are_counted_on_the_way(folder):
    seen = []
    fuse_them(folder, progress=lambda *counts: seen.append(counts))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_an_interrupted_run_says_what_is_kept(folder, capsys, monkeypatch):
    monkeypatch.setattr("wassemble.scale.folders.worker.fuse_by_plan", interrupted)
    assert main(["fuse", "a", "b", "--out", "fused"]) == 1
    assert "interrupted; what is finished is kept" in capsys.readouterr().err


@pytest.mark.parametrize("age", [0, 3600])
def test_a_changed_input_of_the_same_size_and_time_is_noticed(tmp_path, age):
    write_parts(tmp_path, 2)
    path = tmp_path / "a" / "part-001.csv"
    (tmp_path / "a" / "part-001.parquet").unlink()
    labels = LABELS["a"]
    samples = read_predictions(tmp_path / "b" / "part-001.parquet").samples
    rows = [f"{s},0.2,0.8,0.0" for s in samples]
    path.write_text("\n".join([f"sample,{','.join(labels)}", *rows, ""]))
    then = time.time_ns() - age * 10**9
    os.utime(path, ns=(then, then))
    assert fuse_them(tmp_path).n_kept == 0
    assert fuse_them(tmp_path).n_kept == 2
    path.write_text(path.read_text().replace("0.2,0.8", "0.8,0.2"))
    os.utime(path, ns=(then, then))
    again = fuse_them(tmp_path)
    assert (again.n_kept, again.n_changed) == (1, 1)


def test_an_input_of_the_same_content_is_kept_whatever_its_time(folder):
    fuse_them(folder)
    path = folder / "a" / "part-001.parquet"
    path.write_bytes(path.read_bytes())
    os.utime(path, (0, 0))
    again = fuse_them(folder)
    assert (again.n_kept, again.n_changed) == (4, 0)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe\x00damaged",
        b'{"format": "wassemble partitions 3"}',
        b'{"format": "wassemble partitions 3", "request": [], "partitions": {}}',
        b'{"format": "wassemble partitions 3", "request": {}, "partitions": {"part-000": {}}}',
        b"",
    ],
)
def test_a_damaged_manifest_is_one_clear_error(folder, text):
    fuse_them(folder)
    (folder / "fused" / MANIFEST).write_bytes(text)
    with pytest.raises(InvalidInputError, match="is cut off or damaged"):
        fuse_them(folder)


def test_a_foreign_file_in_the_folder_is_named(folder):
    (folder / "fused").mkdir()
    (folder / "fused" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"holds other files: 'notes.txt'"):
        fuse_them(folder)
    (folder / "fused" / "notes.txt").unlink()
    fuse_them(folder)
    (folder / "fused" / "extra.parquet").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"parts of the consensus; got 'extra.parquet'"):
        fuse_them(folder)
    (folder / "fused" / "extra.parquet").unlink()
    assert fuse_them(folder).n_kept == 4


def test_what_a_fusion_says_of_reading_holds_for_folders(folder):
    models = {model: folder / model for model in LABELS}
    sets = [ws.inputs.open_data_set(place, model=model) for model, place in models.items()]
    with pytest.raises(InvalidInputError, match=r"opened with normalize=True.*\nhint: open_data"):
        fuse_partitions(sets, folder / "fused", ws.Fusion(normalize=True))
    with pytest.raises(InvalidInputError, match="`by_row` must go with files; got folders"):
        fuse_partitions(models, folder / "fused", ws.Fusion(by_row=True))
    fuse_partitions(models, folder / "fused", ws.Fusion(normalize=True))
    said = json.loads((folder / "fused" / "_wassemble" / "manifest.json").read_text())["request"]
    assert all(reading["normalize"] for reading in said["reading"].values())
    assert ws.Fusion.from_dict(said["fusion"] | {"allow_disjoint": False}) == ws.Fusion(
        normalize=True
    )


def test_grades_of_several_scales_are_told_of_folders_too(tmp_path):
    for model, labels in (("short", ["1", "2", "3"]), ("long", ["1", "2", "3", "4", "5"])):
        even = np.full((2, len(labels)), 1 / len(labels))
        write_predictions(tmp_path / model / "part-0.csv", Predictions(model, [0, 1], labels, even))
    models = {name: tmp_path / name for name in ("short", "long")}
    line = ws.Fusion(ws.LineBarycenter(2))
    with pytest.warns(InputWarning, match=r"1 to 3 \(short\), 1 to 5 \(long\) are taken as one"):
        fuse_partitions(models, tmp_path / "fused", line)
