"""Small real files under the names that the shell blocks of pages and help texts use."""

import json
from pathlib import Path

import numpy as np

import wassemble as ws
from paper.data.captions import load_captions
from paper.data.files import data_folder, find_data
from wassemble import Predictions, write_predictions

# Twelve classes of CIFAR-100; each of three networks is asked about ten of them.
CLASSES = ["lion", "tiger", "leopard", "wolf", "fox", "bear", "otter", "beaver", "seal"]
CLASSES += ["bus", "tractor", "train"]
LABELS = {"a": CLASSES[:10], "b": CLASSES[1:11], "c": CLASSES[2:]}


def write_all(folder: Path) -> None:
    """Everything that a block may name, but for what earlier lines of it write."""
    models, truth = _networks()
    ids = np.arange(models[0].n_samples)
    parts = {"": ids[:120], "test_": ids[120:180], "new_": ids[180:240]}
    for prefix, rows in parts.items():
        for model, end in zip(models, ("csv", "csv", "npz"), strict=True):
            write_predictions(folder / f"{prefix}{model.model}.{end}", model.take(rows))
    known = {"validation": "", "val": "", "truth": "", "few": "", "test": "test_"}
    for name, prefix in known.items():
        lines = "".join(f"{i},{truth[i]}\n" for i in parts[prefix])
        (folder / f"{name}.csv").write_text(f"sample,label\n{lines}")
    first, second, third = (model.take(ids[:40]) for model in models)
    for name, model in (("first.parquet", first), ("second.csv", second), ("third.jsonl", third)):
        write_predictions(folder / name, model)
    write_predictions(folder / "a.parquet", first)
    write_predictions(folder / "b.parquet", second)
    for name, model in (("a", first), ("b", second)):
        for part in range(2):
            rows = slice(20 * part, 20 * part + 20)
            write_predictions(folder / name / f"part-{part}.csv", model.take(rows))
    for model in models[:2]:
        write_predictions(folder / f"{model.model}.npz", model.take(parts[""]))
    write_predictions(folder / "fused.csv", models[0].take(parts[""]))
    _write_kernels(folder)
    _write_animals(folder)
    _write_captions(folder)
    _write_verdicts(folder)
    _write_grades(folder)
    _write_hub(folder)
    (folder / "wanted.txt").write_text("lion\ntiger\nwolf\nfox\nbus\n")
    kinds = ["cat"] * 3 + ["dog"] * 2 + ["other animal"] * 4 + ["vehicle"] * 3
    lines = "".join(f"{kind},{name}\n" for kind, name in zip(kinds, CLASSES, strict=True))
    (folder / "tree.csv").write_text(lines)
    lines = "".join(f"{name},{int(i < 9)},{int(i >= 9)}\n" for i, name in enumerate(CLASSES))
    (folder / "ratings.csv").write_text(f"label,animal,vehicle\n{lines}")
    (folder / "aliases.csv").write_text("tractor,bus\n")
    (folder / "fuse.toml").write_text('files = ["a.csv", "b.csv"]\nout = "configured.csv"\n')
    (folder / "datasets").symlink_to(data_folder().resolve())
    (folder / "studies").mkdir()
    (folder / "my-folder").mkdir()
    (folder / "demo").mkdir()
    rows = parts[""]
    learned = ws.learn_ensemble(
        [model.take(rows) for model in models],
        {str(i): truth[i] for i in rows.tolist()},
        n_folds=2,
        time_budget=0,
    )
    learned.save(folder / "ensemble")


def _networks() -> tuple[list[Predictions], list[str]]:
    """Three networks on the images that are of the twelve classes."""
    data = np.load(find_data("cifar100/softmax_top20.npz"))
    names = np.array(find_data("cifar100/class_names.txt").read_text().split())
    images = np.flatnonzero(np.isin(names[data["truth"]], CLASSES))
    models = []
    for (model, labels), places, scores in zip(
        LABELS.items(), data["classes"], data["scores"], strict=True
    ):
        table = np.full((len(images), len(names)), 1e-4)
        np.put_along_axis(table, places[images].astype(int), scores[images].astype(float), axis=1)
        table = np.maximum(table[:, [names.tolist().index(label) for label in labels]], 1e-4)
        table /= table.sum(axis=1, keepdims=True)
        models.append(Predictions(model, range(len(images)), labels, table))
    return models, names[data["truth"][images]].tolist()


def _write_verdicts(folder: Path) -> None:
    """Three judges with three grades, and one that lets pass or not, of twelve items."""
    grades = {"kind": "333222111333", "fair": "332221111322", "odd": "123123123123"}
    rows = [
        (judge, item, grade) for judge, all_ in grades.items() for item, grade in enumerate(all_)
    ]
    rows += [("strict", item, "pass" if item % 4 else "fail") for item in range(12)]
    lines = [json.dumps({"judge": j, "item": i, "verdict": v}) for j, i, v in rows]
    (folder / "verdicts.jsonl").write_text("\n".join(lines))
    lines = ["judge,item,verdict", *(f"{j},{i},{v}" for j, i, v in rows)]
    (folder / "verdicts.csv").write_text("\n".join(lines))


