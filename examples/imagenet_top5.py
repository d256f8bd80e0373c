"""Eight ImageNet networks that give only their five best classes.

Hosted models often return a top-5 list. What it leaves out is not zero: here a network's
score for rank r is how often the truth stood at that rank on other images, and the mass
that the five do not reach is unobserved. The networks are fused by class name, plain and
through the WordNet tree, which lets a vote for one terrier count a little for another.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import wassemble as ws

FOLDER = Path(__file__).parents[1] / "datasets" / "imagenet"


def load(n_images: int) -> tuple[list[ws.Predictions], list[str]]:
    """Top-5 scores of each network on test images, and their true classes."""
    index = json.loads((FOLDER / "imagenet_class_index.json").read_text())
    classes = [index[str(number)][0] for number in range(1000)]
    with np.load(FOLDER / "top5_8models.npz") as arrays:
        models, top5, truth = (arrays[name] for name in ("models", "top5", "truth"))
    images = np.random.default_rng(0).permutation(len(truth))
    fitting, test = images[: len(truth) // 2], np.sort(images[len(truth) // 2 :][:n_images])
    members = []
    for model, best in zip(models, top5.astype(int), strict=True):
        at_rank = (best[fitting] == truth[fitting, None]).mean(axis=0)
        scores = np.full((len(test), len(classes)), np.nan, dtype=np.float32)
        np.put_along_axis(scores, best[test], np.tile(at_rank, (len(test), 1)), axis=1)
        members.append(ws.Predictions(str(model), test, classes, scores, kind="multiclass"))
    return members, [classes[i] for i in truth[test]]


def main(arguments: list[str] | None = None) -> int:
    """Print accuracy, top-5 accuracy and the mean tree distance of each rule's answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=2000, help="test images (default 2000)")
    members, truth = load(parser.parse_args(arguments).images)
    classes = members[0].labels
    right = classes.places(truth)
    edges = ws.inputs.read_edges(FOLDER / "wordnet.parent-child.mintree.txt")
    kernel = ws.kernels.from_tree(classes, edges=edges, cost="lin", epsilon=0.125)
    path = ws.kernels.from_tree(classes, edges=edges, cost="path", epsilon=1)
    distance = -np.log(np.asarray(path.kernel.to_dense()))
    print(kernel.origin, file=sys.stderr)

    best = max(members, key=lambda member: (first(member) == right).mean())
    five = ws.Barycenter(ws.Unbalanced(1.0, epsilon=1.0), max_sweeps=5, tolerance=None)
    rules = {
        f"best network ({best.model})": best.scores,
        "arithmetic mean": ws.fuse(members, rule=ws.ARITHMETIC).scores,
        "geometric mean": ws.fuse(members, rule=ws.GEOMETRIC).scores,
        "barycenter, WordNet tree": ws.fuse(members, kernel=kernel, rule=five).scores,
    }
    print(f"{'rule':32}{'accuracy':>10}{'top 5':>8}{'tree distance':>15}")
    for rule, scores in rules.items():
        answer = np.nan_to_num(scores).argmax(axis=1)
        five = np.argsort(-np.nan_to_num(scores), axis=1)[:, :5]
        print(
            f"{rule:32}{(answer == right).mean():>10.3f}"
            f"{(five == right[:, None]).any(axis=1).mean():>8.3f}"
            f"{distance[right, answer].mean():>15.3f}"
        )
    return 0


def first(member: ws.Predictions) -> np.ndarray:
    """Place of the label that a model scores highest."""
    return np.nan_to_num(member.scores).argmax(axis=1)


if __name__ == "__main__":
    sys.exit(main())
