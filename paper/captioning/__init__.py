"""Captions of several captioners fused at every word: the paper's figures, and the command."""