def _write_grades(folder: Path) -> None:
    """Two who grade from 1 to 5, one by 0 to 100 in tens, and what the grades should be."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(size=200)
    for name, labels in (("ann", range(1, 6)), ("bob", range(1, 6)), ("points", range(0, 101, 10))):
        places = np.linspace(0, 1, len(labels))
        centre = truth + rng.normal(scale=0.15, size=200)
        scores = np.exp(-30 * (places - centre[:, None]) ** 2)
        scores /= scores.sum(axis=1, keepdims=True)
        write_predictions(folder / f"{name}.csv", Predictions(name, range(200), labels, scores))
    lines = "".join(f"{i},{1 + round(4 * each)}\n" for i, each in enumerate(truth.tolist()))
    (folder / "graded.csv").write_text(f"sample,label\n{lines}")
    (folder / "grades.txt").write_text("1\n2\n3\n4\n5\n")
    (folder / "line.csv").write_text("label,position\n1,0\n2,1\n3,2\n4,4\n5,8\n")


def _write_hub(folder: Path) -> None:
    """Six weeks of three teams for ten places, as the forecast hub has it, and what happened."""
    weeks = np.arange("2025-01-04", "2025-02-09", 7, dtype="datetime64[D]")
    asked = {
        f"{week},{h},{place:02d}": week + 7 * h
        for week in weeks
        for place in range(1, 11)
        for h in range(4)
    }
    columns = "reference_date,horizon,location,target_end_date,target,output_type,output_type_id"
    oracle = [f"{columns},oracle_value"]
    for sort, target in (("categorical", "trend"), ("quantiles", "admissions")):
        data = np.load(find_data(f"flusight/{sort}_2024-25.npz"))
        item = {
            f"{data['weeks'][w]},{h},{data['locations'][p]}": i
            for i, (w, p, h) in enumerate(
                zip(data["item_week"], data["item_location"], data["item_horizon"], strict=True)
            )
        }
        kind = "pmf" if sort == "categorical" else "quantile"
        ids = data["categories"] if kind == "pmf" else data["quantile_levels"]
        values = data["probabilities" if kind == "pmf" else "values"].astype(float)
        values = values if kind == "pmf" else values * data["value_scale"]
        for team in ("CEPH-Rtrend_fluH", "PSI-PROF", "UMass-flusion"):
            own = values[data["models"].tolist().index(team)]
            place = folder / "model-output" / team
            place.mkdir(parents=True, exist_ok=True)
            rows = [
                f"{each},{end},{target},{kind},{name},{value:.6g}"
                for each, end in asked.items()
                if each in item
                for name, value in zip(ids, own[item[each]], strict=True)
            ]
            (place / f"{sort}.csv").write_text("\n".join([f"{columns},value", *rows]) + "\n")
        for each, end in asked.items():
            if each in item:
                known = data["truth"][item[each]]
                told = (ids[known], 1) if kind == "pmf" else ("", known)
                oracle.append(f"{each},{end},{target},{kind},{told[0]},{told[1]}")
        if kind == "pmf":
            (folder / "order.txt").write_text("\n".join(ids.tolist()) + "\n")
    (folder / "oracle.csv").write_text("\n".join(oracle) + "\n")


def _write_kernels(folder: Path) -> None:
    names = find_data("cifar100/class_names.txt").read_text().split()
    vectors = np.load(find_data("cifar100/class_glove_100d.npy"))
    lines = [
        " ".join([name, *(f"{v:.4f}" for v in row)])
        for name, row in zip(names, vectors, strict=True)
        if name in CLASSES
    ]
    (folder / "glove.txt").write_text("\n".join(lines) + "\n")
    (folder / "french.txt").write_text("chat\nchien\n")
    (folder / "english.txt").write_text("cat\ndog\n")
    (folder / "translations.csv").write_text("source,target,similarity\nchat,cat,1\nchien,dog,1\n")
    for name, labels in LABELS.items():
        kernel = ws.kernels.from_spelling(labels, CLASSES, epsilon=0.2)
        kernel.save(folder / f"kernel_{name}.npz")


def _write_animals(folder: Path) -> None:
    data = ws.inputs.load_animals()
    rows = slice(0, 40)
    for name, scores in zip(("seen18", "seen34"), data.scores, strict=True):
        seen = Predictions(name, range(40), data.attributes, scores[rows], kind="multilabel")
        write_predictions(folder / f"{name}.csv", seen)
    table = Predictions("table", data.attributes, data.animals, data.has_attribute)
    write_predictions(folder / "table.csv", table)


def _write_captions(folder: Path) -> None:
    """Captions of two systems for some of the test pictures, and references for more of them."""
    data = load_captions("test")
    pictures = list(zip(data.image_ids.tolist(), data.captions, strict=True))[:8]
    for place, system in enumerate(("glove", "geometric")):
        records = [{"image_id": str(n), "caption": said[place]} for n, said in pictures[:3]]
        _write_lines(folder / f"{system}.jsonl", records)
    records = [{"image_id": str(n), "captions": said[2:]} for n, said in pictures]
    _write_lines(folder / "references.jsonl", records)


def _write_lines(path: Path, records: list[dict]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
