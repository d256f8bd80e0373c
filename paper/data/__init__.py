"""The data sets of the repository."""
