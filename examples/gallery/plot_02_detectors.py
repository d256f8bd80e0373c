"""
Three detectors, three label sets
=================================

Language detectors know between 54 and 222 languages. What a detector does not know is not its
"no": labels are matched by name, and weights are per label.
"""

import wassemble as ws

data = ws.inputs.load_languages()
models = data.models[:3]
for model in models:
    print(f"{model.model}: {len(model.labels)} languages")

# %%
# The result has an account of what was matched and of what was filled in.
result = ws.Fusion().run(models)
print(result.report)

# %%
# The sample that they disagree about most, in transport cost:
disputed = ws.find_disagreement(result).most(1)[0]["sample"]
result.plot(disputed)

# %%
# A notebook shows a result in the same way, without matplotlib:
result

# %%
# Which labels of which detectors made the answer, in percent:
print(ws.explain(result, disputed, n_largest=4))
