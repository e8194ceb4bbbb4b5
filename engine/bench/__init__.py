"""Benchmarks of the engine that a user can repeat."""
