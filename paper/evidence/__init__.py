"""Ensembles learned on real tasks and judged on held-out samples, beside their rivals."""
