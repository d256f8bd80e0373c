"""Five classifiers of handwritten digits that do not speak of the same labels.

One knows all ten digits, one only 0 to 4 and "other", one odd and even, one all ten by whole
numbers, one only 5 to 9 and "none". Each writes a CSV file; the files are fused by name, with a
table of what odd and even stand for, and with "other" and "none" declared as such.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import wassemble as ws

DIGITS = [str(digit) for digit in range(10)]
ALIASES = pd.DataFrame(
    [("parity", "odd" if int(d) % 2 else "even", d) for d in DIGITS],
    columns=["model", "source", "target"],
)
OTHER = {"low": "other", "high": "none"}


def label_sets(digits: np.ndarray) -> dict[str, np.ndarray]:
    """What each classifier calls the digits."""
    return {
        "forest": digits.astype(str),
        "low": np.where(digits < 5, digits.astype(str), "other"),
        "parity": np.where(digits % 2 == 1, "odd", "even"),
        "numbers": digits,
        "high": np.where(digits >= 5, digits.astype(str), "none"),
    }


def write_files(folder: Path, n_fitting: int) -> dict[str, str]:
    """Fit the classifiers, write what they say of other images, and return these images' truth."""
    images, digits = load_digits(return_X_y=True)
    fitting, test = train_test_split(
        np.arange(len(digits)), train_size=n_fitting, stratify=digits, random_state=0
    )
    classifiers = {
        "forest": RandomForestClassifier(random_state=0),
        "low": LogisticRegression(max_iter=1000),
        "parity": KNeighborsClassifier(),
        "numbers": DecisionTreeClassifier(random_state=0),
        "high": GaussianNB(),
    }
    ids = [f"image {place}" for place in test]
    for name, wanted in label_sets(digits).items():
        fitted = classifiers[name].fit(images[fitting], wanted[fitting])
        scores = fitted.predict_proba(images[test])
        table = pd.DataFrame(scores, index=pd.Index(ids, name="image"), columns=fitted.classes_)
        table.to_csv(folder / f"{name}.csv")
    return dict(zip(ids, digits[test].astype(str), strict=True))


def main(arguments: list[str] | None = None) -> int:
    """Print the accuracy of the best model, of two means and of the consensus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fitting", type=int, default=200, help="images to learn from")
    with tempfile.TemporaryDirectory() as folder:
        truth = write_files(Path(folder), parser.parse_args(arguments).fitting)
        models = [
            ws.read_predictions(Path(folder) / f"{name}.csv", id_column="image")
            for name in label_sets(np.arange(10))
        ]
    meanings: dict[str, Any] = {"aliases": ALIASES, "other": OTHER, "target": DIGITS}
    consensus = ws.Fusion(**meanings).run(models)
    rules = {
        # Labels by name alone, which odd and even have not; what a model lacks is its "no".
        "plain mean over names": ws.Fusion(ws.ARITHMETIC, target=DIGITS, leftover=1).fuse(
            [model for model in models if model.model != "parity"]
        ),
        "label-aware mean": ws.Fusion(ws.ARITHMETIC, **meanings).fuse(models),
        "consensus": consensus.consensus,
    }
    best = max(models, key=lambda model: accuracy(model, truth))
    rules = {f"best single model ({best.model})": best} | rules
    print(f"{'rule':32}{'accuracy':>10}")
    for rule, answers in rules.items():
        print(f"{rule:32}{accuracy(answers, truth):>10.3f}")
    print(consensus.report.splitlines()[-1], file=sys.stderr)
    return 0


def accuracy(answers: ws.Predictions, truth: Mapping[str, str]) -> float:
    """Share of samples whose best label is the true one."""
    best = np.nan_to_num(answers.scores).argmax(axis=1)
    names: Iterable[str] = (answers.labels[place] for place in best)
    pairs = zip(answers.samples, names, strict=True)
    return float(np.mean([truth[sample] == name for sample, name in pairs]))


if __name__ == "__main__":
    sys.exit(main())
