"""Whether a model's steps are right on this device, found out once, as a whole, and kept.

Where kernels fail, or give a row other bits beside other rows, PyTorch runs the model instead.
"""
