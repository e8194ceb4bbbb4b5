"""Edits by a model: prompts for the next change or an asked one, and readers of the answers."""
