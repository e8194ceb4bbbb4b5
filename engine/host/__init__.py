"""The completion host: one engine process that serves editors over HTTP. It knows no editor.

Importing this package, or its `protocol`, loads no torch.
"""
