"""
How sure, and how right
=======================

Two strong networks on CIFAR-100, one of them alone and the geometric mean of both: on the
dotted line, confidence is what it promises.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import wassemble as ws

with np.load(Path("../../datasets/cifar100/softmax_top20.npz")) as arrays:
    truth, classes, kept = (arrays[name] for name in ("truth", "classes", "scores"))
scores = np.full((3, len(truth), 100), 1e-6)  # of what is not among the top 20
np.put_along_axis(scores, classes.astype(int), kept.astype(np.float64), axis=2)
scores /= scores.sum(axis=2, keepdims=True)

rules = {"densenet alone": scores[1], "mean of two": ws.fuse(scores[1:], rule=ws.GEOMETRIC)}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for place, (name, found) in zip(axes, rules.items(), strict=True):
    error = ws.metrics.expected_calibration_error(found, truth)
    ws.metrics.calibration_bins(found, truth).plot(place)
    place.set_title(f"{name}: accuracy {ws.metrics.accuracy(found, truth):.3f}, ECE {error:.3f}")
