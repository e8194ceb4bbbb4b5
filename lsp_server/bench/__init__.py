"""A person at an editor, simulated: what the language server is measured with from outside.

Nothing here is part of what serves an editor.
"""
