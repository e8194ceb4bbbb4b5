"""Drafting: what may come next, merged into one tree and cut to what pays."""
