"""Costs that a user might set for mistakes among the CIFAR-100 classes.

A camera on the road: a person who is overlooked costs most, a false alarm costs less, and
among things, plants and places few mistakes matter. The costs are written as a small table
of kinds; the classes come in the twenty groups of CIFAR-100.
"""

from __future__ import annotations

import numpy as np

from wassemble.labels import LabelSpace

__all__ = ["user_costs"]

# Krizhevsky 2009: kind, then the classes of each group of that kind.
_GROUPS = {
    "people": ["baby boy girl man woman"],
    "animals": [
        "beaver dolphin otter seal whale",
        "aquarium_fish flatfish ray shark trout",
        "bee beetle butterfly caterpillar cockroach",
        "bear leopard lion tiger wolf",
        "camel cattle chimpanzee elephant kangaroo",
        "fox porcupine possum raccoon skunk",
        "crab lobster snail spider worm",
        "crocodile dinosaur lizard snake turtle",
        "hamster mouse rabbit shrew squirrel",
    ],
    "vehicles": [
        "bicycle bus motorcycle pickup_truck train",
        "lawn_mower rocket streetcar tank tractor",
    ],
    "things": [
        "bottle bowl can cup plate",
        "clock keyboard lamp telephone television",
        "bed chair couch table wardrobe",
    ],
    "plants": [
        "orchid poppy rose sunflower tulip",
        "apple mushroom orange pear sweet_pepper",
        "maple_tree oak_tree palm_tree pine_tree willow_tree",
    ],
    "places": ["bridge castle house road skyscraper", "cloud forest mountain plain sea"],
}

# Rows are true kinds, columns answers. The diagonal is for another group of the same kind.
_COSTS = """
         people animals vehicles things plants places
people        2      10       10     12     12     12
animals       5       2        5      6      6      6
vehicles      5       5        2      6      6      6
things        4       4        4      2      2      2
plants        4       4        4      2      2      2
places        4       4        4      2      2      2
"""
_IN_GROUP = 1.0


def user_costs(classes: LabelSpace) -> np.ndarray:
    """Cost of each answer (column) for each true class (row), ``(n_labels, n_labels)``."""
    kinds, *rows = _COSTS.strip().splitlines()
    table = {
        (true, answer): float(cost)
        for true, *costs in map(str.split, rows)
        for answer, cost in zip(kinds.split(), costs, strict=True)
    }
    groups = [(kind, group.split()) for kind, each in _GROUPS.items() for group in each]
    cost = np.empty((len(classes), len(classes)))
    for true, rows_of in ((kind, classes.positions(names)) for kind, names in groups):
        for answer, names in groups:
            cost[np.ix_(rows_of, classes.positions(names))] = table[true, answer]
    for _, names in groups:
        places = classes.positions(names)
        cost[np.ix_(places, places)] = _IN_GROUP
    np.fill_diagonal(cost, 0)
    return cost
