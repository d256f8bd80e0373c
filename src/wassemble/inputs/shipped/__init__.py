"""The two example data sets that come with the package, and their loaders."""
