"""The paper's experiments on real data, beside the library: `python -m paper`.

A topic is a folder, or a file where one is enough. `record` has what all experiments share,
`data` reads the repository's data sets. Nothing in the library imports from here.
"""
