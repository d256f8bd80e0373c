"""
Forecasts on a line
===================

Will hospital admissions with influenza fall, stay or rise? Teams of the FluSight challenge give
a histogram over five categories that have an order. A mean keeps every team's mass where it is;
the exact barycenter W2 moves it along the line, and is as sharp as the teams are.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import wassemble as ws

with np.load(Path("../../datasets/flusight/categorical_2024-25.npz")) as arrays:
    names, told, truth = (arrays[name] for name in ("categories", "probabilities", "truth"))
    teams = told[arrays["role"] == "team"].astype(np.float64)

# %%
# The forecast that most teams gave and that they disagree about most:
complete = np.isfinite(teams).all(axis=2) & (teams.sum(axis=2) > 0)
item = int(np.argmax(complete.sum(axis=0) + np.nan_to_num(teams).var(axis=0).sum(axis=1)))
answers = teams[complete[:, item], item]
answers = answers / answers.sum(axis=1, keepdims=True)

rules = {"mean": ws.ARITHMETIC, "exact W1": ws.LineBarycenter(1), "exact W2": ws.LineBarycenter(2)}
figure, axes = plt.subplots(1, 4, figsize=(13, 3), sharey=True, layout="constrained")
axes[0].plot(answers.T, color="grey", alpha=0.5)
axes[0].set_title(f"{len(answers)} teams")
for place, (name, rule) in zip(axes[1:], rules.items(), strict=True):
    place.bar(range(5), ws.fuse(answers, rule=rule))
    place.set_title(name)
for place in axes:
    place.set_xticks(range(5), names, rotation=45, ha="right")
    place.axvline(truth[item], linestyle=":", color="darkorange")

# %%
# The dotted line is what happened. One sample proves nothing, and over whole seasons the mean is
# ahead on these five categories: the page of evidence for labels with an order has the figures.
