"""
Where the mass came from
========================

A barycenter comes with couplings: how much of each model's label went to each label of the
consensus.
"""

import matplotlib.pyplot as plt
import numpy as np

import wassemble as ws

breeds = np.array([0.5, 0.3, 0.2])  # husky, beagle, tabby
kinds = np.array([0.4, 0.6])  # dog, cat
kernels = [[[1.0, 0.1], [1.0, 0.1], [0.1, 1.0]], [[1.0, 0.1], [0.1, 1.0]]]
result = ws.solve_barycenter([breeds, kinds], [np.array(kernel) for kernel in kernels])
result.plot()

# %%
# Rows sum to what the model says, columns to the consensus:
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
rows = [["husky", "beagle", "tabby"], ["dog", "cat"]]
for model, place in enumerate(axes):
    coupling = ws.LabelledKernel(result.coupling(model), rows[model], ["dog", "cat"])
    coupling.plot(place).set_title(f"coupling of model {model}")

# %%
# In percent of the consensus' "dog":
print([shares.round().tolist() for shares in result.contributions(label=0)])
