"""
A car, not a bicycle
====================

Two models disagree about *which* car a picture shows. To a mean they disagree about everything
but the bicycle, so the bicycle wins. A kernel says that a sedan is a car and a coupe is one,
too.
"""

import wassemble as ws

labels = ["sedan", "coupe", "bicycle"]
models = [
    ws.Predictions("first", ["photo"], labels, [[0.60, 0.02, 0.38]]),
    ws.Predictions("second", ["photo"], labels, [[0.02, 0.60, 0.38]]),
]

# %%
# The geometric mean picks the bicycle:
ws.Fusion(ws.GEOMETRIC).run(models).plot("photo")

# %%
# A kernel has a row for each label of the models and a column for each label that is wanted:
kernel = ws.LabelledKernel([[1, 0], [1, 0], [0, 1]], labels, ["car", "bicycle"])
kernel.plot()

# %%
# Through it, the consensus is a car:
result = ws.Fusion(kernel=kernel, target=["car", "bicycle"]).run(models)
result.plot("photo")
assert result.consensus.top()[0].label == "car"
