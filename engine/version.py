"""The version of the code that runs: on disk there may be another by now.

The metadata of the installed package would take a language server's start 15 ms longer to read.
"""

VERSION = "0.1.0"  # never in [0.18.2, 0.19): there transformers takes our `kernels` for its own
