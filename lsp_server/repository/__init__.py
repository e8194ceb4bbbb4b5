"""Finds text of the workspace that fits a cursor by an index. It knows no host and no pygls."""
