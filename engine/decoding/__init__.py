"""Lookahead decoding: draft, forward, verify, commit. It knows tokens and tensors, no text model."""
