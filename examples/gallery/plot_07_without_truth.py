"""
A leaderboard without truth
===========================

Nine detectors judge each other: how right each of them is thought to be, with 95 % intervals.
The truth is looked at only afterwards.
"""

import matplotlib.pyplot as plt
import numpy as np

import wassemble as ws

data = ws.inputs.load_languages()
texts = np.arange(0, len(data.truth), 4)  # every fourth
models = [model.take(texts) for model in data.models]
ranking = ws.rank_models(models)
axes = ranking.plot()
print("\n".join(ranking.reasons))


# %%
# Beside it, how right they are where they answer, in orange:
def true_accuracy(model):
    """Share of right answers of a model, where it answers."""
    told = np.nan_to_num(model.scores).argmax(axis=1)
    right = np.array([model.labels[place] for place in told]) == np.array(data.truth)[texts]
    return right[model.answered].mean()


by_name = {model.model: true_accuracy(model) for model in models}
axes = ranking.plot()
for place, each in enumerate(ranking.models):
    axes.plot(by_name[each.model], place, "D", color="darkorange")
plt.show()

# %%
# heliport, which knows the most languages, is better than the others can tell.
