"""A script as a user writes it, for pyright: run by nobody, read by `make release-check`."""
# pyright: strict, reportUnknownMemberType=false

import numpy as np

import wassemble as ws

kernel = ws.kernels.from_cost(np.array([[0.0, 1.0], [1.0, 0.0]]), epsilon=0.3)
rule = ws.Barycenter(ws.Unbalanced(2.0, epsilon=0.3))
fusion = ws.Fusion(rule, kernel=kernel)
scores = ws.fuse([np.array([0.2, 0.8]), np.array([0.6, 0.4])], kernel=kernel)
print(scores.argmax(), fusion.rule, ws.__version__)

first = ws.Predictions("first", ["photo"], ["cat", "lynx"], np.array([[0.3, 0.7]]))
consensus = ws.fuse([first, first])
names: list[str] = list(consensus.labels)
print(names, consensus.scores.shape)

fusion.fuse([first], no_such_option=1)  # pyright: ignore[reportCallIssue]
