"""The completion engine. It knows no editor, and importing it loads no torch."""
