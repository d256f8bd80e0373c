"""Consensus without truth on crowds, labelling functions, judges and models, beside its rivals."""
