"""Ensembles learned on five real tasks and judged on held-out samples."""
