"""Captioners of pictures: their network, their training, and their files."""

SEEING = (
    "cross-entropy",
    "cross-entropy-small",
    "smoothed",
    "self-critical",
    "self-critical-small",
)
"""Five that look at pictures, of 2,504 words: those of `generate`, which takes any picture."""

TOLD = (
    "concepts",
    "concepts-small",
    "concepts-large",
    "concepts-self-critical",
    "concepts-small-self-critical",
)
"""Five that are told what is in a picture, of 10,192 words: about the paper's number."""
