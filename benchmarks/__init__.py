"""Benchmarks: each case runs side by side with its peers; `make bench` writes docs/benchmarks.md."""
