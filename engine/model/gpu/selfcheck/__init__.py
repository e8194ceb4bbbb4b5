"""Check once whether kernels compute a model correctly on this device; if not, PyTorch runs it."""
