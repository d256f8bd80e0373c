"""
Let data choose the rule
========================

With the truth of some samples, every rule is tried on samples that it was not fitted on; a
richer one is taken only if its gain is worth it.
"""

import wassemble as ws

data = ws.inputs.load_languages()
known = ~data.is_test
models = [model.take(known) for model in data.models[:4]]
truth = [label for label, is_known in zip(data.truth, known, strict=True) if is_known]
learned = ws.learn_ensemble(models, truth, n_folds=2, time_budget=10)
learned.plot()

# %%
# Why it was chosen:
print(learned.report)

# %%
# Applied to other texts:
consensus = learned.predict([model.take(data.is_test) for model in data.models[:4]])
print(consensus.top()[:3])
