"""Benchmarks: floors, peers and reports; everything is a ratio from one run."""
