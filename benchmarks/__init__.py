"""Benchmarks: each case beside its peers in one run; `make bench` writes docs/benchmarks.md."""
