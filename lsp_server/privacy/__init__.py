"""Decides what is completed, and what may leave the editor. It knows no host and no pygls."""
