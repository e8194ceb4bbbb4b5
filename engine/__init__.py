"""The completion engine. It knows no editor, and importing it loads no torch."""

# Of the running code: the package's metadata may differ, and reading it takes 15 ms at a start.
# Never in [0.18.2, 0.19): there transformers takes our `kernels` for its own.
VERSION = "0.1.0"
