"""
A kernel from word vectors
==========================

``K = exp(-cost / epsilon)`` between GloVe vectors of the classes of CIFAR-100. The cost is 1 minus
their cosine, half the squared distance of unit vectors. A small epsilon matches by name, a large
one joins everything; ``epsilon="auto"`` looks for three effective neighbours.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import wassemble as ws

folder = Path("../../datasets/cifar100")
names = (folder / "class_names.txt").read_text().split()
vectors = ws.inputs.Embeddings(names, np.load(folder / "class_glove_100d.npy"))

# %%
# Twelve of the classes, at three epsilons:
some = ["maple_tree", "oak_tree", "rose", "tulip", "lion", "tiger"]
some += ["leopard", "bus", "train", "tractor", "bowl", "cup"]
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for place, epsilon in zip(axes, [0.05, 0.2, 1.0], strict=True):
    kernel = ws.kernels.from_word_vectors(some, embeddings=vectors, epsilon=epsilon)
    kernel.plot(place).set_title(f"epsilon {epsilon}")

# %%
# The account says what a kernel joins, and what looks wrong about it:
kernel = ws.kernels.from_word_vectors(names, embeddings=vectors, epsilon="auto")
print(kernel.account())
