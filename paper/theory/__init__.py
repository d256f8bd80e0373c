"""The paper's bounds, measured on real predictions."""
