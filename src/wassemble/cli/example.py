"""`wassemble example`: files to try the other commands on."""

from pathlib import Path

import click

from wassemble.cli.console import talk
from wassemble.cli.places import Command, Output


@click.command(cls=Command, short_help="Write files to try the other commands on.")
@click.argument("name", type=click.Choice(["animals", "languages"]))
@click.argument("folder", type=Output(is_folder=True, path_type=Path))
def example(name: str, folder: Path) -> None:
    """Write the files of a shipped example into FOLDER.

    \b
    wassemble example animals demo      # attributes from classes of two networks; wanted: animals
    wassemble example languages demo    # nine language detectors with nine label sets
    """
    lines = _animals(folder) if name == "animals" else _languages(folder)
    for line in lines:
        talk(line)


def _animals(folder: Path) -> list[str]:
    import numpy as np

    from wassemble.inputs import Predictions, load_animals, write_predictions

    data = load_animals()
    samples = np.arange(len(data.truth))
    names = []
    for model, scores, suffix in zip(data.models, data.scores, ("parquet", "csv"), strict=True):
        seen = Predictions(model, samples, data.attributes, scores, kind="multilabel")
        names.append(folder / f"{model}.{suffix}")
        write_predictions(names[-1], seen)
    table = Predictions("table", data.attributes, data.animals, data.has_attribute)
    write_predictions(folder / "attributes.csv", table)
    _write_truth(folder / "truth.csv", samples, [data.animals[i] for i in data.truth])
    first, second = names
    return [
        f"wrote {first}, {second}, {folder}/attributes.csv and {folder}/truth.csv",
        f"try: wassemble fuse {first} {second} --attributes {folder}/attributes.csv"
        f" --mass-penalty 2 --epsilon 0.3 --out {folder}/fused.parquet",
    ]


def _languages(folder: Path) -> list[str]:
    from wassemble._files import write_whole
    from wassemble.inputs import load_languages, write_predictions

    data = load_languages()
    for model in data.models:
        write_predictions(folder / f"{model.model}.npz", model)
    samples = data.models[0].samples
    for file, is_in in (("truth", ~data.is_test), ("test", data.is_test)):
        truth = [name for name, is_own in zip(data.truth, is_in, strict=True) if is_own]
        _write_truth(folder / f"{file}.csv", samples[is_in], truth)
    true = sorted(set(data.truth))
    write_whole(folder / "target.txt", "".join(f"{name}\n" for name in true))
    return [
        f"wrote nine .npz files and the {len(true)} true labels (target.txt) to {folder}; the truth"
        f" of {(~data.is_test).sum()} texts to learn from (truth.csv) and of"
        f" {data.is_test.sum()} to test on (test.csv)",
        f"try: wassemble fuse {folder}/*.npz --confusion {folder}/truth.csv --weights accuracy"
        f" --out {folder}/fused.parquet",
        f"or: wassemble fit {folder}/*.npz --truth {folder}/truth.csv --target {folder}/target.txt"
        f" --out {folder}/ensemble",
    ]


def _write_truth(path: Path, samples: object, labels: list[str]) -> None:
    from wassemble._files import write_whole

    rows = zip(samples, labels, strict=True)  # type: ignore[call-overload]
    write_whole(path, "sample,label\n" + "".join(f"{s},{name}\n" for s, name in rows))
