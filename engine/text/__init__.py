"""Text rules for engine and language server: lines, brackets, names, ends of completions.

They know text, no tokens or tensors.
"""
