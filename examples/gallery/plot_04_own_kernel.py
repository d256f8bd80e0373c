"""
A kernel of your own
====================

Any table of similarities is a kernel: people's ratings, a data frame, counts. Rows are what
models say, columns what you want. Entries are at least 0, and mass moves only where there is
one above 0.
"""

import pandas as pd

import wassemble as ws

ratings = pd.DataFrame(
    {"urgent": [1.0, 0.8, 0.1, 0.0], "routine": [0.0, 0.3, 1.0, 0.4], "spam": [0, 0, 0.1, 1.0]},
    index=["outage", "complaint", "question", "advert"],
)
kernel = ws.LabelledKernel(ratings, origin="what two colleagues agreed on")
kernel.plot()

# %%
# A model that speaks of tickets, and one that speaks of what is wanted; each has its own kernel:
tickets = ws.Predictions("tickets", ["mail"], list(ratings.index), [[0.35, 0.35, 0.3, 0.0]])
triage = ws.Predictions("triage", ["mail"], ["urgent", "routine"], [[0.45, 0.55]])
wanted = list(ratings.columns)
kernels = {"tickets": kernel, "triage": ws.kernels.from_names(["urgent", "routine"], wanted)}
result = ws.Fusion(kernel=kernels, target=wanted).run([tickets, triage])
result.plot("mail")

# %%
# Where did the mass of "urgent" come from?
print(ws.explain(result, "mail", "urgent"))
