"""Robustness to predictions shuffled among similar labels."""
