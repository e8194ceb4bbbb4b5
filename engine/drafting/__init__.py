"""Drafting: what may come next, from all that is known, merged into one tree and cut to what pays."""
