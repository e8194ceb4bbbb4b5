"""Measures the engine the way a user can repeat it."""
