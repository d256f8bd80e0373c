"""Experiments: each file is one; it computes figures and writes them down."""
