"""Text rules for both sides: lines, brackets, names, and when a completion is whole.

They know text and nothing of tokens or tensors.
"""
