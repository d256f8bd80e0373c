"""
Mistakes become kernels
=======================

What a detector means by a language is best learned from what it says when the truth is known.
Kernels from some of the texts, tested on the others.
"""

import matplotlib.pyplot as plt
import numpy as np

import wassemble as ws

data = ws.inputs.load_languages()
known = ~data.is_test
truth = [label for label, is_known in zip(data.truth, known, strict=True) if is_known]
wanted = ws.LabelSpace.union(*(model.labels for model in data.models))
kernels = {
    model.model: ws.kernels.from_confusion(model.take(known), truth, target=wanted)
    for model in data.models
}

# %%
# Four rules on the texts that nothing was learned from:
tested = [model.take(data.is_test) for model in data.models]
right = [label for label, is_known in zip(data.truth, known, strict=True) if not is_known]
rules = {
    "mean, silence is no": ws.Fusion(ws.ARITHMETIC, target=wanted, leftover=1, unobserved="drop"),
    "mean, label-aware": ws.Fusion(ws.ARITHMETIC, target=wanted),
    "mean through mistakes": ws.Fusion(ws.ARITHMETIC, kernel=kernels, target=wanted),
    "barycenter through mistakes": ws.Fusion(kernel=kernels, target=wanted),
}
places = wanted.places(right)
accuracy = {
    name: ws.metrics.accuracy(np.nan_to_num(fusion.fuse(tested).scores), places)
    for name, fusion in rules.items()
}
figure, axes = plt.subplots(figsize=(7, 2.4), layout="constrained")
axes.barh(list(accuracy), list(accuracy.values()))
axes.set(xlabel="accuracy", xlim=(0, 1))
axes.invert_yaxis()
print({name: round(float(value), 3) for name, value in accuracy.items()})
