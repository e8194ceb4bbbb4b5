"""Check once whether a model's steps are correct on this device, and keep the verdict.

PyTorch runs the model if kernels fail, or if a row's bits depend on the rows beside it.
"""
