"""Predictions as a value: what one model said about which samples, over its own labels.

What is told from predictions, or matched between them, has a file of its own here: frames,
truth, aliases, samples in common, doubts, best labels.
"""
