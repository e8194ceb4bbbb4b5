"""Compute kernels, one folder per operation. They know tensors and nothing of models."""
