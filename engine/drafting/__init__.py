"""Drafting: guesses of the next tokens, merged into one tree and cut to those that pay."""
